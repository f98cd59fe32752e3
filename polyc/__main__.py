"""`python -m polyc`."""

from polyc.cli import main

main()
