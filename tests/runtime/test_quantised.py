"""Floats as bytes by a scale: bit for bit what division, rounding, sum and conversion give."""

import ctypes

import numpy as np
import pytest

from polyc.printing.runtime_table import LANES, preamble
from tests.runtime.native import DTYPES, RUNNABLE, Uses, compiled
from tests.sampling import sampled

SCALES = [1.0, 0.03723095, 0.0010727099, -0.25, 3.0, 1.9999999, 1e-30, 7e28, 255.0]
"""Of which the products decide."""

SELDOM = [1e-38, 1e-41, 2e38, 0.0, -0.0, np.inf, np.nan]
"""By which all is divided."""


def source() -> str:
    """A unit with `quantised_<type>_<lanes>(x, n, y, zero, out)`, and `levels_…`."""
    uses, texts = Uses(), []
    for element in ("u8", "i8"):
        for lanes in LANES:
            v = f"{element}x{lanes}"
            uses.functions |= {("quantised", element, lanes), ("store", element, lanes)}
            uses.functions |= {("load", "f32", lanes), ("store", "f32", lanes)}
            uses.functions.add(("levels", element, lanes))
            texts.append(
                f"void levels_{element}_{lanes}(const f32 *x, i64 n, f32 y, {element} zero, "
                f"f32 *out)\n{{ for (i64 i = 0; i < n; i += {lanes}) "
                f"pc_store_f32x{lanes}(out + i, "
                f"pc_levels_{v}(pc_load_f32x{lanes}(x + i), y, zero)); }}"
            )
            texts.append(
                f"void quantised_{element}_{lanes}(const f32 *x, i64 n, f32 y, {element} zero, "
                f"{element} *out)\n{{ for (i64 i = 0; i < n; i += {lanes}) "
                f"pc_store_{v}(out + i, pc_quantised_{v}(pc_load_f32x{lanes}(x + i), y, zero)); }}"
            )
    return preamble(uses) + "\n".join(texts)


@pytest.fixture(scope="module", params=sampled(RUNNABLE, often=RUNNABLE[:1]), ids=lambda i: i.name)
def native(request, tmp_path_factory):
    return compiled(source(), request.param, tmp_path_factory.mktemp("quantised"))


def quantise(library, element, lanes, x, scale, zero, function="quantised"):
    out = np.zeros(x.size, DTYPES[element] if function == "quantised" else np.float32)
    kind = ctypes.c_uint8 if element == "u8" else ctypes.c_int8
    getattr(library, f"{function}_{element}_{lanes}")(
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_int64(x.size),
        ctypes.c_float(scale),
        kind(zero),
        ctypes.c_void_p(out.ctypes.data),
    )
    return out


def expected(x, scale, zero, dtype):
    with np.errstate(all="ignore"):
        moved = np.rint(x / np.float32(scale)) + np.float32(zero)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.where(np.isnan(moved), 0, np.clip(moved, low, high)).astype(dtype)


def numbers(scale: float) -> np.ndarray:
    """Patterns of bits, and numbers whose quotients are halves, or as near to one as floats are."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 2**14, np.uint32).view(np.float32)
    spread = rng.uniform(-400, 400, 2**14)
    halves = np.concatenate([np.arange(-520, 521) + 0.5, [2.0**22, 2.0**23, -(2.0**31), 2.0**40]])
    with np.errstate(all="ignore"):
        at = (halves * np.float64(scale)).astype(np.float32)
        near = [at]
        for limit in (-np.inf, np.inf):
            moved = at
            for _ in range(3):
                moved = np.nextafter(moved, np.float32(limit))
                near.append(moved)
        special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, -3.4e38])
        x = np.concatenate([patterns, spread.astype("f4") * np.float32(scale), *near, special])
    return np.resize(x, -(-x.size // 64) * 64)


@pytest.mark.parametrize("element", ["u8", "i8"])
def test_bytes_are_those_of_the_division(native, element):
    dtype = np.dtype(DTYPES[element])
    for scale in (*SCALES, *SELDOM):
        x = numbers(scale)
        for zero in (np.iinfo(dtype).min, 0, 3, np.iinfo(dtype).max):
            wanted = expected(x, scale, zero, dtype)
            for lanes in LANES:
                got = quantise(native, element, lanes, x, scale, zero)
                np.testing.assert_array_equal(got, wanted, f"{scale} {zero} {lanes}")
                levels = quantise(native, element, lanes, x, scale, zero, "levels")
                moved = (wanted.astype(np.int32) - zero).astype(np.float32)
                np.testing.assert_array_equal(
                    levels.view(np.uint32), moved.view(np.uint32), f"{scale} {zero} {lanes}"
                )


def test_quotients_of_any_scale(native):
    """Scales by their bits, and numbers at halves: the margin covers what rounding may do."""
    rng = np.random.default_rng(1)
    fractions = rng.integers(0, 2**23, 256, np.uint32)
    edges = np.array([0, 1, 2, 2**23 - 1, 2**23 - 2], np.uint32)
    lanes = max(LANES)
    for fraction in (*edges, *fractions):
        scale = (np.uint32(127 << 23) | fraction).view(np.float32)
        at = ((np.arange(256) + 0.5) * np.float64(scale)).astype(np.float32)
        near = [np.nextafter(at, np.float32(0)), at, np.nextafter(at, np.float32(np.inf))]
        x = np.concatenate([*near, -at]).astype(np.float32)
        for element in ("u8", "i8"):
            got = quantise(native, element, lanes, x, scale, 0)
            np.testing.assert_array_equal(got, expected(x, scale, 0, got.dtype), f"{scale}")
