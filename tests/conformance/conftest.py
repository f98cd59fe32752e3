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
    metafunc.parametrize("conformance_case", names)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The list, with the lines of the cases that ran as they are now.

    A reason stays where a case does as it did: what a person wrote says more than an error.
    """
    outcomes = session.config.stash.get(OUTCOMES, {})
    if not outcomes:
        return
    known = read_known()
    lines = {n: line for n, line in known.items() if n not in outcomes}
    for name, line in outcomes.items():
        if line[0] != "passes":
            lines[name] = known[name] if known.get(name, ("",))[0] == line[0] else line
    text = "".join("\t".join((n, *lines[n])) + "\n" for n in sorted(lines))
    KNOWN.write_text(text, "utf-8")
