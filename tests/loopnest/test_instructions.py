"""Which loops are an instruction: by types, expressions and strides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyc.loopnest.index import Affine, const, var
from polyc.loopnest.instructions import Match, Mismatch, address, bind, find_move, match_nest
from polyc.loopnest.nodes import Assign, Block, Element, For, LoopExpr, Read, Value
from polyc.scop.expr import Call, Cast, Const
from polyc.target.instructions.lanes import (
    DOT4_S8S8,
    DOT4_U8S8,
    FMA,
    GATHER,
    LOAD,
    MASKED_LOAD,
    MASKED_STORE,
    ROWS,
    SCATTER,
    STORE,
)
from polyc.types.element_types import FLOAT32, INT8, INT32, UINT8

lane, r, k = var("l"), var("r"), var("k")
SHAPES = {"y": (64,), "dot4": (100,), "B": (10, 64, 4)}
"""An array that is called like an instruction is none."""


def loop(name: str, count: int) -> For:
    return For(name, const(0), const(count), 1, Block(()))


def read(array: str, dtype: np.dtype, *index: Affine) -> LoopExpr:
    return Read(Element(array, index), dtype)


def product(a: LoopExpr, b: LoopExpr) -> Assign:
    value = Call("mul", (Cast(a, INT32), Cast(b, INT32)), INT32)
    return Assign("S", (), Element("y", (lane,)), value, INT32, "add")


def shifted(by: LoopExpr) -> LoopExpr:
    return Call("shr", (read("dot4", UINT8, k + r), by), UINT8)


A = read("dot4", UINT8, k + r)
B = read("B", INT8, const(3), lane, r)
DOT = product(A, B)


def match(assign: Assign, inner: int = 4, row=DOT4_U8S8) -> Match | Mismatch:
    loops = (loop("l", 16), loop("r", inner))
    return match_nest(row, loops, assign, lambda e: address(e, SHAPES[e.array]))


@pytest.mark.parametrize("assign", [DOT, product(B, A)], ids=["in order", "the other way round"])
def test_a_dot_product(assign):
    found = match(assign)
    assert isinstance(found, Match)
    assert found.values == {"a": A, "b": B}


def test_either_operand_may_move_with_the_lanes():
    a, b = read("B", UINT8, const(0), lane, r), read("dot4", INT8, r)
    found = match(product(a, b))
    assert isinstance(found, Match)
    assert [*found.values.values()] == [a, b]


def test_operands_are_computed_from_loads_and_numbers():
    """Halves of bytes: (B >> 4 * k) & 15, where k is the same for all lanes and terms."""
    b = read("B", UINT8, const(0), lane, r)
    half = Call("bitand", (Call("shr", (b, Value(k * 4, UINT8)), UINT8), Const(15, UINT8)), UINT8)
    found = match(product(half, read("dot4", INT8, r)))
    assert isinstance(found, Match)
    assert found.values["a"] == half


@pytest.mark.parametrize(
    ("assign", "inner", "said"),
    [
        (DOT, 3, "it has 4 iterations, and these are \\[3\\]"),
        (replace(DOT, reduction="max"), 4, "a reduction by add, and this is a reduction by max"),
        (replace(DOT, reduction=None), 4, "and this is an assignment"),
        (product(read("dot4", INT8, r), B), 4, "of u8, i8 is another expression"),
        (product(A, A), 4, "another expression"),
        (replace(DOT, value=Call("add", DOT.value.arguments, INT32)), 4, "another expression"),
        (replace(DOT, target=Element("y", (lane * 2,))), 4, "these 2 and 0 apart"),
        (replace(DOT, target=Element("y", (k,))), 4, "these 0 and 0 apart"),
        (product(read("dot4", UINT8, r * 2), B), 4, "operand a lies 4 and 1 .* lies 0 and 2"),
        (product(A, read("B", INT8, const(0), r, lane)), 4, "B lies 1 and 4 apart"),
        (product(read("y", UINT8, r), B), 4, "operand a is what it updates"),
        (
            product(Read(Element("dot4", (r,)), UINT8, guarded=True), B),
            4,
            "is loaded from where an index says",
        ),
        (product(shifted(Value(lane, UINT8)), B), 4, "operand a depends on the number of a lane"),
        (product(shifted(Value(r * 2, UINT8)), B), 4, "operand a depends on the number of a lane"),
        (product(shifted(read("B", UINT8, const(0), r, lane)), B), 4, "B lies 1 and 4 apart"),
        (product(shifted(Cast(Const(4, INT32), UINT8)), B), 4, "operand a is chosen, or converted"),
    ],
)
def test_what_is_another_nest(assign, inner, said):
    found = match(assign, inner)
    assert isinstance(found, Mismatch)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(found.reason)


def test_signs_tell_the_rows_apart():
    signed = product(read("dot4", INT8, k + r), B)
    assert isinstance(match(signed), Mismatch)
    assert isinstance(match(signed, row=DOT4_S8S8), Match)


def test_a_multiply_add_has_one_type():
    x, y = read("x", FLOAT32, lane), read("y", FLOAT32, lane)
    update = Assign("S", (), Element("acc", (lane,)), Call("mul", (x, y), FLOAT32), FLOAT32, "add")
    assert bind(FMA, update) == {"a": x, "b": y}
    assert bind(FMA, replace(update, reduction="max")) is None
    assert bind(FMA, replace(update, value=x)) is None
    mixed = Call("mul", (x, read("y", INT32, lane)), FLOAT32)
    assert bind(FMA, replace(update, value=mixed)) is None


@pytest.mark.parametrize(
    ("is_store", "is_full", "step", "row"),
    [
        (False, True, 1, LOAD),
        (False, False, 1, MASKED_LOAD),
        (False, True, 7, GATHER),
        (True, True, 1, STORE),
        (True, False, 1, MASKED_STORE),
        (True, True, -2, SCATTER),
    ],
)
def test_moves(is_store, is_full, step, row):
    assert find_move(ROWS, is_store=is_store, is_full=is_full, step=step) is row


def test_no_row_leaves_lanes_idle_that_lie_apart():
    with pytest.raises(AssertionError, match="whose lanes are 3 apart"):
        find_move(ROWS, is_store=False, is_full=False, step=3)
