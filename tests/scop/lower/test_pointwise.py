"""Elementwise operators against onnx's own cases, and against NumPy where the corners are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyc.scop.expr import Call, Const, Load, walk
from polyc.scop.scop import Scop
from tests.scop.check import backend_cases, check_case, check_node

OPS = (
    "Abs Neg Exp Log Sqrt Reciprocal Sign Floor Ceil Round Erf Not BitwiseNot IsNaN IsInf "
    "Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid "
    "Add Sub Mul Div Mod Pow Max Min Sum Mean And Or Xor Equal Less LessOrEqual Greater "
    "GreaterOrEqual BitShift BitwiseAnd BitwiseOr BitwiseXor Where PRelu Clip Cast CastLike"
)
FLOATS = np.array([0.0, -0.0, 1.0, -2.5, 3e38, -3e38, 1e-42, np.inf, -np.inf, np.nan], np.float32)


def functions(scop: Scop) -> list[str]:
    (statement,) = scop.statements
    return [e.function for e in walk(statement.value) if isinstance(e, Call)]


@pytest.mark.thorough
@pytest.mark.parametrize("case", backend_cases(*OPS.split()), ids=lambda case: case.name)
def test_backend_case(case):
    assert len(check_case(case).statements) == 1 or case.name.startswith("test_cast")


@settings(max_examples=25, deadline=None)
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0),
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Less", "Equal"]),
    st.sampled_from(["float32", "float64", "int8", "int32", "uint8", "int64"]),
    st.integers(0, 2**32 - 1),
)
def test_broadcasting(shapes, op, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(1, 9, shape).astype(dtype) for shape in shapes.input_shapes)
    scop = check_node(op, [a, b])
    expected = 1 if np.broadcast(a, b).size else 0
    assert len(scop.statements) == expected


@pytest.mark.parametrize(
    ("op", "function"),
    [("Add", np.add), ("Mul", np.multiply), ("Div", np.divide), ("Max", np.maximum),
     ("Min", np.minimum), ("Less", np.less), ("GreaterOrEqual", np.greater_equal),
     ("Equal", np.equal)],
)  # fmt: skip
def test_ieee_corners(op, function):
    with np.errstate(all="ignore"):
        expected = function(FLOATS[:, None], FLOATS)
    assert np.isnan(expected).any() or expected.dtype == bool
    check_node(op, [FLOATS[:, None], FLOATS], expected=[expected])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integer_division_truncates_and_modulo_floors(dtype):
    a, b = np.array([[7], [-7], [6]], dtype), np.array([2, -2, 3, -4], dtype)
    check_node("Div", [a, b], expected=[np.trunc(a / b).astype(dtype)])
    check_node("Mod", [a, b], expected=[np.mod(a, b)])
    check_node("Mod", [a, b], {"fmod": 1}, expected=[np.fmod(a, b)])


@pytest.mark.parametrize(
    ("exponent", "wanted"), [(1, []), (2, ["mul"]), (3, ["mul", "mul"]), (-1, ["reciprocal"]),
                             (0.5, ["pow"]), (7, ["pow"])],
)  # fmt: skip
def test_pow_by_a_constant(exponent, wanted):
    x = FLOATS[~np.isneginf(FLOATS)]
    power = np.array(exponent, np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), exponent).astype(np.float32)
    scop = check_node("Pow", [x, power], constant_inputs=(1,), expected=[expected])
    assert functions(scop) == wanted


@pytest.mark.parametrize(
    ("x", "e"),
    [("int32", "int64"), ("int64", "int32"), ("float32", "int64"), ("float32", "float64"),
     ("int32", "float32"), ("float64", "uint8")],
)  # fmt: skip
def test_pow_of_mixed_types(x, e):
    base, exponent = np.array([[1], [2], [3]], x), np.array([0, 1, 2, 5], e)
    expected = np.power(base.astype("f8"), exponent.astype("f8")).astype(x)
    check_node("Pow", [base, exponent], expected=[expected])


def test_pow_keeps_the_parity_of_large_exponents():
    base, exponent = np.array([-1, -1], np.float32), np.array([2**24, 2**24 + 1], np.int64)
    check_node("Pow", [base, exponent], expected=[np.array([1, -1], np.float32)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_cast_from_float_is_total(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.7, -0.9], np.float32)
    limits = np.iinfo(dtype)
    high, low = limits.max, limits.min
    expected = np.array([0, high, low, high, low, 2, 0], dtype)
    code = {"int8": 3, "uint8": 2, "int16": 5, "int32": 6, "uint32": 12, "int64": 7, "uint64": 13}
    check_node("Cast", [x], {"to": code[dtype]}, expected=[expected])


def test_cast_to_bool_and_back():
    x = np.array([0.0, -0.0, 0.3, np.nan, -5], np.float32)
    check_node("Cast", [x], {"to": 9}, expected=[x.astype(bool)])
    check_node("Cast", [x.astype(bool)], {"to": 1}, expected=[x.astype(bool).astype(np.float32)])


def test_cast_to_the_same_type_is_a_view():
    scop = check_node("Cast", [FLOATS], {"to": 1})
    assert functions(scop) == []
    assert scop.statements[0].array == scop.outputs[0]


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (None, 1), (-1, None), (None, None)])
def test_clip_keeps_nan(low, high):
    bounds = [None if b is None else np.array(b, np.float32) for b in (low, high)]
    expected = np.clip(FLOATS, low, high) if bounds != [None, None] else FLOATS
    check_node("Clip", [FLOATS, *bounds], expected=[expected])
    assert np.isnan(expected[-1])


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
def test_isinf_by_sign(positive, negative):
    flags = {"detect_positive": positive, "detect_negative": negative}
    expected = np.isposinf(FLOATS) & bool(positive) | np.isneginf(FLOATS) & bool(negative)
    scop = check_node("IsInf", [FLOATS], flags, expected=[expected])
    assert len(scop.statements) == 1


def test_single_constants_become_literals():
    x, c = np.ones((2, 3), np.float32), np.full((1, 1), 2.5, np.float32)
    (statement,) = check_node("Mul", [x, c], constant_inputs=(1,)).statements
    assert sum(isinstance(e, Load) for e in walk(statement.value)) == 1
    assert [e.value for e in walk(statement.value) if isinstance(e, Const)] == [2.5]
