"""Kernels beside Python: numbers, subscripts, conditions, and what a call may be given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc.errors import RuntimeFailure, ShapeError
from polyc.loops.run import call
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(7)


@polyc.kernel
def division(a, b, q, r, f):
    for i in range(len(a)):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]
        f[i] = a[i] / b[i]


@pytest.mark.parametrize("dtype", [thorough(np.int32), np.int64])
def test_quotients_and_remainders_are_those_of_python(dtype):
    values = np.array([-7, -6, -1, 0, 1, 6, 7, np.iinfo(dtype).max], dtype)
    a, b = (v.ravel().copy() for v in np.meshgrid(values, np.array([-3, -1, 2, 7], dtype)))
    check(division, a, b, np.zeros_like(a), np.zeros_like(a), np.zeros(len(a)))


def test_a_quotient_by_zero_is_zero_as_numpy_has_it():
    a, b = np.array([3, -3], np.int32), np.zeros(2, np.int32)
    q, r, f = np.ones(2, np.int32), np.ones(2, np.int32), np.ones(2)
    division(a, b, q, r, f)
    assert q.tolist() == [0, 0]
    assert r.tolist() == [0, 0]
    assert f.tolist() == [np.inf, -np.inf]


@polyc.kernel
def ends(x, y):
    y[0] = x[-1]
    y[-1] = x[0]
    for i in range(len(x)):
        y[i - 1] += x[i - 2]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_negative_subscripts_count_from_the_end(n):
    check(ends, RNG.random(n), np.zeros(n))


@polyc.kernel
def types(x32, x64, i32, i64, b, y32, y64, scale):
    half = 0.5
    for i in range(len(x32)):
        y32[i] = x32[i] * half + i
        y64[i] = x32[i] * x64[i] + scale
        i32[i] += i64[i] * 3
        i64[i] = i32[i] ** 2 - (i64[i] << 2)
        b[i] = (x32[i] < half and not (x32[i] > 0.1)) or b[i]
        t = min(x64[i], half, 0.25)
        y64[i] -= max(t, x32[i]) + math.sqrt(x64[i]) + abs(i - 4) + np.exp(x32[i])


def test_types_meet_as_in_numpy():
    n = 9
    x32, x64 = RNG.random(n, np.float32), RNG.random(n)
    i32 = RNG.integers(-99, 99, n).astype(np.int32)
    i64 = RNG.integers(-99, 99, n)
    y32, y64 = np.zeros(n, np.float32), np.zeros(n)
    check(types, x32, x64, i32, i64, RNG.random(n) < 0.5, y32, y64, 2.5, tolerance=1e-6)


@polyc.kernel
def stencil(u, v):
    n, m = u.shape
    for i in range(n):
        for j in range(m - 1, -1, -1):
            if i > 0 and i < n - 1 and 0 < j < m - 1:
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i][j + 1])
            else:
                v[i, j] = u[i, j] if j % 2 == 0 else -u[i, j]


@pytest.mark.parametrize("shape", [thorough((1, 1)), (2, 3), (5, 7), (0, 4), (4, 0)])
def test_conditions_on_loop_variables(shape):
    check(stencil, RNG.random(shape), np.zeros(shape))


@polyc.kernel
def backwards(x, y):
    for i in range(len(x) - 2, 0, -3):
        y[i] = y[i + 1] + x[i]
    for i in range(7, len(x) // 2, 2):
        y[i] *= 2


@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
def test_loops_with_steps(n):
    check(backwards, RNG.random(n), RNG.random(n))


@polyc.kernel
def clip(x, y, total):
    n = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            y[i] = x[i]
            n += 1
            for j in range(3):
                y[i] += j * x[i]
        elif x[i] > 0.25 and i > 0 and x[i - 1] < 0.5:
            y[i] = -1.0
        else:
            y[i] = 0.0
    total[0] = n


def test_conditions_on_data():
    check(clip, RNG.random(50), RNG.random(50), np.zeros(1, np.int64))


@polyc.kernel
def gather(x, index, y):
    for i in range(len(index)):
        y[i] = x[index[i]] if index[i] < 4 else x[index[i] - 4]


def test_subscripts_that_are_data():
    check(gather, RNG.random(5), np.array([0, -1, 4, 7, 3]), np.zeros(5))


def test_a_subscript_that_is_data_is_checked():
    with pytest.raises(RuntimeFailure, match="'gather': a subscript that is data"):
        gather(RNG.random(5), np.array([0, 1, 12]), np.zeros(3))


@polyc.kernel
def scale(x, a):
    for i in range(len(x)):
        x[i] *= a


@polyc.kernel
def twice(x, y, a):
    scale(x, 2 * a)
    for i in range(len(y)):
        y[i] += x[0]
    scale(y, a)


def test_calls_of_kernels_are_inlined():
    x, y = RNG.random(4), RNG.random(6)
    want = x * 3, (y + 3 * x[0]) * 1.5
    twice(x, y, 1.5)
    np.testing.assert_allclose(x, want[0])
    np.testing.assert_allclose(y, want[1])


@polyc.kernel
def add(add, int_, static):
    for mod in range(len(add)):
        add[mod] = int_[mod] + static[mod]


def test_names_of_arguments_may_be_words_of_c_and_of_isl():
    check(add, np.zeros(4), RNG.random(4), RNG.random(4))


def test_arrays_that_are_not_contiguous_are_changed_in_place():
    whole, b = np.zeros((6, 8)), RNG.random((8, 6))
    part = whole[::2, 1::3]
    scale_rows(part, b.T[:3, :3])
    np.testing.assert_allclose(part, 2 * b.T[:3, :3])
    assert np.count_nonzero(whole) == 9


@polyc.kernel
def scale_rows(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 2 * b[i, j]


def test_equal_names_mean_equal_sizes():
    square = polyc.kernel(scale_rows.python).compile(a=polyc.f64["n", "n"], b=polyc.f64["n", "n"])
    with pytest.raises(
        ShapeError, match="dimension 1 of argument 'b' is 5, but dimension 0 of arg"
    ):
        square(np.zeros((4, 4)), np.zeros((4, 5)))


def test_what_a_call_gives_is_checked():
    a = np.zeros((4, 4))
    with pytest.raises(ShapeError, match="leaves the array where a"):
        scale_rows(np.zeros((5, 4)), a)
    with pytest.raises(ShapeError, match="'a', which is written, shares memory with argument 'b'"):
        scale_rows(a, a)
    with pytest.raises(ShapeError, match="'a', which is written, shares memory"):
        scale_rows(a[:2], a[1:3])
    with pytest.raises(ShapeError, match="takes 2 arguments"):
        scale_rows(a)
    with pytest.raises(ShapeError, match="'b' is a list"):
        scale_rows(a, [[1.0]])
    with pytest.raises(ShapeError, match="complex128; kernels compute with"):
        scale_rows(a, a * 1j)
    b = a.copy()
    b.flags.writeable = False
    with pytest.raises(ShapeError, match="'a' is read-only"):
        scale_rows(b, a)
    broad = np.lib.stride_tricks.as_strided(np.zeros(4), (4, 4), (0, 8))
    with pytest.raises(ShapeError, match="elements that share memory"):
        scale_rows(broad, a)


def test_a_kernel_explains_itself():
    named = polyc.kernel(scale_rows.python).compile(a=polyc.f64["n", "m"], b=polyc.f64["n", "m"])
    text = named.explain()
    assert "a[i, j] = mul(2.0, b[i, j])" in text
    assert "1 statement executed in full" in text
    assert "b_" in named.source


def test_a_call_on_small_arrays_takes_one_thread(monkeypatch):
    taken = []
    monkeypatch.setattr(call, "available_cores", lambda: 7)
    monkeypatch.setattr(call, "launch", lambda *given: taken.append(given[-1]))

    @polyc.kernel
    def double(x):
        for i in range(len(x)):
            x[i] *= 2

    for n in (3, 1 << 20):
        double(np.ones(n))
    replace(double, threads=2)(np.ones(3))
    assert taken == [1, 7, 2]


@polyc.kernel(threads=2)
def steps(A, B, count):
    for _ in range(count):
        for i in range(1, len(A) - 1):
            B[i] = A[i - 1] + A[i + 1]
        for i in range(1, len(A) - 1):
            A[i] = B[i]


def test_a_worker_that_comes_late_has_the_sizes_of_its_call():
    """Those of the caller may be gone by then, and say how many loops there are."""
    for call_number in range(4000):
        n = 3 + call_number % 5
        A, B = np.ones(n), np.zeros(n)
        steps(A, B, 2)
        assert B[1] != 0
    assert "i64 sizes[3]" in steps._stored().bundle.sources["driver.c"]


@polyc.kernel
def fibonacci(x):
    a, b = 0.0, 1.0
    for i in range(len(x)):
        x[i] = a
        a, b = b, a + b


@polyc.kernel
def turn(x, y):
    n, m = x.shape[0], y.shape[0]
    for i in range(min(n, m)):
        x[i], y[i] = y[i], x[i]


@polyc.kernel
def rotate(x, y, angle):
    c, s = math.cos(angle), math.sin(angle)
    for i in range(len(x)):
        x[i], y[i] = c * x[i] - s * y[i], s * x[i] + c * y[i]


def test_several_values_are_read_before_any_is_assigned():
    for n in (0, 1, 2, 70):
        check(fibonacci, np.zeros(n))
        check(turn, RNG.random(n), RNG.random(n + 3))
        check(rotate, RNG.random(n), RNG.random(n), 0.3)


@polyc.kernel
def rounded_twice(x, y, r):
    for i in range(len(x)):
        r[i, 0] = math.sqrt(x[i])
        r[i, 1] = float(x[i]) + float(y[i])
        r[i, 2] = float(x[i]) * float(y[i])
        r[i, 3] = float(x[i]) / float(y[i])
        r[i, 4] = float(x[i]) - 0.5


def test_what_is_rounded_to_float32_at_once_is_computed_there():
    """It is the same number, among the smallest ones as well."""
    bits = RNG.integers(1, 2**31 - 2**24, 20_000).astype(np.uint32)
    bits[:200] = RNG.integers(1, 2**23, 200)  # below the smallest normal number
    x = bits.view(np.float32)
    y, r = RNG.permutation(x), np.zeros((len(x), 5), np.float32)
    rounded_twice(x, y, r)
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = np.stack([np.sqrt(a), a + b, a * b, a / b, a - 0.5], 1).astype(np.float32)
    np.testing.assert_array_equal(r, expected)
    assert "sqrt_f32(" in rounded_twice.source
    assert "f64" not in rounded_twice.source.split("void k0_")[1]
