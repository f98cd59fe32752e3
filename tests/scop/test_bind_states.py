"""States at the level of statements: when an output may take the place of its input."""

import pytest

from polyc.errors import UnsupportedOp
from polyc.graph.states import State
from polyc.scop.bind_states import bind_states
from polyc.scop.expr import Call
from polyc.scop.scop import Scop, Statement
from tests.analysis.nests import F32, array, load, scop, statement

SAME = State(0, 0)
GROWS = State(0, 0, 0, 10)


def write(name: str, count: int, place: str, value: str, target: str = "new") -> Statement:
    """target[place] = -value, for i < count"""
    negated = Call("neg", (load(f"{{ {name}[i] -> {value} }}"),), F32)
    return statement(
        f"{{ {name}[i] : 0 <= i < {count} }}", f"{{ {name}[i] -> {target}[{place}] }}", negated
    )


def copy(name: str, count: int, place: str = "i") -> Statement:
    value = load(f"{{ {name}[i] -> old[i] }}")
    return statement(
        f"{{ {name}[i] : 0 <= i < {count} }}", f"{{ {name}[i] -> new[{place}] }}", value
    )


def program(*statements: Statement, size: int = 4) -> Scop:
    arrays = [
        array("old", [4], "input"),
        array("x", [4], "input"),
        array("new", [size], "output"),
        array("y", [4], "output"),
    ]
    made = scop(arrays, *statements)
    return Scop("states", made.statements, made.arrays, ("old", "x"), ("new", "y"))


READ = write("R", 4, "i", "new[i]", "y")


def test_an_element_is_overwritten_by_the_instance_that_reads_it() -> None:
    bound, (state,) = bind_states(program(write("W", 4, "i", "old[i]"), READ), [SAME])
    assert state.in_place
    assert bound.arrays["old"].kind == "state"
    assert "new" not in bound.arrays
    assert bound.outputs == ("old", "y")
    assert [s.array for s in bound.statements] == ["old", "y"]
    assert [ld.array for s in bound.statements for ld in s.loads] == ["old", "old"]


@pytest.mark.parametrize(
    "statements",
    [
        (write("W", 4, "i", "old[3 - i]"), READ),
        (write("W", 4, "i", "x[i]"), write("R", 4, "i", "old[i]", "y")),
        (write("R", 4, "i", "old[i]", "y"), write("W", 4, "i", "x[i]")),
        (copy("C", 2), write("W", 2, "i + 2", "old[i + 1]"), READ),
    ],
    ids=["another reads it", "read later", "read before", "a part of it"],
)
def test_what_another_instance_reads_keeps_its_array(statements: tuple[Statement, ...]) -> None:
    before = program(*statements)
    bound, (state,) = bind_states(before, [SAME])
    assert not state.in_place
    assert bound is before


def test_copies_of_old_elements_to_their_places_go() -> None:
    before = program(copy("C", 4), write("W", 2, "i + 4", "x[i]"), READ, size=6)
    bound, (state,) = bind_states(before, [GROWS])
    assert state.in_place
    assert [s.name for s in bound.statements] == ["W", "R"]
    assert bound.arrays["old"].shape == (10,)
    # An element that the rest is computed from is read where it stays.
    behind = program(copy("C", 4), write("W", 2, "i + 4", "old[i]"), READ, size=6)
    assert bind_states(behind, [GROWS])[1][0].in_place


def test_a_growing_state_in_another_order_is_refused() -> None:
    shifted = program(write("W", 2, "i", "x[i]"), copy("C", 4, "i + 2"), READ, size=6)
    with pytest.raises(UnsupportedOp, match="state 'old' grows, but W overwrites what C reads"):
        bind_states(shifted, [GROWS])
    partial = program(copy("C", 4), write("W", 1, "i + 4", "x[i]"), READ, size=6)
    with pytest.raises(UnsupportedOp, match="not all of it is written"):
        bind_states(partial, [GROWS])
