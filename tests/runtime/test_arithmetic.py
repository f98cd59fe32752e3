"""Arithmetic of every type, scalar and vector, in each instruction set, against Python, NumPy."""

import operator
from itertools import product

import numpy as np
import pytest

from polyc.printing.runtime_table import FLOATS, FUNCTIONS, INTEGERS, STORABLE
from tests.runtime.native import (
    DTYPES,
    RUNNABLE,
    apply,
    compiled,
    function_loops,
    kind,
    value_functions,
)
from tests.sampling import sampled
from tests.scop.interpreter import philox

MATHEMATICS = {n for n, f in FUNCTIONS.items() if f.family != "core"}


each_isa = pytest.fixture(
    scope="module", params=sampled(RUNNABLE, often=RUNNABLE[:1]), ids=lambda isa: isa.name
)


@each_isa
def native(request, tmp_path_factory):
    """All but the arithmetic of integers, which takes longest to compile."""
    return build(request.param, tmp_path_factory, lambda *function: not is_integer(*function))


@each_isa
def native_integers(request, tmp_path_factory):
    return build(request.param, tmp_path_factory, is_integer)


def build(isa, folders, is_wanted):
    # The scalar functions are the same in each set, and costly to compile as gcc vectorises them.
    widths = (1, isa.lanes) if isa is RUNNABLE[0] else (isa.lanes,)
    functions = [
        (name, element, lanes)
        for element in STORABLE
        for name in value_functions(element)
        for lanes in widths
        if (element in INTEGERS or name not in MATHEMATICS) and is_wanted(name, element)
    ]
    return isa, widths, compiled(function_loops(functions), isa, folders.mktemp("arithmetic"))


def is_integer(name, element):
    return element in INTEGERS and name in integer_references(width=8)


def run(native, name, element, operands):
    """The function on whole arrays; scalar and vector loops must agree, bit for bit."""
    _, widths, library = native
    result = "b8" if FUNCTIONS[name].returns == "bool" else element
    results = [apply(library, f"{name}_{kind(element, n)}", result, *operands) for n in widths]
    assert all(r.tobytes() == results[0].tobytes() for r in results), (name, element)
    return results[0]


def columns(values, arity, dtype):
    """All `arity`-tuples of the values, as arrays padded to a multiple of 64."""
    rows = list(product(values, repeat=arity))
    rows += rows[: -len(rows) % 64] if len(rows) >= 64 else rows[:1] * (64 - len(rows))
    return [np.array(column, dtype) for column in zip(*rows, strict=True)]


# -- integers: Python's own, wrapped to the width ------------------------------------------------


def truncated(a, b):
    """a / b rounded towards zero, 0 where b is 0."""
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def integer_power(a, n):
    return a**n if n >= 0 else truncated(1, a**-n)


def shift_left(width):
    return lambda a, b: a << b if 0 <= b < width else 0


def shift_right(width):
    return lambda a, b: a >> b if 0 <= b < width else 0


def integer_references(width):
    return {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": truncated,
        "mod": lambda a, b: a % b if b else 0,
        "fmod": lambda a, b: a - truncated(a, b) * b if b else 0,
        "neg": operator.neg,
        "abs": abs,
        "sign": lambda a: (a > 0) - (a < 0),
        "min": min,
        "max": max,
        "fma": lambda a, b, c: a * b + c,
        "bitand": operator.and_,
        "bitor": operator.or_,
        "bitxor": operator.xor,
        "bitnot": operator.invert,
        "shl": shift_left(width),
        "shr": shift_right(width),
        "pow": integer_power,
        **{f: getattr(operator, f) for f in ("eq", "ne", "lt", "le", "gt", "ge")},
    }


@pytest.mark.thorough
@pytest.mark.parametrize("element", INTEGERS)
def test_integers_wrap_and_are_total(native_integers, element):
    info = np.iinfo(DTYPES[element])
    width = info.bits
    values = {0, 1, 2, 3, 7, width - 1, width, info.max // 2, info.max - 1, info.max}
    values |= {-1, -2, -5, -width, info.min, info.min + 1} if info.min else set()
    for name, reference in integer_references(width).items():
        few = sorted(values)
        if name == "pow":
            few = [v for v in few if abs(v) <= 64]
        operands = columns(few, FUNCTIONS[name].arity, DTYPES[element])
        got = run(native_integers, name, element, operands)
        exact = [reference(*map(int, row)) for row in zip(*operands, strict=True)]
        wrapped = [(e - info.min) % 2**width + info.min for e in exact]
        expected = np.array(exact if got.dtype == bool else wrapped, got.dtype)
        np.testing.assert_array_equal(got, expected, err_msg=f"{name} of {element}")


def test_random_bits(native):
    """Philox4x32-10 as its authors' table has it, and on all lanes as the same in NumPy."""
    zero = np.zeros(64, np.uint32)
    assert run(native, "philox", "u32", [zero] * 4)[0] == 0x6627E8D5
    edges = [0, 1, 2**31, 2**32 - 1]
    operands = columns(edges, 4, np.dtype(np.uint32))
    np.testing.assert_array_equal(run(native, "philox", "u32", operands), philox(*operands))


# -- floats: NumPy -------------------------------------------------------------------------------

FLOAT_REFERENCES = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "fmod": np.fmod,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "min": np.minimum,
    "max": np.maximum,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    "rounded": np.positive,
    "copysign": np.copysign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def float_values(dtype):
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.5, 3.7, 1e6 + 0.5]
    positive += [2.0**30 + 512, info.max, np.inf]
    return [*positive, *(-p for p in positive), np.nan]


@pytest.mark.parametrize("element", FLOATS)
def test_floats_follow_ieee(native, element):
    with np.errstate(all="ignore"):
        for name, reference in FLOAT_REFERENCES.items():
            arity = FUNCTIONS[name].arity
            operands = columns(float_values(DTYPES[element]), arity, DTYPES[element])
            got = run(native, name, element, operands)
            expected = reference(*operands)
            np.testing.assert_array_equal(got, expected, err_msg=f"{name} of {element}")
            if name in ("neg", "abs", "floor", "round", "trunc", "copysign", "mod"):
                finite = ~np.isnan(expected)
                signs = np.signbit(got[finite]), np.signbit(expected[finite])
                np.testing.assert_array_equal(*signs, err_msg=f"signs of {name} of {element}")


@pytest.mark.parametrize("element", FLOATS)
def test_fma_rounds_once_or_twice(native, element):
    isa, _, _ = native
    a, b, c = columns([1 + 2.0**-12, -3.25, 1e-3, 7.0, -(1 + 2.0**-11)], 3, DTYPES[element])
    got = run(native, "fma", element, [a, b, c])
    wide = np.longdouble
    fused = (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(DTYPES[element])
    assert np.all((got == a * b + c) | (got == fused))
    if isa.name != "baseline" and element == "f32":
        np.testing.assert_array_equal(got, fused)


# -- conditions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("element", STORABLE)
def test_select_takes_a_where_the_condition_holds(native, element):
    rng = np.random.default_rng(1)
    condition = rng.random(128) < 0.5
    a, b = (rng.integers(0, 2, 128).astype(DTYPES[element]) for _ in range(2))
    got = run(native, "select", element, [condition, a, b])
    assert got.tobytes() == np.where(condition, a, b).tobytes()


@pytest.mark.parametrize("element", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_select_by_comparison_is_select_of_the_comparison(native, element, comparison):
    values = [0, 1, 100, np.nan if element in FLOATS else 2]
    a, b = columns(values, 2, DTYPES[element])
    x, y = np.arange(a.size).astype(a.dtype), np.full(a.size, 77, a.dtype)
    got = run(native, f"select_{comparison}", element, [a, b, x, y])
    np.testing.assert_array_equal(got, np.where(getattr(operator, comparison)(a, b), x, y))


@pytest.mark.parametrize("element", STORABLE)
def test_bits_are_those_in_memory(native, element):
    rng, size = np.random.default_rng(2), np.dtype(DTYPES[element]).itemsize
    bits = rng.integers(0, 2 if element == "b8" else 2 ** (8 * size - 1), 128).astype(f"u{size}")
    values = bits.view(DTYPES[element])
    _, widths, library = native
    for lanes in widths:
        suffix = kind(element, lanes)
        got = apply(library, f"as_bits_{suffix}", f"u{8 * size}", values)
        np.testing.assert_array_equal(got, bits)
        assert apply(library, f"from_bits_{suffix}", element, bits).tobytes() == bits.tobytes()


@pytest.mark.parametrize("name", ["power_above", "power_nearest"])
def test_powers_of_two(native, name):
    x = np.resize([1, 1.5, 1.499, 1.75, 3, 5, 1e-39, 1e38, 0.7, -2.5, 2**-127, 0], 64).astype("f4")
    fraction, exponent = np.frexp(np.abs(x).astype(np.float64))  # in [0.5, 1)
    up = fraction > 0.5 if name == "power_above" else fraction >= 0.75
    power = np.where(x == 0, 0, np.ldexp(0.5, exponent + up))
    subnormal = np.abs(x) > (0 if name == "power_above" else 2.0**-127)
    power = np.where(np.abs(x) < 2.0**-126, np.where(subnormal, 2.0**-126, 0), power)
    np.testing.assert_array_equal(run(native, name, "f32", [x]), power.astype("f4"))


def test_booleans(native):
    a, b = columns([False, True], 2, bool)
    references = {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "eq": np.equal,
        "ne": np.not_equal,
    }
    for name, reference in references.items():
        np.testing.assert_array_equal(run(native, name, "b8", [a, b]), reference(a, b), name)
    np.testing.assert_array_equal(run(native, "not", "b8", [a]), ~a)
