"""Lets tests import their helpers as `tests.…`, and rewrite what is kept with `--update-golden`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# At the end of the path, so that an installed polyc is tested rather than the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the compiler makes of the golden models to tests/golden/",
    )
