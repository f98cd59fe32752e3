"""Conditions in registers as masks: what becomes one, and what stays a byte."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.codegen.masks import widen_masks
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Assign, Block, Element, For, Local, LoopExpr, Read
from polyc.scop.expr import BOOL, Call

F64, F32, I64 = (np.dtype(t) for t in ("float64", "float32", "int64"))
L = var("l")


def read(array: str, dtype: np.dtype = F64) -> Read:
    return Read(Element(array, (L,)), dtype)


def assign(array: str, value: LoopExpr, **also) -> Assign:
    return Assign("S", (L,), Element(array, (L,)), value, value.dtype, **also)


def nest(*assigns: Assign, kind: str = "vector", registers: bool = True) -> Block:
    """Conditions in c and d, of vectors of 8 lanes that are registers."""
    kept = [Local(name, BOOL, (8,), name, in_registers=registers) for name in "cd"]
    loops = [For("l", const(0), const(8), 1, Block((each,)), kind) for each in assigns]
    return Block(tuple(loops), tuple(kept))


GREATER = assign("c", Call("gt", (read("s"), read("best")), BOOL))
CHOICE = assign("best", Call("select", (read("c", BOOL), read("s"), read("best")), F64))


def types(block: Block) -> dict[str, str]:
    return {local.name: str(local.dtype) for local in block.locals}


def test_a_comparison_that_chooses_is_a_mask_as_wide_as_what_it_compares():
    found = widen_masks(nest(GREATER, CHOICE))
    assert types(found) == {"c": "int64", "d": "bool"}
    made, used = (loop.body.body[0] for loop in found.body)
    assert made.value == Call("mask_gt", (read("s"), read("best")), I64)
    assert made.dtype == I64
    assert used.value == Call("choose", (read("c", I64), read("s"), read("best")), F64)


def test_masks_combine_with_masks_and_with_comparisons():
    less = Call("lt", (read("s"), read("t")), BOOL)
    both = assign("d", Call("and", (read("c", BOOL), Call("not", (less,), BOOL)), BOOL))
    choice = assign("best", Call("select", (read("d", BOOL), read("s"), read("best")), F64))
    found = widen_masks(nest(GREATER, both, choice))
    assert types(found) == {"c": "int64", "d": "int64"}
    turned = Call("bitnot", (Call("mask_lt", (read("s"), read("t")), I64),), I64)
    assert found.body[1].body.body[0].value == Call("bitand", (read("c", I64), turned), I64)


STORED = assign("out", read("c", BOOL))
OTHER_WIDTH = assign("y", Call("select", (read("c", BOOL), read("p", F32), read("q", F32)), F32))
FROM_MEMORY = assign("c", read("flags", BOOL))
COPIED = assign("d", read("c", BOOL))
WHERE = Call("select", (read("c", BOOL), read("p", I64), read("q", I64)), I64)
SUBSCRIPT = assign("out", Read(Element("table", (const(0),)), F64, ((0, WHERE),)))
NEGATED = assign("out", Call("not", (read("c", BOOL),), BOOL))


@pytest.mark.parametrize("spoils", [STORED, OTHER_WIDTH, FROM_MEMORY, SUBSCRIPT, NEGATED])
def test_what_is_needed_as_a_byte_stays_one(spoils):
    block = nest(GREATER, CHOICE, spoils)
    assert widen_masks(block) == block


def test_what_is_copied_from_a_byte_is_a_byte():
    block = nest(GREATER, CHOICE, COPIED, assign("out", read("d", BOOL)))
    assert widen_masks(block) == block


def test_conditions_outside_of_lanes_or_in_memory_stay_as_they_are():
    for block in (
        nest(GREATER, CHOICE, kind="sequential"),
        nest(GREATER, CHOICE, registers=False),
    ):
        assert widen_masks(block) == block
