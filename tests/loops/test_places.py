"""Writing where data says: scattering, counting, packing, against Python."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.errors import RuntimeFailure
from tests.loops.against_python import check

RNG = np.random.default_rng(5)


@polyc.kernel
def scatter(x, index, y):
    for i in range(len(index)):
        y[index[i]] = x[i] + y[i]


@polyc.kernel
def count(x, h):
    for i in range(len(x)):
        h[x[i]] += 1


@polyc.kernel
def add_at(r, c, w, h):
    for i in range(len(r)):
        h[r[i], 2 * c[i] + 1] += w[i]


@polyc.kernel
def largest_of(group, x, top):
    for i in range(len(x)):
        top[group[i]] = max(top[group[i]], x[i])


@polyc.kernel
def pack(x, kept, n):
    k = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            kept[k] = x[i]
            k += 1
    n[0] = k


@polyc.kernel
def halve(index, x):
    for i in range(len(index)):
        if index[i] < len(x):
            x[index[i]] //= 2


@polyc.kernel
def strided(x, y, step):
    for i in range(len(y)):
        x[i * step] = y[i]


@polyc.kernel
def count_rows(image, h):
    n, m = image.shape
    for i in range(n):
        for b in range(h.shape[1]):
            h[i, b] = 0
        for j in range(m):
            h[i, image[i, j] // 16] += 1


@polyc.kernel
def invert(permutation, inverse):
    for i in range(len(permutation)):
        inverse[permutation[i]] = i


@polyc.kernel
def bins(x, low, scale, h):
    for i in range(len(x)):
        k = int((x[i] - low) * scale)
        if k >= 0 and k < len(h):
            h[k] += 1
        else:
            h[0] -= 1


@polyc.kernel
def count_both(x, y, h, g):
    for i in range(len(x)):
        h[x[i]] += 1
        g[y[i]] += x[i]


@polyc.kernel
def exchange(index, a):
    for i in range(len(index)):
        a[i], a[index[i]] = a[index[i]], a[i]


@polyc.kernel
def join_sets(one, other, root):
    for k in range(len(one)):
        a = one[k]
        b = other[k]
        for _ in range(len(root)):
            if root[a] == a:
                break
            root[a] = root[root[a]]
            a = root[a]
        for _ in range(len(root)):
            if root[b] == b:
                break
            b = root[b]
        if a != b:
            root[b] = a


CASES = [
    (scatter, lambda n: (RNG.random(n), RNG.integers(-n, n, n), RNG.random(n))),
    (count, lambda n: (RNG.integers(-4, 7, n), np.zeros(7, np.int32))),
    (
        add_at,
        lambda n: (
            RNG.integers(0, 5, n),
            RNG.integers(0, 3, n).astype(np.int8),
            RNG.random(n),
            RNG.random((5, 7)),
        ),
    ),
    (largest_of, lambda n: (RNG.integers(0, 4, n), RNG.random(n), RNG.random(4))),
    (pack, lambda n: (RNG.random(n), np.zeros(n), np.zeros(1, np.int64))),
    (halve, lambda n: (RNG.integers(0, 2 * n, n), RNG.integers(-99, 99, n))),
    (strided, lambda n: (np.zeros(3 * n), RNG.random(n), 3)),
    (
        count_rows,
        lambda n: (
            RNG.integers(0, 256, (n, 3 * n)).astype(np.uint8),
            np.zeros((n, 16), np.int64),
        ),
    ),
    (
        count_both,
        lambda n: (
            RNG.integers(0, 5, n),
            RNG.integers(0, 6, n),
            np.zeros(5, np.int32),
            np.zeros(6, np.int64),
        ),
    ),
    (exchange, lambda n: (RNG.integers(0, max(n, 1), n), np.arange(n))),
    (join_sets, lambda n: (*RNG.integers(0, n + 1, (2, n)), np.arange(n + 1))),
    (invert, lambda n: (RNG.permutation(n), np.zeros(n, np.int64))),
    (bins, lambda n: (4 * RNG.random(n), 0.5, 3.0, np.zeros(8, np.int64))),
]


@pytest.mark.parametrize("n", [0, 1, 2, 37, 600])
@pytest.mark.parametrize(("kernel", "make"), CASES)
def test_it_means_what_python_means(kernel, make, n):
    check(kernel, *make(n))


def test_one_place_is_looked_at():
    count.compile(x=polyc.i64["n"], h=polyc.i64["m"])
    assert "eq(index(x[i], index(size_m)), index(slot)), 1, 0)" in count.explain()
    assert "const i64 c1 = pc_index(x_[c0], size_m, status);" in count.source
    assert "proven: " in count.explain()


def test_of_a_matrix_one_place_is_looked_at():
    add_at.compile(r=polyc.i64["n"], c=polyc.i64["n"], w=polyc.f64["n"], h=polyc.f64["p", "q"])
    assert "const i64 c1 = pc_index(r_[c0], size_p, status);" in add_at.source
    assert "const i64 c2 = pc_index(" in add_at.source


def test_rows_are_counted_in_parallel():
    count_rows.compile(image=polyc.u8["n", "m"], h=polyc.i64["n", "b"])
    assert "in parallel: loops of S0, S1" in count_rows.explain()


def test_a_place_outside_of_the_array_is_told():
    x, h = np.array([1, 2, 9]), np.zeros(4, np.int64)
    with pytest.raises(RuntimeFailure, match="a subscript that is data leaves its array"):
        count(x, h)


def test_a_schedule_of_ones_own_may_walk_over_all_places():
    places_first = polyc.kernel(schedule="order slot i | parallel slot")(count.python)
    check(places_first, RNG.integers(0, 7, 50), np.zeros(7, np.int64))


def test_a_local_of_one_branch_is_none_of_the_others():
    @polyc.kernel
    def steps(a, b, c):
        for i in range(len(a)):
            if a[i] > b[i]:
                s = a[i] - b[i]
                c[i] += s
                a[i] = s
            else:
                s = b[i]
                for k in range(3):
                    s = s / 2
                    c[i] -= s * k

    check(steps, *(RNG.random(60) for _ in range(3)))
    steps.compile(**dict.fromkeys("abc", polyc.f64["n"]))
    assert "in parallel: tiles of S0" in steps.explain()
