"""Loops that data ends, or picks an iteration of: the same updates, without asking for each."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.codegen.bound_by_data import bound_by_data
from polyc.loopnest.index import Affine, Compare, extremum, var
from polyc.loopnest.nodes import Assign, Block, For, Kernel, Test, Value, walk_nodes
from polyc.loopnest.prototype import Param
from polyc.loopnest.show import show_expr
from polyc.printing.print_c import print_kernel
from polyc.scop.expr import INT64, Call, Cast, Const
from polyc.threads.team import share_out
from tests.analysis.nests import F32, ZERO, at, loop, read, run
from tests.loopnest.execute import assert_same

U8 = np.dtype(np.uint8)
i, e, j = var("i"), var("e"), var("j")


def count(*index: Affine):
    place = read("n", *index)
    return Cast(type(place)(place.element, U8), INT64)


def asked(index: Affine, end, otherwise=ZERO):
    """e < n[i] ? x[i][e] : 0"""
    value = Call("mul", (read("x", i, index), read("x", i, index)), F32)
    test = Call("lt", (Value(index), end), np.dtype(bool))
    return Call("select", (test, value, otherwise), F32)


def nest(value, *, vector: int = 0, reduction="add", target=None) -> Block:
    """acc[i] add= value  for e in 0 .. 12, or in vectors of so many"""
    index = [i, e + j if vector else e]
    body = run("S", index, target or at("acc", i), value, reduction)
    inner = loop("j", vector, body, kind="vector") if vector else body
    return Block((loop("i", 5, loop("e", 12, inner, step=vector or 1)),))


def sums(block: Block) -> For:
    return next(n for n in walk_nodes(block) if isinstance(n, For) and n.var == "e")


def arrays():
    rng = np.random.default_rng(0)
    return {
        "x": rng.random((5, 12)).astype(np.float32),
        "n": np.array([0, 3, 12, 1, 200], np.uint8),
        "acc": np.zeros(5, np.float32),
    }


def test_a_loop_ends_where_data_says_and_asks_no_more():
    before = nest(asked(e, count(i)))
    after = bound_by_data(before)
    assert show_expr(sums(after).end) == "int64(n[i])"
    (update,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert isinstance(update.value, Call)
    assert update.value.function == "mul"
    assert_same(before, after, arrays())


def test_vectors_that_begin_before_the_end_still_ask():
    before = nest(asked(e + j, count(i)), vector=4)
    after = bound_by_data(before)
    assert sums(after).end is not None
    (update,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert isinstance(update.value, Call)
    assert update.value.function == "select"
    assert_same(before, after, arrays())


@pytest.mark.parametrize(
    "block",
    [
        nest(asked(e, count(e))),  # where it ends changes in the loop
        nest(asked(e - 1, count(i))),  # an iteration behind the end still adds
        nest(asked(e, count(i), Const(1.0, F32))),  # what is behind the end counts
        nest(asked(e, count(i)), reduction=None),  # it is no update
        nest(asked(e, count(i)), reduction="max"),  # of which 0 is not neutral
        nest(asked(e, count(i)), target=at("n", i)),  # it writes where it ends
        nest(asked(i, count(i))),  # asks nothing about the loop
    ],
)
def test_other_loops_stay_as_they_are(block):
    assert bound_by_data(block) == block


k = var("k")


def place(*index: Affine):
    """p[k], an integer"""
    element = read("p", *index).element
    return type(read("p", k))(element, INT64)


def picked(index: Affine, where, otherwise=ZERO, more=None):
    """p[k] == i ? u[k][j] : 0"""
    test = Call("eq", (where, Value(index)), np.dtype(bool))
    test = test if more is None else Call("and", (more, test), np.dtype(bool))
    return Call("select", (test, read("u", k, j), otherwise), F32)


def ask(condition, value):
    """What a place may be: somewhere else where a condition on the loops does not hold."""
    return Call("select", (Test(condition), value, Const(0, INT64)), INT64)


def scatter(value, *, reduction="add", target=None, lower=0, upper=7) -> Block:
    """t[i][j] add= value  for k in 0 .. 9, i in 0 .. 7, j in 4 lanes"""
    body = run("S", [i, j, k], target or at("t", i, j), value, reduction)
    lanes = loop("j", 4, body, kind="vector")
    return Block((loop("k", 9, loop("i", upper, lanes, lower=lower)),))


def positions(block: Block) -> For:
    return next(n for n in walk_nodes(block) if isinstance(n, For) and n.var == "i")


def scattered():
    rng = np.random.default_rng(1)
    return {
        "p": np.array([3, 0, 6, 3, -1, 7, 2, 99, 3]),
        "q": np.array([1, 2, 1, 1, 0, 2, 3, 1, 2]),
        "u": rng.random((9, 4)).astype(np.float32),
        "t": np.zeros((7, 4), np.float32),
    }


def test_the_one_iteration_that_data_picks():
    before = scatter(picked(i, place(k)))
    after = bound_by_data(before)
    assert show_expr(positions(after).only) == "p[k]"
    (update,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert update.value == read("u", k, j)
    assert_same(before, after, scattered())


@pytest.mark.parametrize(("lower", "upper"), [(2, 5), (0, 1), (3, 3)])
def test_an_iteration_that_there_is_not(lower, upper):
    before = scatter(picked(i, place(k)), lower=lower, upper=upper)
    after = bound_by_data(before)
    assert positions(after).only is not None
    assert_same(before, after, scattered())


def test_what_is_added_to_the_variable_is_taken_from_the_place():
    before = scatter(picked(i + 2, place(k)))
    after = bound_by_data(before)
    assert positions(after).only is not None
    assert_same(before, after, scattered())


def test_two_loops_are_picked_by_two_places():
    second = Call("eq", (type(place(k))(read("q", k).element, INT64), Value(j)), np.dtype(bool))
    body = run("S", [i, j, k], at("t", i, j), picked(i, place(k), more=second), "add")
    before = Block((loop("k", 9, loop("i", 7, loop("j", 4, body))),))
    after = bound_by_data(before)
    loops = {n.var: n.only for n in walk_nodes(after) if isinstance(n, For)}
    assert {name for name, only in loops.items() if only is not None} == {"i", "j"}
    assert_same(before, after, scattered())


@pytest.mark.parametrize(
    "block",
    [
        scatter(picked(i, place(j))),  # each lane is written elsewhere
        scatter(picked(i, place(i))),  # where it is changes with the loop
        scatter(picked(i + i, place(k))),  # it counts in twos
        scatter(picked(i + j, place(k))),  # lanes are part of the question
        scatter(picked(i, place(k), Const(1.0, F32))),  # other iterations add something
        scatter(picked(i, place(k)), reduction=None),
        scatter(picked(i, place(k)), reduction="mul"),
        scatter(picked(i, place(k)), target=at("p", i)),  # it writes where it asks
        scatter(picked(i, Cast(place(k), np.dtype(np.int32)))),  # another type compares otherwise
        scatter(picked(i, ask(Compare("eq", i - k), place(k)))),  # the place asks for the position
    ],
)
def test_loops_of_which_all_iterations_count(block):
    assert bound_by_data(block) == block


BOOLS = np.dtype(bool)


def truth(array: str, *index: Affine):
    """An element that is true or false."""
    return type(read("p", k))(read(array, *index).element, BOOLS)


def greedy(first: Affine, asks=None, kept: Affine = i) -> Block:
    """c[j] = c[j] or (not c[i] and x[i][j] > 0.5), for i < j < 7, where j begins at `first`"""
    free = Call("not", (truth("c", kept),), BOOLS)
    far = Call("gt", (read("x", i, j), Const(0.5, F32)), BOOLS)
    value = Call("or", (truth("c", j), Call("and", (asks or free, far), BOOLS)), BOOLS)
    body = Assign("S", (i, j), at("c", j), value, BOOLS)
    return Block((loop("i", 7, For("j", first, Affine(7), 1, Block((body,)))),))


def boxes():
    rng = np.random.default_rng(1)
    return {"c": np.zeros(7, bool), "x": rng.random((7, 7)).astype(np.float32)}


@pytest.mark.parametrize("first", [i + 1, extremum("max", (Affine(2), i + 1)), i + 3])
def test_what_has_one_answer_for_a_loop_is_asked_before_it(first):
    before = greedy(first)
    after = bound_by_data(before)
    (inner,) = (n for n in walk_nodes(after) if isinstance(n, For) and n.var == "j")
    assert show_expr(inner.end).startswith("select(not(c[i]), ")
    (update,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert "not" not in show_expr(update.value)
    assert_same(before, after, boxes())


@pytest.mark.parametrize(
    "block",
    [
        greedy(i),  # an iteration writes what is asked
        greedy(extremum("min", (Affine(2), i + 1))),  # one may
        greedy(i + 1, kept=i + 2),
        greedy(i + 1, truth("c", j)),  # what is asked changes in the loop
    ],
)
def test_what_a_loop_may_change_is_asked_in_each_iteration(block):
    assert bound_by_data(block) == block


def test_what_ends_a_loop_is_read_only_where_the_loop_runs():
    """c[7] is no element: for i = 6 there is no j."""
    after = bound_by_data(greedy(i + 1, truth("p", i + 1)))
    shapes = {"c": (7,), "p": (7,), "x": (7, 7)}
    types = {"c": BOOLS, "p": BOOLS, "x": F32}
    params = tuple(Param(n, types[n], shapes[n], n == "c") for n in shapes)
    text = print_kernel(share_out(Kernel("k", params, body=after)))
    assert "j_end = i + 1 < 7 ? pc_min(pc_select_i64(p_[i + 1], " in text
