"""Whole numbers of 64 bits in 32: the same results, and none where they would differ."""

from __future__ import annotations

import math

import islpy as isl
import numpy as np
import pytest

import polyc
from bench.polybench.inference import blend, box_blur, brighten, sum_of_rows
from polyc.loops.lower.narrow import narrow
from polyc.scop.expr import BOOL, INT64, Call, Cast, Const, Expr, Index, Load, call, cast, walk
from tests.loops.against_python import check

INT32, FLOAT64 = np.dtype(np.int32), np.dtype(np.float64)
RNG = np.random.default_rng(11)

DIVISOR = 1
BINARY = ("add", "sub", "mul", "div", "mod", "fmod", "larger", "smaller", "bitand", "bitor")
UNARY = ("neg", "abs", "bitnot")
COMPARED = {"lt": np.less, "ge": np.greater_equal, "eq": np.equal}


def _load(name: str, dtype: np.dtype) -> Expr:
    return Load(name, isl.PwMultiAff(f"{{ S[] -> {name}[0] }}"), dtype)


def _wide(name: str, dtype: str) -> Expr:
    return cast(_load(name, np.dtype(dtype)), INT64)


def _count_wide(expr: Expr) -> int:
    """The operations on 64 bits."""
    return sum(isinstance(e, Call) and e.dtype == INT64 for e in walk(expr))


def _random(depth: int) -> Expr:
    """A whole number of 64 bits, of small and large ones."""
    kind = RNG.integers(8) if depth else RNG.integers(2)
    if kind == 0:
        return Const(int(RNG.choice([0, 1, 3, -7, 8, 255, 2**31 - 1, -(2**31), 2**40])), INT64)
    if kind == 1:
        name = str(RNG.choice(["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64"]))
        return _wide(name, name)
    if kind == 2:
        return call(str(RNG.choice(UNARY)), _random(depth - 1))
    if kind == 3:
        test = call(str(RNG.choice([*COMPARED])), _random(depth - 1), _random(depth - 1))
        return call("select", test, _random(depth - 1), _random(depth - 1))
    if kind == 4:
        shift = Const(int(RNG.integers(0, 12)), INT64)
        return call(str(RNG.choice(["shl", "shr"])), _random(depth - 1), shift)
    if kind == 5:
        dtype = np.dtype(str(RNG.choice(["uint8", "int16", "int32", "uint32"])))
        return cast(cast(_random(depth - 1), dtype), INT64)
    return call(str(RNG.choice(BINARY)), _random(depth - 1), _random(depth - 1))


def _wrap(number: int, dtype: np.dtype) -> int:
    bits, signed = 8 * dtype.itemsize, dtype.kind == "i"
    low = number % (1 << bits)
    return low - (1 << bits) if signed and low >= 1 << (bits - 1) else low


def _evaluate(expr: Expr, data: dict[str, int]) -> int:
    """The expression on Python's numbers, which have no end, by the rules of the runtime."""
    match expr:
        case Const(value=number):
            return int(number)
        case Load(array=name):
            return data[name]
        case Cast(argument, dtype):
            return _wrap(_evaluate(argument, data), dtype)
        case Call(function, arguments, dtype):
            values = [_evaluate(a, data) for a in arguments]
            found = _apply(function, values, arguments[-1].dtype)
            return found if dtype == BOOL else _wrap(found, dtype)
    raise AssertionError(expr)


def _apply(function: str, values: list[int], dtype: np.dtype) -> int:
    a, b = values[0], values[-1]
    match function:
        case "select":
            return values[1] if values[0] else values[2]
        case "lt" | "ge" | "eq":
            return bool(COMPARED[function](a, b))
        case "div":
            return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0
        case "mod":
            return a % b if b else 0
        case "fmod":
            return int(math.copysign(1, a)) * (abs(a) % abs(b)) if b else 0
        case "shl" | "shr" if not 0 <= b < 8 * dtype.itemsize:
            return 0
        case _:
            return {
                "add": lambda: a + b,
                "sub": lambda: a - b,
                "mul": lambda: a * b,
                "neg": lambda: -a,
                "abs": lambda: abs(a),
                "bitnot": lambda: ~a,
                "bitand": lambda: a & b,
                "bitor": lambda: a | b,
                "larger": lambda: max(a, b),
                "smaller": lambda: min(a, b),
                "shl": lambda: a << b,
                "shr": lambda: a >> b,
            }[function]()


def test_random_expressions_keep_their_values():
    types = ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64")
    infos = {name: np.iinfo(name) for name in types}
    shorter = 0
    for _ in range(1500):
        expr = _random(int(RNG.integers(1, 5)))
        expr = cast(expr, np.dtype(str(RNG.choice(["uint8", "int16", "int32", "int64"]))))
        narrowed = narrow(expr)
        assert narrowed.dtype == expr.dtype
        shorter += _count_wide(narrowed) < _count_wide(expr)
        for _ in range(12):
            data = {
                name: int(
                    RNG.choice([info.min, info.max, RNG.integers(info.min, info.max, dtype=name)])
                )
                for name, info in infos.items()
            }
            assert _evaluate(narrowed, data) == _evaluate(expr, data), expr
    assert shorter > 300


def test_what_types_bound_has_32_bits():
    difference = call("sub", _wide("a", "uint8"), _wide("b", "uint8"))
    assert _count_wide(narrow(call("abs", difference))) == 0
    assert _count_wide(narrow(call("gt", difference, Const(5, INT64), dtype=BOOL))) == 0
    product = call("mul", _wide("a", "uint16"), _wide("b", "uint16"))
    assert narrow(product) == product  # 65535 ** 2 needs 32 bits without a sign
    assert _count_wide(narrow(cast(product, np.dtype(np.uint8)))) == 0


def test_lowest_bits_do_not_follow_from_lowest_bits_of_a_quotient():
    number = call("add", _wide("w", "int64"), _wide("a", "uint8"))
    for function in ("div", "mod", "larger"):
        expr = cast(call(function, number, Const(3, INT64)), np.dtype(np.uint8))
        assert narrow(expr) == expr
    shifted = cast(call("shr", number, Const(28, INT64)), np.dtype(np.uint8))
    assert narrow(shifted) == shifted  # needs 36 bits
    assert narrow(cast(call("shr", number, Const(24, INT64)), np.dtype(np.uint8))) != shifted


def test_floats_between_bounds_are_converted_at_once():
    x = _load("x", FLOAT64)
    clipped = call("smaller", call("larger", x, Const(0.0, FLOAT64)), Const(255.0, FLOAT64))
    assert narrow(cast(cast(clipped, INT64), np.dtype(np.uint8))) == cast(clipped, np.dtype("u1"))
    wide = cast(cast(call("larger", x, Const(0.0, FLOAT64)), INT64), np.dtype(np.uint8))
    assert narrow(wide) == wide
    # What a first conversion keeps within bounds may lie beyond those of a second.
    twice = cast(cast(x, np.dtype(np.uint8)), np.dtype(np.int16))
    assert narrow(twice) == twice
    inside = cast(cast(clipped, np.dtype(np.uint8)), np.dtype(np.int16))
    assert narrow(inside) == cast(clipped, np.dtype(np.int16))
    # NaN may give way to the other: larger(larger(NaN, 5), y) is y, which may be less than 5.
    beside = call("larger", call("larger", x, Const(5.0, FLOAT64)), _load("y", FLOAT64))
    both = call("smaller", beside, Const(255.0, FLOAT64))
    assert narrow(cast(cast(both, INT64), np.dtype(np.uint8))).argument.dtype != FLOAT64


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (5, 64), (2, 131)])
def test_images_of_bytes(shape):
    one, other = (RNG.integers(0, 256, shape).astype(np.uint8) for _ in range(2))
    out = np.zeros(shape, np.uint8)
    check(brighten, one, 1.37, out)
    check(brighten, RNG.standard_normal(shape) * 200, 1.0, out)
    for w in (0, 77, 256):
        check(blend, one, other, w, out)
    for w in (-5, 300, 2**35 + 3):  # NumPy refuses to store what wraps here
        blend(one, other, w, out)
        whole = one.astype(np.int64) * w + other.astype(np.int64) * (256 - w)
        np.testing.assert_array_equal(out, (whole // 256).astype(np.uint8))
    assert "i64x" not in blend.source
    assert "pc_cast_f64_u8x" in brighten.source


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 8, 64])
def test_quotients_and_remainders_round_down(divisor):
    def divide(a, b, c):
        for i in range(len(a)):
            b[i] = a[i] // DIVISOR
            c[i] = a[i] % DIVISOR

    kernel = polyc.kernel(_with(divide, divisor))
    for dtype in (np.int64, np.int32, np.int8):
        info = np.iinfo(dtype)
        a = np.array([*range(-20, 20), info.min, info.max, info.min + 1], dtype)
        check(kernel, a, np.zeros_like(a), np.zeros_like(a))


def _with(function, divisor):
    """A function whose global `DIVISOR` is a number."""
    function.__globals__["DIVISOR"] = divisor
    return function


@polyc.kernel
def differences(a, b, out):
    n, m = out.shape
    for y in range(n):
        for x in range(m):
            s = 0
            for i in range(8):
                for j in range(8):
                    d = abs(int(a[i, j]) - int(b[y + i, x + j]))
                    s += d * d
            out[y, x] = s


@polyc.kernel
def powers(a, out):
    for i in range(len(a)):
        p = 1
        for _ in range(5):
            p = p * int(a[i])
        out[i] = p


@polyc.kernel
def far(a, t, out):
    for i in range(len(a)):
        out[i] = 200 if a[i] > t else (7 if a[i] == t else 0)


def test_a_local_that_so_many_are_added_to_has_32_bits():
    a = RNG.integers(0, 256, (9, 40)).astype(np.uint8)
    check(box_blur, a, np.zeros_like(a))
    check(differences, a[:8, :8].copy(), a, np.zeros((2, 33), np.int32))
    for kernel in (box_blur, differences):
        assert "i32 s" in kernel.source or "i32x" in kernel.source
        assert "i64x" not in kernel.source


def test_a_local_that_may_hold_more_keeps_64_bits():
    a = np.full((2, 70_000), 2**15 - 1, np.int16)
    out = np.zeros(2, np.int64)
    sum_of_rows(a, out)
    np.testing.assert_array_equal(out, a.sum(1, dtype=np.int64))
    assert out[0] > 2**31
    check(powers, np.arange(-120, 120, dtype=np.int8), np.zeros(240, np.int64))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32])
def test_a_size_is_compared_as_it_is(dtype):
    info = np.iinfo(dtype)
    a = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    for t in (info.min - 1, info.min, 0, 1, info.max, info.max + 1, 2**33, -(2**33), 2**32):
        check(far, a, t, np.zeros(6, np.int64))


def test_what_is_not_the_same_everywhere_is_no_size():
    """A value of several pieces would be clamped in every iteration."""
    a = _wide("a", "uint8")
    for text in ("{ S[i] -> [(i)] }", "{ S[i] -> [(i)] : i < 5; S[i] -> [(7)] : i >= 5 }"):
        expr = call("gt", a, Index(isl.PwAff(text), INT64), dtype=BOOL)
        assert narrow(expr) == expr
    size = call("gt", a, Index(isl.PwAff("[t] -> { S[i] -> [(t)] }"), INT64), dtype=BOOL)
    assert _count_wide(narrow(size)) == 2  # min and max, once
