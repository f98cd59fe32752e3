"""The cases of the conformance suite, if they are asked for; collecting them takes seconds."""

from __future__ import annotations

import pytest

from tests.conformance.cases import KNOWN, OUTCOMES, all_cases, read_known


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conformance_case" not in metafunc.fixturenames:
        return
    config = metafunc.config
    names = list(all_cases()) if "conformance" in (config.option.markexpr or "") else []
    shard, count = map(int, config.getoption("--shard").split("/"))
    metafunc.parametrize("conformance_case", names[shard - 1 :: count])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The list, with the lines of the cases that ran as they are now."""
    outcomes = session.config.stash.get(OUTCOMES, {})
    if not outcomes:
        return
    lines = {n: line for n, line in read_known().items() if n not in outcomes}
    lines |= {n: line for n, line in outcomes.items() if line[0] != "passes"}
    text = "".join("\t".join((n, *lines[n])) + "\n" for n in sorted(lines))
    KNOWN.write_text(text, "utf-8")
