"""`break` and `continue`, against Python."""

from __future__ import annotations

import re

import numpy as np
import pytest

import polyc
from bench.polybench.data import search
from tests.loops.against_python import check

RNG = np.random.default_rng(7)


@polyc.kernel
def until(x, y, n):
    k = 0
    for i in range(len(x)):
        if x[i] < 0.1:
            break
        y[i] = 2 * x[i]
        k += 1
    n[0] = k


@polyc.kernel
def skip(x, y):
    for i in range(len(x)):
        if x[i] < 0.3:
            continue
        y[i] = x[i]
        if x[i] > 0.8:
            y[i] += 1
            continue
        y[i] -= 1


@polyc.kernel
def either(x, y):
    for i in range(len(x)):
        if x[i] < 0.2:
            if y[i] < 0.5:
                break
            y[i] = 0
        elif x[i] < 0.4:
            continue
        else:
            y[i] += 1
        if y[i] == 1:
            break
        y[i] = y[i] * x[i]


@polyc.kernel
def escape(re, im, count):
    for p in range(len(re)):
        a = 0.0
        b = 0.0
        count[p] = 50
        for t in range(50):
            if a * a + b * b > 4.0:
                count[p] = t
                break
            a, b = a * a - b * b + re[p], 2 * a * b + im[p]


@polyc.kernel
def look_up(begin, column, value, i, j, out):
    for q in range(len(out)):
        out[q] = 0.0
        for k in range(begin[i[q]], begin[i[q] + 1]):
            if column[k] == j[q]:
                out[q] = value[k]
                break


@polyc.kernel
def clash(x, found):
    for i in range(len(x)):
        for j in range(i):
            if x[i] == x[j]:
                found[0] = i
                found[1] = j
                break
        if found[0] > 0:
            break


@polyc.kernel
def rows(x, y):
    n, m = x.shape
    for i in range(n):
        if x[i, 0] < 0.2:
            continue
        for j in range(m):
            y[i, j] += x[i, j]
        if i == n - 1:
            continue
        for j in range(m):
            y[i, j] *= 2


@polyc.kernel
def both(x, y):
    for i in range(len(x)):
        if x[i] > 0.2:
            if y[i] > 0.5:
                if x[i] > 0.7:
                    continue
                y[i] = 1
            y[i] += x[i]
            if y[i] > 1.9:
                break
        y[i] += x[i]
        if y[i] < 0.3:
            continue
        y[i] += 1


@polyc.kernel
def find(x, low, where):
    for i in range(len(x)):
        if x[i] > low:
            where[0] = i
            break


@polyc.kernel
def find_twice(x, where):
    find(x, 0.5, where)
    where[1] = where[0]
    find(x, 0.9, where)


def sparse(n: int) -> tuple[np.ndarray, ...]:
    begin = np.concatenate([[0], np.cumsum(RNG.integers(0, 5, n))]).astype(np.int64)
    return begin, RNG.integers(0, 5, begin[-1]), RNG.random(begin[-1])


CASES = [
    (search, lambda n: (RNG.random(n), RNG.random(5), np.zeros(5, np.int64))),
    (until, lambda n: (RNG.random(n), np.zeros(n), np.zeros(1, np.int64))),
    (until, lambda n: (1 + RNG.random(n), np.zeros(n), np.zeros(1, np.int64))),
    (skip, lambda n: (RNG.random(n), np.zeros(n))),
    (either, lambda n: (RNG.random(n), RNG.random(n))),
    (either, lambda n: (0.5 + RNG.random(n), 1 + RNG.random(n))),
    (escape, lambda n: (*(3 * RNG.random((2, n)) - 2), np.zeros(n, np.int64))),
    (look_up, lambda n: (*sparse(n), *RNG.integers(0, n, (2, 9)), np.zeros(9))),
    (clash, lambda n: (RNG.integers(0, 3 * n, n), np.zeros(2, np.int64))),
    (rows, lambda n: (RNG.random((n, 7)), RNG.random((n, 7)))),
    (both, lambda n: (RNG.random(n), RNG.random(n))),
    (both, lambda n: (0.5 * RNG.random(n), RNG.random(n))),
    (find_twice, lambda n: (RNG.random(n), np.zeros(2, np.int64))),
]


@pytest.mark.parametrize("n", [1, 2, 17, 300])
@pytest.mark.parametrize(("kernel", "make"), CASES)
def test_it_means_what_python_means(kernel, make, n):
    check(kernel, *make(n))


def test_no_more_is_executed():
    check(search, *CASES[0][1](20))
    text = " ".join(search.source.split())
    assert re.search(r"if \(left_\d_local\[0\]\) break;", text)
    assert "data says where a loop ends" in search.explain()
    assert "in parallel: loops of" in search.explain()
    assert "proven: " in search.explain()
