"""Expressions in C, by text: what prints as what, and what is asked of the runtime for it."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.loopnest import nodes as loopnest
from polyc.loopnest.index import Compare, Logic, floordiv, var
from polyc.loopnest.nodes import Assign, Local, Read, Value
from polyc.loopnest.registers import Register
from polyc.printing.literals import literal
from polyc.printing.print_expr import Printer
from polyc.printing.scope import Registers, Scope, Uses
from polyc.scop.expr import BOOL, INT64, Call, Cast, Const, call
from tests.analysis.nests import F32, at, loop, read

I32 = np.dtype(np.int32)
i, v = var("i"), var("v")
SHAPES = {"X": (8, 32), "Y": (8, 32), "K": (8,), "B": (8, 32)}
PLAIN = Scope(SHAPES, {}, None)
LANES = PLAIN.with_lanes(loop("v", 16, kind="vector"))
LATER = PLAIN.with_lanes(loop("v", 20, lower=16, kind="vector"))


def scalar(expr, scope=PLAIN):
    return Printer(Uses()).expr(expr, scope)


def assign(target, value, reduction=None, dtype=F32):
    return Assign("S", (), target, value, dtype, reduction)


def vector(of, scope=LANES):
    uses = Uses()
    return Printer(uses).vector(of, scope), uses


# -- scalars --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (read("X", i, v + 1), "X[32 * i + v + 1]"),
        (call("add", read("X", i, v), Const(1.0, F32)), "(X[32 * i + v] + 1.0f)"),
        (call("exp", call("add", read("X", 0, 0), read("X", 0, 1))), "pc_exp_f32(X[0] + X[1])"),
        (call("mul", Const(0.1, F32), Const(0.5, F32)), "((f32)0.1f * 0.5f)"),
        (call("max", read("X", 0, 0), Const(0.0, F32)), "pc_max_f32(X[0], 0.0f)"),
        (call("add", Value(i), Value(v)), "pc_add_i64((i64)(i), (i64)(v))"),
        (Cast(read("X", 0, 0), np.dtype("i4")), "pc_cast_f32_i32(X[0])"),
        (loopnest.Test(Compare("ge", i - 2)), "((i >= 2) ? 1 : 0)"),
        (Value(floordiv(i, 2), I32), "((i32)(pc_floordiv(i, 2)))"),
    ],
)
def test_scalars(expr, text):
    assert scalar(expr) == text


def test_a_comparison_is_named_by_the_type_it_compares():
    less = Call("lt", (read("X", 0, 0), read("X", 0, 1)), BOOL)
    assert scalar(less) == "pc_lt_f32(X[0], X[1])"
    picked = Call("select", (less, read("X", 0, 2), Const(0.0, F32)), F32)
    assert scalar(picked) == "pc_select_lt_f32(X[0], X[1], X[2], 0.0f)"
    wide = Call("select", (less, Value(i), Value(v)), INT64)
    assert scalar(wide) == "pc_select_i64(pc_lt_f32(X[0], X[1]), (i64)(i), (i64)(v))"


def test_a_computed_coordinate_is_checked_where_it_is_used():
    key = Call("index", (Read(at("K", i), INT64), Const(8, INT64)), INT64)
    gathered = Read(at("X", 0, v), F32, ((0, key),))
    assert scalar(gathered) == "X[v + 32 * pc_index(K[i], 8, status)]"
    last = Read(at("X", i, 0), F32, ((1, key),))
    assert scalar(last) == "X[32 * i + pc_index(K[i], 8, status)]"


def test_assignments():
    printer = Printer(Uses())
    value = call("add", read("X", 0, 0), read("X", 0, 1))
    assert printer.scalar(assign(at("Y", 0, 2), value), PLAIN) == "Y[2] = (X[0] + X[1]);"
    assert printer.scalar(assign(at("Y", 0, 2), value, "add"), PLAIN) == "Y[2] += X[0] + X[1];"
    text = printer.scalar(assign(at("Y", 0, 2), value, "max"), PLAIN)
    assert text == "Y[2] = pc_max_f32(Y[2], X[0] + X[1]);"
    total = assign(at("K", 0), Value(i), "add", INT64)
    assert printer.scalar(total, PLAIN) == "K[0] = pc_add_i64(K[0], (i64)(i));"


# -- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (read("X", i, v), "pc_load_f32x16(&X[32 * i])"),
        (read("X", v, i), "pc_loads_f32x16(&X[i], 32)"),
        (read("X", 0, i), "pc_splat_f32x16(X[i])"),
        (Const(1.0, F32), "pc_splat_f32x16(1.0f)"),
        (call("mul", read("X", i, v), Const(2.0, F32)),
         "(pc_load_f32x16(&X[32 * i]) * pc_splat_f32x16(2.0f))"),
        (Cast(read("X", i, v), np.dtype("f8")), "pc_cast_f32_f64x16(pc_load_f32x16(&X[32 * i]))"),
        (Value(v + i, I32), "pc_iota_i32x16((i32)(i))"),
        (Value(i, I32), "pc_splat_i32x16((i32)(i))"),
        (loopnest.Test(Compare("ge", v - 3)),
         "pc_ge_i64x16(pc_iota_i64x16((i64)(-3)), pc_splat_i64x16((i64)0))"),
    ],
)  # fmt: skip
def test_a_load_prints_by_its_stride(expr, text):
    assert scalar(expr, LANES) == text


def test_lanes_start_where_the_loop_does():
    assert scalar(read("X", i, v), LATER) == "pc_load_f32x4(&X[32 * i + 16])"


def test_an_irregular_load_is_written_out_lane_by_lane():
    text = scalar(read("X", 0, floordiv(v * 5, 2)), LATER)
    assert text == "(f32x4){X[40], X[42], X[45], X[47]}"


def test_elements_of_one_vector_are_picked_from_it():
    text = scalar(read("X", 0, floordiv(v, 2)), LATER)
    assert text == "pc_pick_f32x4(pc_loadn_f32x4(&X[8], 2), (i32x4){0, 0, 1, 1})"
    falling = scalar(read("X", 0, floordiv(v * -1, 2)), LATER)
    assert falling == "(f32x4){X[-8], X[-9], X[-9], X[-10]}"


def test_a_mask_in_memory_is_one_and_in_lanes_all_ones():
    mask = Read(at("B", 0, floordiv(v * 5, 2)), BOOL)
    assert scalar(mask, LATER) == "(b8x4){-B[40], -B[42], -B[45], -B[47]}"


def test_conditions_combine_in_lanes():
    both = Logic("and", (Compare("ge", v - 1), Compare("ge", i)))
    text = scalar(loopnest.Test(both), LATER)
    assert text.startswith("pc_and_b8x4(pc_ge_i64x4(pc_iota_i64x4")
    assert "pc_splat_i64x4(" in text


def test_stores_print_by_their_stride():
    value = read("X", i, v)
    assert vector(assign(at("Y", i, v), value))[0] == [
        "pc_store_f32x16(&Y[32 * i], pc_load_f32x16(&X[32 * i]));"
    ]
    assert vector(assign(at("Y", v, i), value))[0] == [
        "pc_stores_f32x16(&Y[i], pc_load_f32x16(&X[32 * i]), 32);"
    ]
    assert vector(assign(at("Y", i, v), value, "add"))[0] == [
        "pc_store_f32x16(&Y[32 * i], (pc_load_f32x16(&Y[32 * i]) + pc_load_f32x16(&X[32 * i])));"
    ]


def test_lanes_that_meet_in_one_element_are_reduced():
    lines, uses = vector(assign(at("Y", i, 0), read("X", i, v), "max"))
    reduced = "pc_reduce_max_f32x16(pc_load_f32x16(&X[32 * i]))"
    assert lines == [f"Y[32 * i] = pc_max_f32(Y[32 * i], {reduced});"]
    assert uses.functions == {("load", "f32", 16), ("reduce_max", "f32", 16), ("max", "f32", 1)}


def test_an_irregular_store_takes_its_lanes_one_by_one():
    lines, _ = vector(assign(at("Y", 0, floordiv(v, 2) + v), read("X", 0, v)), LATER)
    assert lines == [
        "{",
        "    const f32x4 pc_lanes = pc_load_f32x4(&X[16]);",
        "    Y[24] = pc_lanes[0];",
        "    Y[25] = pc_lanes[1];",
        "    Y[27] = pc_lanes[2];",
        "    Y[28] = pc_lanes[3];",
        "}",
    ]


def test_a_gathered_row_is_a_vector_and_gathered_elements_are_lanes():
    def gathered(key):
        computed = Call("index", (Read(at("K", key), INT64), Const(8, INT64)), INT64)
        return Read(at("X", 0, v), F32, ((0, computed),))

    row = "pc_load_f32x4(&X[16 + 32 * pc_index(K[i], 8, status)])"
    assert scalar(gathered(i), LATER) == row
    lanes = [f"X[{k} + 32 * pc_index(K[{k}], 8, status)]" for k in range(16, 20)]
    assert scalar(gathered(v), LATER) == f"(f32x4){{{', '.join(lanes)}}}"


def test_what_is_guarded_is_read_only_where_the_guard_holds():
    guarded = replace(read("X", 0, v), guarded=True)
    inside = loopnest.Test(Compare("ge", v - 18))
    moving = Call("select", (inside, guarded, Const(0.0, F32)), F32)
    printed = scalar(moving, LATER)
    assert printed.startswith("(f32x4){pc_select_f32(0 >= 2, X[(0 >= 2) ? 16 : 0], 0.0f), ")
    assert printed.endswith("pc_select_f32(1 >= 0, X[(1 >= 0) ? 19 : 0], 0.0f)}")
    alone = replace(read("X", 0, i), guarded=True)
    single = Call("select", (loopnest.Test(Compare("ge", i)), alone, Const(0.0, F32)), F32)
    assert scalar(single) == "pc_select_f32(i >= 0, X[(i >= 0) ? i : 0], 0.0f)"
    fixed = Call("select", (loopnest.Test(Compare("ge", i)), guarded, Const(0.0, F32)), F32)
    assert scalar(fixed, LATER) == "(i >= 0 ? pc_load_f32x4(&X[16]) : pc_splat_f32x4(0.0f))"
    everywhere = Call("select", (inside, read("X", 0, v), Const(0.0, F32)), F32)
    assert scalar(everywhere, LATER).startswith("pc_select_f32x4(pc_ge_i64x4(")


REGISTERS = Registers(
    Local("r", F32, (4, 32), "acc", True),
    {(3, k): Register((3, 0), 1, 16) for k in range(16)} | {(1, 2): Register((1, 2), 0, 1)},
)


def test_registers_are_named_by_their_first_element():
    scope = LANES.with_registers(REGISTERS)
    product = call("mul", read("X", i, v), read("X", 0, i))
    lines, _ = vector(assign(at("r", 3, v), product, "add"), scope)
    assert lines == ["r_3_0 += pc_load_f32x16(&X[32 * i]) * pc_splat_f32x16(X[i]);"]
    assert vector(assign(at("Y", i, v), read("r", 3, v)), scope)[0] == [
        "pc_store_f32x16(&Y[32 * i], r_3_0);"
    ]
    assert scalar(read("r", 1, 2), scope) == "pc_splat_f32x16(r_1_2)"


def test_one_element_of_a_register_is_a_lane():
    scope = PLAIN.with_registers(REGISTERS)
    assert scalar(read("r", 1, 2), scope) == "r_1_2"
    assert scalar(read("r", 3, 5), scope) == "r_3_0[5]"


# -- literals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1, "f4", "1.0f"),
        (0.1, "f4", "0.1f"),
        (-1e30, "f4", "-1e+30f"),
        (float("inf"), "f4", "__builtin_inff()"),
        (float("-inf"), "f8", "-__builtin_inf()"),
        (float("nan"), "f4", '__builtin_nanf("")'),
        (True, "?", "1"),
        (-5, "i4", "((i32)-5)"),
        (255, "u1", "((u8)255u)"),
        (2**64 - 1, "u8", "((u64)18446744073709551615ull)"),
        (-(2**63), "i8", "((i64)(-9223372036854775807ll - 1))"),
        (-(2**31), "i4", "((i32)(-2147483647ll - 1))"),
    ],
)
def test_literals(value, dtype, text):
    assert literal(value, np.dtype(dtype)) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_float_literals_are_exact(value):
    text = literal(value, F32)
    assert text.endswith("f")
    assert ctypes.c_float(float(text[:-1])).value == value
    assert float(literal(value, np.dtype("f8"))) == value
