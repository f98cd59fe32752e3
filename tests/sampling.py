"""What an ordinary run leaves out of a family of cases: the rest runs where time is not short."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

Which = Collection[Any] | Callable[[Any], bool]
"""Cases by what they are, or by a question."""


def thorough(*values: Any) -> Any:
    """One case, an argument or several, which only a thorough run has."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def sampled(
    cases: Iterable[Any], *, often: Which | None = None, seldom: Which | None = None
) -> list[Any]:
    """Cases of one argument each, in their order; all but those that come often are thorough.

    often: the cases of an ordinary run, at least one for each mechanism; or
    seldom: the others, whose mechanisms those of an ordinary run have as well.
    """
    cases, (named, is_often) = list(cases), (seldom, False) if often is None else (often, True)
    assert (often is None) != (seldom is None), "say which come often, or which seldom"
    if callable(named):
        chosen = [named(case) for case in cases]
    else:
        assert all(one in cases for one in named), f"one of {named} is no case"
        chosen = [case in named for case in cases]
    ordinary = [one == is_often for one in chosen]
    assert any(ordinary), "an ordinary run has no case"
    return [
        case if is_ordinary else thorough(case)
        for case, is_ordinary in zip(cases, ordinary, strict=True)
    ]
