"""What is left out of ordinary runs has something that stands for it."""

from __future__ import annotations

import pytest

from tests.sampling import thorough


def is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def is_wholly_thorough(item: pytest.Item) -> bool:
    """Whether it is the function that is marked, or its module, and not the case."""
    marks = [*getattr(getattr(item, "function", None), "pytestmark", ())]
    marks += item.parent.iter_markers() if item.parent else ()
    return any(mark.name == "thorough" for mark in marks)


def family(item: pytest.Item) -> str:
    """The test function; what follows is the case."""
    return item.nodeid.partition("[")[0]


def find_without(items: list[pytest.Item]) -> set[str]:
    """Functions of whose cases none is ordinary, though not the functions are thorough."""
    ordinary = {family(item) for item in items if not is_thorough(item)}
    sampled = {family(item) for item in items if is_thorough(item) and not is_wholly_thorough(item)}
    return sampled - ordinary


def test_a_case_of_each_family_is_ordinary(collected, pytestconfig):
    if any("::" in argument for argument in pytestconfig.args):
        pytest.skip("some cases were asked for, not their families")
    assert find_without(collected) == set()


@pytest.mark.parametrize("case", ["ordinary", thorough("thorough")])
def test_a_family_without_one_is_found(collected, request, case):
    """Its own, for one, without its ordinary case."""
    mine = [item for item in collected if family(item) == family(request.node)]
    left_out = [item for item in mine if is_thorough(item)]
    assert find_without(mine) == set()
    assert find_without(left_out) == {family(item) for item in left_out}
