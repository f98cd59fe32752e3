"""Wide accesses of a thread: under which conditions lanes go together."""

from __future__ import annotations

import pytest

from polyc.codegen.cuda.widen import widen
from polyc.loopnest.index import Affine, Compare, Condition, const, var
from polyc.loopnest.nodes import Assign, Block, For, If, walk_nodes
from polyc.loopnest.nodes import Test as Chosen
from polyc.scop.expr import Call, Const
from tests.analysis.nests import F32, at, guarded

t, v = var("t"), var("v")


def copies(condition: Condition, outside: bool) -> Block:
    """y[4 t + v] = x[4 t + v] in four lanes: where a condition holds, or 0 elsewhere."""
    place: Affine = t * 4 + v
    read = guarded("x", place)
    value = Call("select", (Chosen(condition), read, Const(0, F32)), F32)
    copy = Assign("S", (t, v), at("y", place), value, F32)
    body = Block((If(condition, Block((copy,))),)) if outside else Block((copy,))
    lanes = For("v", const(0), const(4), 1, body, "vector")
    return Block((For("t", const(0), const(8), 1, Block((lanes,)), "thread"),))


def wide_loops(block: Block) -> int:
    """Loads and stores of all lanes at once."""
    nodes = walk_nodes(widen(block, {"x": (32,), "y": (32,)}))
    return sum(isinstance(n, For) and n.kind == "vector" for n in nodes)


@pytest.mark.parametrize("last", [27, 30, 31])
def test_lanes_that_choose_alike_are_one_load(last):
    inside = Compare("ge", const(last) - t * 4 - v)
    alike = (last + 1) % 4 == 0
    assert wide_loops(copies(inside, outside=False)) == (2 if alike else 1)
    assert wide_loops(copies(inside, outside=True)) == (2 if alike else 0)


def test_a_condition_without_lanes_is_one_for_all():
    assert wide_loops(copies(Compare("ge", const(5) - t), outside=False)) == 2
