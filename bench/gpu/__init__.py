"""Measuring on a GPU, in one command: `python -m bench.cuda`."""
