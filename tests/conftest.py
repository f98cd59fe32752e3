"""Lets tests import their helpers as `tests.…`, and rewrite what is kept with `--update-golden`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from polyc.target.cuda import Driver

# At the end of the path, so that an installed polyc is tested rather than the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))


# What is compiled for this CPU must not depend on how busy it is; tests of looking say otherwise.
os.environ.setdefault("POLYC_GLANCE", "0")
if "PYTEST_XDIST_WORKER" in os.environ:  # the cores are busy with other tests
    os.environ.setdefault("POLYC_PROCESSES", "1")

# No test is about time: not about that of one example either.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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
        help="run the k-th of n parts of what is marked thorough or conformance",
    )


COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All that was found, before anything was left out."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is thorough, unless it is asked for, and all parts but one of a shard.

    Whoever names a folder or a file below `tests` wants all that is in it.
    """
    part, parts = map(int, config.getoption("--shard").split("/"))
    home = Path(__file__).resolve().parent
    is_asked = "thorough" in (config.option.markexpr or "") or any(
        Path(str(a).partition("::")[0]).resolve() != home for a in config.args
    )
    config.stash[COLLECTED] = list(items)
    chosen, left, number = [], [], 0
    for item in items:
        is_thorough = item.get_closest_marker("thorough") is not None
        is_shared_out = is_thorough or item.get_closest_marker("conformance") is not None
        is_chosen = (is_asked or not is_thorough) and (
            not is_shared_out or number % parts == part - 1
        )
        number += is_shared_out
        (chosen if is_chosen else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


@pytest.fixture
def collected(pytestconfig: pytest.Config) -> list[pytest.Item]:
    """The tests of this run, and those that were left out."""
    return pytestconfig.stash[COLLECTED]


@pytest.fixture(autouse=True)
def gpus_are_hidden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Target "auto" is the CPU on every machine, but for the tests that are about GPUs."""
    if request.node.get_closest_marker("gpu") is None:
        hidden = Driver(missing="GPUs are hidden from this test")
        monkeypatch.setattr("polyc.target.resolve.ask_driver", lambda: hidden)
