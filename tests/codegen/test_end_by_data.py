"""Loops that end where data says: the same updates, without asking for each."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.codegen.end_by_data import end_by_data
from polyc.loopnest.index import Affine, var
from polyc.loopnest.nodes import Assign, Block, For, Value, walk_nodes
from polyc.loopnest.show import show_expr
from polyc.scop.expr import INT64, Call, Cast, Const
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
    after = end_by_data(before)
    assert show_expr(sums(after).end) == "int64(n[i])"
    (update,) = (n for n in walk_nodes(after) if isinstance(n, Assign))
    assert isinstance(update.value, Call)
    assert update.value.function == "mul"
    assert_same(before, after, arrays())


def test_vectors_that_begin_before_the_end_still_ask():
    before = nest(asked(e + j, count(i)), vector=4)
    after = end_by_data(before)
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
    assert end_by_data(block) == block
