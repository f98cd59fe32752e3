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


def test_a_sum_of_a_row_is_added_in_several_vectors_in_one_and_in_what_is_left():
    for dtype, lanes in ((F64, 8), (np.dtype(np.int32), 16)):
        (block,) = accumulate(loop(Element("y", (var("c0"),)), dtype), 64).body
        several, single, last = block.body
        assert [one.step for one in block.body] == [4 * lanes, lanes, lanes]
        assert {one.kind for one in block.body} == {"sequential"}
        assert (several.lower, several.upper) == (const(0), single.lower)
        assert (single.upper, last.upper) == (last.lower, var("size_n"))
        for one, upper in ((several, const(4 * lanes)), (single, const(lanes))):
            (vector,) = one.body.body
            assert (vector.kind, vector.upper, vector.lanes) == ("vector", upper, 0)
        (vector,) = last.body.body
        assert (vector.upper, vector.lanes) == (var("size_n") - var("c1"), lanes)
        (assign,) = vector.body.body
        assert assign.value.element.index == (var("c1") + var(vector.var),)


def test_of_what_data_picks_the_rest_is_left_to_the_c_compiler():
    picked = Read(Element("x", (const(0),)), F64, ((0, Read(Element("at", (var("c1"),)), I64)),))
    place = Element("y", (var("c0"),))
    assign = Assign("S0", (var("c0"), var("c1")), place, picked, F64, "add")
    body = Block((For("c1", const(0), var("size_n"), 1, Block((assign,)), "simd"),))
    (block,) = accumulate(body, 64).body
    guarded, rest = block.body
    (rows,) = guarded.then.body
    assert guarded.condition == Compare("ge", var("size_n") - 8)
    assert rows.step == 8
    assert rest.body[1].lower == rows.upper


def test_what_is_no_such_sum_is_left_alone():
    place = Element("y", (var("c0"),))
    for block in (
        loop(Element("y", (var("c1"),))),  # moves with the loop
        loop(place, np.dtype(bool)),
        loop(place, kind="sequential"),
        loop(place, reduction="max"),
        loop(place, reduction=None),
    ):
        assert accumulate(block, 64) == block
