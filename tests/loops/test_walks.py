"""Loops of which data says where they begin and end: sparse matrices and segments."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from bench.polybench.data import sparse_by_dense, sparse_rows
from polyc.errors import RuntimeFailure, UnsupportedLoop
from tests.loops.against_python import check

RNG = np.random.default_rng(6)


def rows(n: int, most: int) -> np.ndarray:
    """Where each of n rows begins, and the last one ends; some rows are empty."""
    return np.concatenate([[0], np.cumsum(RNG.integers(0, most + 1, n))]).astype(np.int64)


@polyc.kernel
def multiply_columns(begin, row, value, x, y):
    for i in range(len(y)):
        y[i] = 0.0
    for j in range(len(x)):
        for k in range(begin[j], begin[j + 1]):
            r = row[k]
            y[r] += value[k] * x[j]


@polyc.kernel
def solve(begin, column, value, b, x):
    for i in range(len(b)):
        x[i] = b[i]
        for k in range(begin[i], begin[i + 1]):
            if column[k] < i:
                x[i] -= value[k] * x[column[k]]


@polyc.kernel
def largest(begin, x, top, where):
    for i in range(len(top)):
        top[i] = -1.0
        where[i] = -1
        for k in range(begin[i], begin[i + 1]):
            if x[k] > top[i]:
                top[i] = x[k]
                where[i] = k


@polyc.kernel
def fill(begin, label, out):
    for i in range(len(label)):
        for k in range(begin[i], begin[i + 1]):
            half = 0.5 * label[i]
            out[k] = half + k


@polyc.kernel
def common(begin, node, count):
    for i in range(len(count)):
        for k in range(begin[i], begin[i + 1]):
            for m in range(begin[node[k]], begin[node[k] + 1]):
                if node[m] > i:
                    count[i] += 1


@polyc.kernel
def first(x, n, s):
    for i in range(n[0]):
        s[0] += x[i]


def graph(n: int) -> tuple[np.ndarray, np.ndarray]:
    begin = rows(n, 4)
    return begin, RNG.integers(0, max(n, 1), begin[-1])


def system(n: int) -> tuple[np.ndarray, ...]:
    begin, node = graph(n)
    return begin, node, RNG.random(begin[-1])


CASES = [
    (sparse_rows, lambda n: (*system(n), RNG.random(n), np.zeros(n))),
    (sparse_by_dense, lambda n: (*system(n), RNG.random((n, 9)), np.ones((n, 9)))),
    (multiply_columns, lambda n: (*system(n), RNG.random(n), np.ones(n))),
    (solve, lambda n: (*system(n), RNG.random(n), np.zeros(n))),
    (largest, lambda n: ((b := rows(n, 5)), RNG.random(b[-1]), np.zeros(n), np.zeros(n, np.int32))),
    (fill, lambda n: ((b := rows(n, 5)), RNG.random(n), np.zeros(b[-1] + 3))),
    (common, lambda n: (*graph(n), np.zeros(n, np.int64))),
    (first, lambda n: (RNG.random(n), np.array([n // 2]), np.zeros(1))),
]


@pytest.mark.parametrize("n", [1, 2, 19, 200])
@pytest.mark.parametrize(("kernel", "make"), CASES)
def test_it_means_what_python_means(kernel, make, n):
    check(kernel, *make(n))


def test_nothing_else_is_walked():
    check(sparse_rows, *CASES[0][1](30))
    inside = sparse_rows.source.split("for (i64 c1")[1]
    assert "c1 = 0 < pc_min(" in sparse_rows.source
    assert "pc_select" not in inside.split("}")[0]
    assert "isl's schedule is not used: data says where a loop ends" in sparse_rows.explain()
    assert "in parallel: loops of" in sparse_rows.explain()


def test_what_is_inside_runs_in_lanes():
    check(sparse_by_dense, *CASES[1][1](30))
    assert "mark  simd" in sparse_by_dense.explain().split("band  k")[1]


def test_neighbours_are_within_the_array():
    @polyc.kernel
    def differ(begin, x, s):
        for i in range(len(s)):
            last = i
            for k in range(begin[i], begin[i + 1] - 1):
                after = k + 1
                s[last] += x[k + 1] - x[after] + x[k + 1] * x[k]
            for k in range(begin[i] + 1, begin[i + 1]):
                s[i] += x[k - 1]

    b = rows(20, 5)
    check(differ, b, RNG.random(b[-1]), np.zeros(20))
    assert "slot" not in differ.explain()


@pytest.mark.parametrize("begin", [[0, 2, 9], [-1, 1, 2], [0, 3, 5]])
def test_bounds_outside_of_the_arrays_are_told(begin):
    column, value, x, y = np.zeros(4, np.int64), np.ones(4), np.ones(2), np.zeros(2)
    with pytest.raises(RuntimeFailure, match="a subscript that is data leaves its array"):
        sparse_rows(np.array(begin), column, value, x, y)


def test_places_are_looked_at_only_where_python_would():
    @polyc.kernel
    def follow(index, x, y):
        for i in range(len(index)):
            if index[i] >= 0:
                y[i] += 1
                if x[index[i]] > 0.5:
                    y[i] = x[index[i]]

    index = RNG.integers(-900, 9, 50)
    index[::2] %= 9
    index[index < 0] = -900
    check(follow, index, RNG.random(9), np.zeros(50))


def test_what_has_no_extent_is_refused():
    @polyc.kernel
    def power(n, x):
        for i in range(len(x)):
            for _ in range(n[i]):
                x[i] = x[i] * x[i]

    with pytest.raises(UnsupportedLoop, match="no array is subscripted by it"):
        power(np.ones(4, np.int64), np.ones(4))

    @polyc.kernel
    def skip(n, x, s):
        for k in range(0, n[0], 2):
            s[0] += x[k]

    with pytest.raises(UnsupportedLoop, match="its step is not 1"):
        skip(np.ones(1, np.int64), np.ones(4), np.ones(1))


@pytest.mark.cuda
def test_a_gpu_has_no_such_loops():
    from dataclasses import replace

    from polyc.options import options_from_environment

    emulated = replace(options_from_environment(), emulated=True)
    kernel = polyc.kernel(target="cuda", options=emulated)(sparse_rows.python)
    with pytest.raises(UnsupportedLoop, match="kernels for a GPU cannot have"):
        kernel(*CASES[0][1](8))
