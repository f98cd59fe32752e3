"""Loops of which data says where they write, and when they end."""

from __future__ import annotations

import numpy as np

import polyc
from bench.polybench.everyday import Data, make_problem, random


@polyc.kernel
def histogram(x, counts):
    for i in range(len(x)):
        counts[int(x[i])] += 1


def histogram_data(n: int) -> Data:
    return {"x": (256 * random(n)).astype(np.uint8), "counts": np.zeros(256, np.int64)}


@polyc.kernel
def pack(x, kept, count):
    k = 0
    for i in range(len(x)):
        if x[i] > 0.9:
            kept[k] = x[i]
            k += 1
    count[0] = k


def pack_data(n: int) -> Data:
    return {"x": random(n), "kept": np.zeros(n), "count": np.zeros(1, np.int64)}


@polyc.kernel
def sparse_rows(begin, column, value, x, y):
    for i in range(len(y)):
        s = 0.0
        for k in range(begin[i], begin[i + 1]):
            s += value[k] * x[column[k]]
        y[i] = s


def sparse_rows_data(n: int) -> Data:
    return {**_sparse(n), "x": random(n), "y": np.zeros(n)}


@polyc.kernel
def sparse_columns(begin, column, value, x, y):
    for i in range(len(y)):
        y[i] = 0.0
    for j in range(len(x)):
        for k in range(begin[j], begin[j + 1]):
            y[column[k]] += value[k] * x[j]


@polyc.kernel
def sparse_by_dense(begin, column, value, b, c):
    n, m = c.shape
    for i in range(n):
        for j in range(m):
            c[i, j] = 0.0
        for k in range(begin[i], begin[i + 1]):
            for j in range(m):
                c[i, j] += value[k] * b[column[k], j]


def sparse_by_dense_data(n: int) -> Data:
    return {**_sparse(n), "b": random(n, 32), "c": np.zeros((n, 32))}


@polyc.kernel
def largest_of(begin, x, top):
    for i in range(len(top)):
        best = -1.0
        for k in range(begin[i], begin[i + 1]):
            if x[k] > best:
                best = x[k]
        top[i] = best


def largest_of_data(n: int) -> Data:
    found = _sparse(n)
    return {"begin": found["begin"], "x": found["value"], "top": np.zeros(n)}


@polyc.kernel
def search(x, low, where):
    for j in range(len(low)):
        where[j] = -1
        for i in range(len(x)):
            if x[i] > low[j]:
                where[j] = i
                break


def search_data(n: int) -> Data:
    ascending = np.cumsum(random(n))
    low = ascending[-1] * random(n // 4 + 1)
    return {"x": ascending, "low": low, "where": np.zeros(len(low), np.int64)}


def _sparse(n: int) -> Data:
    """A square matrix with 0 to 31 elements in a row, row by row."""
    begin = np.concatenate([[0], np.cumsum((32 * random(n)).astype(np.int64))])
    column = (n * random(int(begin[-1]))).astype(np.int64)
    return {"begin": begin, "column": column, "value": random(len(column))}


BY_DATA = (
    make_problem(histogram, histogram_data, 1_000_000, "counts"),
    make_problem(pack, pack_data, 100_000, "kept", "count"),
    make_problem(sparse_rows, sparse_rows_data, 10_000, "y"),
    make_problem(sparse_columns, sparse_rows_data, 10_000, "y"),
    make_problem(sparse_by_dense, sparse_by_dense_data, 3000, "c"),
    make_problem(largest_of, largest_of_data, 10_000, "top"),
    make_problem(search, search_data, 3000, "where"),
)
