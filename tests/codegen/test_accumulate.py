"""Sums over loops of the C compiler's vectors."""

import numpy as np

from polyc.codegen.accumulate import accumulate
from polyc.loopnest.index import Compare, const, var
from polyc.loopnest.nodes import Assign, Block, Element, For, Read
from polyc.scop.expr import Const

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)


def loop(target: Element, dtype: np.dtype = F64, kind="simd", reduction="add", step=1) -> Block:
    value = Read(Element("x", (var("c1") * step,)), dtype)
    assign = Assign("S0", (var("c0"), var("c1")), target, value, dtype, reduction)
    return Block((For("c1", const(0), var("size_n"), 1, Block((assign,)), kind),))


def test_a_sum_gets_a_variable_that_lanes_have_each():
    (block,) = accumulate(loop(Element("y", (var("c0"),)), step=2), 64).body
    begin, inside, end = block.body
    (local,) = block.locals
    assert (begin.value, begin.reduction) == (Const(0, F64), None)
    assert inside.reduces == (("add", local.name),)
    assert inside.body.body[0].target == Element(local.name, ())
    assert end.target == Element("y", (var("c0"),))
    assert end.reduction == "add"
    assert end.value == Read(Element(local.name, ()), F64)


def test_a_long_sum_of_a_row_is_added_in_several_vectors():
    (block,) = accumulate(loop(Element("y", (var("c0"),))), 64).body
    guarded, rest = block.body
    (rows,) = guarded.then.body
    (vectors,) = rows.body.body
    assert guarded.condition == Compare("ge", var("size_n") - 32)
    assert (rows.step, rows.kind, rows.lower) == (32, "sequential", const(0))
    assert (vectors.kind, vectors.upper) == ("vector", const(32))
    (assign,) = vectors.body.body
    assert assign.value.element.index == (var("c1") + var(vectors.var),)
    (_, inside, _) = rest.body
    assert inside.lower == rows.upper
    assert inside.upper == var("size_n")


def test_what_is_no_such_sum_is_left_alone():
    place = Element("y", (var("c0"),))
    for block in (
        loop(Element("y", (var("c1"),))),  # moves with the loop
        loop(place, I64),  # the C compiler sees to integers itself
        loop(place, kind="sequential"),
        loop(place, reduction="max"),
        loop(place, reduction=None),
    ):
        assert accumulate(block, 64) == block
