"""Lets tests import their helpers as `tests.…`, and rewrite what is kept with `--update-golden`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from polyc.target.cuda import Driver

# At the end of the path, so that an installed polyc is tested rather than the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the compiler makes of the golden models to tests/golden/",
    )
    parser.addoption(
        "--update-conformance",
        action="store_true",
        help="write what cases of the conformance suite do to tests/conformance/known.tsv",
    )
    parser.addoption(
        "--shard",
        default="1/1",
        metavar="K/N",
        help="run the k-th of n parts of the conformance suite (with -m conformance)",
    )


@pytest.fixture(autouse=True)
def gpus_are_hidden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Target "auto" is the CPU on every machine, but for the tests that are about GPUs."""
    if request.node.get_closest_marker("gpu") is None:
        hidden = Driver(missing="GPUs are hidden from this test")
        monkeypatch.setattr("polyc.target.resolve.ask_driver", lambda: hidden)
