"""Conversions between all pairs of types, scalar and vector, against NumPy and the stated rules."""

import itertools

import numpy as np
import pytest

from polyc.printing.runtime_table import INTEGERS, NARROW, STORABLE, TYPES, is_cast
from polyc.types.element_types import bit_width
from tests.runtime.native import DTYPES, RUNNABLE, apply, cast_loops, compiled, kind
from tests.sampling import thorough

PAIRS = [(a, b) for a in TYPES for b in TYPES if a != b]
NARROWING = [(a, b) for a in STORABLE for b in STORABLE if is_cast(a, b) and {a, b} & {*NARROW}]


each_isa = pytest.fixture(scope="module", params=RUNNABLE, ids=lambda isa: isa.name)


@each_isa
def native(request, tmp_path_factory):
    """Conversions from and to narrow types."""
    return build(request.param, tmp_path_factory, NARROWING)


@each_isa
def native_pairs(request, tmp_path_factory):
    """All others, which take longest to compile."""
    return build(request.param, tmp_path_factory, PAIRS)


def build(isa, folders, pairs):
    loops = cast_loops((a, b, lanes) for a, b in pairs for lanes in (1, isa.lanes))
    return isa, compiled(loops, isa, folders.mktemp("cast"))


def values(element):
    """64 or 128 values of the type: its extremes, those of other types, and what lies between."""
    if element == "b8":
        return np.arange(64) % 3 == 0
    powers = [2**n for n in (0, 1, 6, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)]
    numbers = [p + d for p in powers for d in (-1, 0)]
    if element in INTEGERS:
        info = np.iinfo(DTYPES[element])
        width = info.bits
        numbers += [-p for p in numbers]
        wrapped = [(n - info.min) % 2**width + info.min for n in numbers]
        return np.resize(np.array(wrapped, DTYPES[element]), 64)
    extras = [0.5, 0.99, 1.5, 127.9, 128.5, 255.9, 1e-30, 1e30, np.inf]
    floats = [np.nan, *map(float, numbers), *extras]
    return np.resize(np.array([*floats, *(-f for f in floats)], DTYPES[element]), 128)


def expected(x, target):
    dtype = np.dtype(DTYPES[target])
    with np.errstate(all="ignore"):
        if target == "b8":
            return x != 0
        if x.dtype.kind == "f" and target in INTEGERS:
            info = np.iinfo(dtype)
            clamped = [0 if np.isnan(v) else max(info.min, min(info.max, v)) for v in x.tolist()]
            return np.array([int(v) for v in clamped], dtype)
        return x.astype(dtype)


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion(native_pairs, source, target):
    isa, library = native_pairs
    x = values(source)
    for lanes in (1, isa.lanes):
        got = apply(library, f"cast_{source}_{kind(target, lanes)}", target, x)
        np.testing.assert_array_equal(got, expected(x, target), err_msg=f"{lanes} lanes")


def every(element):
    """All values of a narrow type."""
    dtype = np.dtype(DTYPES[element])
    return np.arange(2 ** bit_width(dtype)).astype(f"u{dtype.itemsize}").view(dtype)


def neighbourhood(element):
    """float32: the values of a narrow type, what lies halfway between two, and just beside."""
    x = every(element).astype(np.float32)
    positive = np.unique(x[np.isfinite(x) & (x >= 0)]).astype(np.float64)
    beyond = 2 * positive[-1] - positive[-2]
    halves = ((positive + np.append(positive[1:], beyond)) / 2).astype(np.float32)
    near = [np.nextafter(halves, np.float32(to)) for to in (0, np.inf)]
    special = np.array([np.inf, 3e38, 1e-45, 1e-38, 0], np.float32)
    found = np.concatenate([positive.astype(np.float32), halves, *near, special])
    found = np.concatenate([found, -found])
    return np.resize(found, -(-found.size // 64) * 64)


FORMATS = [n for n, wide in NARROW.items() if wide == "f32" and n != "f8e8m0"]
WITH_NAN = [n for n in FORMATS if np.isnan(every(n).astype(np.float32)).any()]


@pytest.mark.parametrize(
    ("native", "element"),
    [
        thorough(*pair) if (pair[0].name, pair[1]) == ("baseline", "f16") else pair
        for pair in itertools.product(RUNNABLE, FORMATS)
    ],
    indirect=["native"],
    scope="module",
    ids=lambda v: getattr(v, "name", v),
)
def test_narrowing_rounds_to_the_nearest_even(native, element):
    isa, library = native
    x = neighbourhood(element)
    with np.errstate(over="ignore"):
        wanted = x.astype(DTYPES[element])
    nan, bits = np.isnan(wanted.astype(np.float32)), f"u{wanted.itemsize}"
    for lanes in (1, isa.lanes):
        got = apply(library, f"cast_f32_{kind(element, lanes)}", element, x)
        np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
        np.testing.assert_array_equal(got.view(bits)[~nan], wanted.view(bits)[~nan])


@pytest.mark.parametrize("element", WITH_NAN)
def test_nan_stays_nan(native, element):
    isa, library = native
    x = np.full(64, np.nan, np.float32)
    for lanes in (1, isa.lanes):
        got = apply(library, f"cast_f32_{kind(element, lanes)}", element, x)
        assert np.isnan(got.astype(np.float32)).all()


@pytest.mark.parametrize("element", NARROW)
def test_widening_is_exact(native, element):
    isa, library = native
    x = np.resize(every(element), max(64, every(element).size))
    for lanes in (1, isa.lanes):
        wide = NARROW[element]
        got = apply(library, f"cast_{element}_{kind(wide, lanes)}", wide, x)
        np.testing.assert_array_equal(got, x.astype(DTYPES[wide]))
        if element in FORMATS:
            np.testing.assert_array_equal(np.signbit(got), np.signbit(x.astype(np.float32)))


@pytest.mark.parametrize("element", [n for n, wide in NARROW.items() if wide != "f32"])
def test_narrow_integers_keep_the_lowest_bits(native, element):
    isa, library = native
    x = np.arange(256).astype(np.uint8).view(DTYPES[NARROW[element]])
    for lanes in (1, isa.lanes):
        got = apply(library, f"cast_{NARROW[element]}_{kind(element, lanes)}", element, x)
        np.testing.assert_array_equal(got.view(np.uint8), x.astype(DTYPES[element]).view(np.uint8))


def test_a_power_is_the_exponent_of_a_float(native):
    isa, library = native
    x = np.resize(np.array([1, 1.9, 2, 0.75, 2**-126, 1e-40, 3e38, np.inf, np.nan], "f4"), 64)
    for lanes in (1, isa.lanes):
        got = apply(library, f"cast_f32_{kind('f8e8m0', lanes)}", "f8e8m0", x)
        np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint32) >> 23)
