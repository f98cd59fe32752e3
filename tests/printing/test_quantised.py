"""Quotients that become bytes print as the function that need not divide."""

import numpy as np
import pytest

from polyc.loopnest.index import var
from polyc.loopnest.nodes import Read
from polyc.printing.print_expr import Printer
from polyc.printing.scope import Scope, Uses
from polyc.scop.expr import Cast, Const, call
from tests.analysis.nests import F32, at, loop, read

U8, I8, I32 = np.dtype("u1"), np.dtype("i1"), np.dtype("i4")
i, v = var("i"), var("v")
SHAPES = {"X": (8, 32), "S": (32,), "Z": (32,)}
PLAIN = Scope(SHAPES, {}, None)
LANES = PLAIN.with_lanes(loop("v", 16, kind="vector"))
SCALE = Const(0.5, F32)


def quantised(scale=SCALE, zero=None, dtype=U8):
    whole = call("round", call("div", read("X", i, v), scale))
    if zero is not None:
        whole = call("add", whole, Cast(zero, F32))
    return Cast(whole, dtype)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (quantised(), "u8x16(pc_load_f32x16(&X[32 * i]), 0.5f, (u8)0u)"),
        (quantised(dtype=I8), "i8x16(pc_load_f32x16(&X[32 * i]), 0.5f, (i8)0)"),
        (quantised(read("S", i), Const(3, U8)), "u8x16(pc_load_f32x16(&X[32 * i]), S[i], (u8)3u)"),
        (
            quantised(zero=Read(at("Z", 0), I8), dtype=I8),
            "i8x16(pc_load_f32x16(&X[32 * i]), 0.5f, Z[0])",
        ),
    ],
)
def test_one_scale_for_all_lanes(expr, text):
    uses = Uses()
    assert Printer(uses).expr(expr, LANES) == f"pc_quantised_{text}"
    assert ("quantised", text[:2], 16) in uses.functions
    assert not uses.casts


@pytest.mark.parametrize(
    "expr",
    [
        quantised(read("S", v)),
        quantised(zero=Read(at("Z", v), U8)),
        quantised(zero=Const(3, I8)),
        quantised(dtype=np.dtype("i2")),
        Cast(call("round", read("X", i, v)), U8),
        Cast(call("div", read("X", i, v), SCALE), U8),
    ],
)
def test_what_is_divided_as_ever(expr):
    assert "quantised" not in Printer(Uses()).expr(expr, LANES)


def levels(zero=None, byte=None, moved=None):
    whole = Cast(quantised(zero=zero) if byte is None else byte, I32)
    if moved is not None:
        whole = call("sub", whole, Cast(moved, I32))
    return Cast(whole, F32)


def test_a_byte_that_is_a_float_again_is_not_made():
    plain = "u8x16(pc_load_f32x16(&X[32 * i]), 0.5f, (u8)0u)"
    assert Printer(Uses()).expr(levels(), LANES) == f"pc_levels_{plain}"
    three = Const(3, U8)
    moved = Printer(Uses()).expr(levels(zero=three, moved=three), LANES)
    assert moved == f"pc_levels_{plain.replace('0u)', '3u)')}"


@pytest.mark.parametrize(
    "expr",
    [
        levels(zero=Const(3, U8)),  # with its zero point
        levels(zero=Const(3, U8), moved=Const(4, U8)),  # less another one
        levels(byte=Cast(read("X", i, v), U8)),
    ],
)
def test_other_bytes_are_made(expr):
    assert "levels" not in Printer(Uses()).expr(expr, LANES)


def test_a_scalar_is_divided():
    text = Printer(Uses()).expr(quantised(), PLAIN)
    assert text == "pc_cast_f32_u8(pc_round_f32(X[32 * i + v] / 0.5f))"
