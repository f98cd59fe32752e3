"""Elements of all of NumPy's types of numbers: bytes of images, halves, counters that wrap."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polyc
from bench.polybench.everyday import grey, integral
from tests.loops.against_python import check

RNG = np.random.default_rng(7)
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TYPES = ["float16", "float32", "float64", *INTEGERS]


def numbers(dtype: str, n: int) -> np.ndarray:
    """Some of a type, its ends and 0 among them."""
    if np.dtype(dtype).kind == "f":
        return (3 * RNG.standard_normal(n)).astype(dtype)
    ends = np.iinfo(dtype)
    found = RNG.integers(max(ends.min, -(2**40)), min(ends.max, 2**40), n).astype(dtype)
    found[:3] = ends.min, ends.max, 0
    return found


@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (40, 70)])
def test_images_of_bytes(shape):
    image = RNG.integers(0, 256, (*shape, 3), np.uint8)
    check(grey, image, np.zeros(shape))
    check(integral, image[:, :, 0].copy(), np.zeros(shape, np.int32))


@polyc.kernel
def arithmetic(a, b, y):
    for i in range(len(a)):
        y[i, 0] = a[i] + b[i]
        y[i, 1] = a[i] * 3 - b[i]
        y[i, 2] = -a[i] if a[i] < b[i] else a[i]
        y[i, 3] = max(a[i], b[i]) - min(a[i], 7)
        y[i, 4] = a[i] % 5 + b[i] // 3
        y[i, 5] = a[i] * b[i] + a[i] * a[i]


@pytest.mark.parametrize("dtype", TYPES)
def test_results_are_rounded_or_wrap_in_their_type(dtype):
    a, b = numbers(dtype, 37), numbers(dtype, 37)
    tolerance = 2e-3 if dtype == "float16" else 1e-12
    check(arithmetic, a, b, np.zeros((37, 6), dtype), tolerance=tolerance)


@polyc.kernel
def mixed(a, b, y):
    for i in range(len(a)):
        y[i] = a[i] + b[i]


@pytest.mark.parametrize("pair", [("uint8", "int8"), ("int16", "uint16"), ("uint8", "float16")])
def test_two_types_meet_where_numpy_says(pair):
    a, b = (numbers(dtype, 19) for dtype in pair)
    check(mixed, a, b, np.zeros(19, np.result_type(*pair)))


@polyc.kernel
def compare(a, y):
    for i in range(len(a)):
        y[i, 0] = a[i] > -1
        y[i, 1] = a[i] < 300
        y[i, 2] = a[i] == 255
        y[i, 3] = a[i] >= i


@pytest.mark.parametrize("dtype", INTEGERS[:-1])
def test_a_literal_keeps_its_value_in_a_comparison(dtype):
    check(compare, numbers(dtype, 29), np.zeros((29, 4), bool))


@polyc.kernel
def hash_rows(data, hashes):
    n, m = data.shape
    for i in range(n):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(m):
            h = (h ^ np.uint64(data[i, j])) * np.uint64(0x100000001B3)
        hashes[i] = h


def test_hashes_wrap():
    data = RNG.integers(0, 256, (5, 40), np.uint8)
    check(hash_rows, data, np.zeros(5, np.uint64))


@polyc.kernel
def roots(a, y):
    for i in range(len(a)):
        y[i] = np.sqrt(a[i])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "float16"])
def test_functions_of_numpy_compute_integers_in_the_float_that_numpy_takes(dtype):
    a = np.abs(numbers(dtype, 23))
    expected = np.sqrt(a)
    y = np.zeros(23, expected.dtype)
    roots(a, y)
    np.testing.assert_array_equal(y, expected)


def test_a_float_that_an_integer_cannot_hold_becomes_the_nearest():
    @polyc.kernel
    def store(x, y):
        for i in range(len(x)):
            y[i] = x[i]

    y = np.zeros(4, np.uint8)
    store(np.array([-3.7, 300.0, 254.6, 0.4]), y)
    assert y.tolist() == [0, 255, 254, 0]


def test_sums_in_halves_are_rounded_at_each_step():
    @polyc.kernel
    def total(x, s):
        for i in range(len(x)):
            s[0] += x[i]

    x = np.full(3000, 1, np.float16)  # 2048 + 1 is 2048
    check(total, x, np.zeros(1, np.float16), tolerance=0)


def test_a_literal_outside_of_a_type_is_refused():
    @polyc.kernel
    def shift(x):
        for i in range(len(x)):
            x[i] = x[i] + 300

    with pytest.raises(polyc.errors.UnsupportedLoop, match="300 is out of bounds for uint8"):
        shift(np.zeros(3, np.uint8))


def test_types_can_be_said_ahead():
    kernel = polyc.kernel(integral.python)
    kernel.compile(image=polyc.u8["n", "m"], table=polyc.i32["n", "m"])
    image = RNG.integers(0, 256, (6, 9), np.uint8)
    table = np.zeros((6, 9), np.int32)
    kernel(image, table)
    np.testing.assert_array_equal(table, image.astype(np.int32).cumsum(0).cumsum(1))


def test_what_never_runs():
    @polyc.kernel
    def choose(a, y):
        for i in range(len(y)):
            y[i] = a[i] if i < i else 2 if i < 0 and a[i] > 0 else 3 if i >= 0 or a[i] > 0 else 4

    check(choose, np.ones(5, np.uint8), np.zeros(5))

    @polyc.kernel
    def nothing(y):
        for i in range(len(y)):
            if i > i:
                y[i] = math.pi

    with pytest.raises(polyc.errors.UnsupportedLoop, match="nothing is ever executed"):
        nothing(np.zeros(3))
