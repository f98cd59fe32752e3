"""Kernels as users write them, beside the same functions run by Python, at odd and tiny sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polyc
from tests.loops.against_python import check
from tests.sampling import sampled

RNG = np.random.default_rng(11)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


@polyc.kernel
def edit_distance(D, a, b):
    for i in range(len(a) + 1):
        D[i, 0] = i
    for j in range(len(b) + 1):
        D[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = D[i - 1, j - 1] + (0 if a[i - 1] == b[j - 1] else 1)
            D[i, j] = min(D[i - 1, j] + 1, D[i, j - 1] + 1, replaced)


@polyc.kernel
def gauss_seidel_3d(u, f, h, steps):
    n, m, p = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                for k in range(1, p - 1):
                    around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                    u[i, j, k] = (around + u[i, j, k - 1] + u[i, j, k + 1] - h * h * f[i, j, k]) / 6


@polyc.kernel
def filter_bank(x, b, a, y):
    for c in range(b.shape[0]):
        before = 0.0
        earlier = 0.0
        for t in range(len(x)):
            now = x[t] - a[c, 0] * before - a[c, 1] * earlier
            y[c, t] = b[c, 0] * now + b[c, 1] * before + b[c, 2] * earlier
            earlier = before
            before = now


@polyc.kernel
def life(world, after):
    n, m = world.shape
    for i in range(n):
        for j in range(m):
            alive = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if 0 <= i + di < n and 0 <= j + dj < m and not (di == 0 and dj == 0):
                        alive += world[i + di, j + dj]
            if world[i, j] == 1:
                after[i, j] = 1 if 2 <= alive <= 3 else 0
            else:
                after[i, j] = 1 if alive == 3 else 0


@polyc.kernel
def generations(world, after, steps):
    for _ in range(steps):
        life(world, after)
        for i in range(world.shape[0]):
            for j in range(world.shape[1]):
                world[i, j] = after[i, j]


@polyc.kernel
def solve_many(L, X):
    n, m = X.shape
    for k in range(m):
        for i in range(n):
            total = X[i, k]
            for j in range(i):
                total -= L[i, j] * X[j, k]
            X[i, k] = total / L[i, i]


@polyc.kernel
def prefix_sums(x, sums, table):
    running = 0
    for i in range(len(x)):
        running += x[i]
        sums[i] = running
    n, m = table.shape
    for i in range(n):
        for j in range(m):
            if i > 0 and j > 0:
                table[i, j] += table[i - 1, j] + table[i, j - 1] - table[i - 1, j - 1]
            elif i > 0:
                table[i, j] += table[i - 1, j]
            elif j > 0:
                table[i, j] += table[i, j - 1]


@polyc.kernel
def wave(now, before, after, speed, steps):
    n, m = now.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
                after[i, j] = 2 * now[i, j] - before[i, j] + speed * (around - 4 * now[i, j])
        for i in range(n):
            after[i, 0] = after[i, 1]
            after[i, m - 1] = math.sin(0.1 * t)
        for j in range(m):
            after[0, j] = 0.0
            after[n - 1, j] = after[n - 2, j]
        for i in range(n):
            for j in range(m):
                before[i, j] = now[i, j]
                now[i, j] = after[i, j]


@polyc.kernel
def sort_by_neighbours(x):
    n = len(x)
    for t in range(n):
        for i in range(t % 2, n - 1, 2):
            small = min(x[i], x[i + 1])
            large = max(x[i], x[i + 1])
            x[i] = small
            x[i + 1] = large


@polyc.kernel
def largest_and_product(A, B, C, y):
    n = len(y)
    for i in range(n):
        top = 0.0
        for k in range(1, n):
            value = A[k, i]
            if value > top:
                top = value
        y[i] = top
    for i in range(n):
        for j in range(n):
            for k in range(n):
                C[i, j] += A[i, k] * B[k, j]


def strings(n: int) -> tuple[np.ndarray, ...]:
    a, b = RNG.integers(0, 3, n - 1), RNG.integers(0, 3, n + 2)
    return np.zeros((n, n + 3), np.int64), a, b


CASES = {
    "edit distance": (edit_distance, strings),
    "Gauss-Seidel": (
        gauss_seidel_3d,
        lambda n: (random(n, n + 1, n + 2), random(n, n + 1, n + 2), 0.3, 3),
    ),
    "filter bank": (
        filter_bank,
        lambda n: (random(n), random(3, 3), 0.3 * random(3, 2), np.zeros((3, n))),
    ),
    "life": (
        generations,
        lambda n: (RNG.integers(0, 2, (n, n + 3)), np.zeros((n, n + 3), np.int64), 3),
    ),
    "many right sides": (
        solve_many,
        lambda n: (np.tril(random(n, n)) + n * np.eye(n), random(n, n + 4)),
    ),
    # isl leaves out a loop of one iteration that a local's place is counted from.
    "largest": (
        largest_and_product,
        lambda n: (random(n, n), random(n, n), random(n, n), np.zeros(n)),
    ),
    "prefix sums": (
        prefix_sums,
        lambda n: (RNG.integers(-9, 9, n), np.zeros(n, np.int64), RNG.integers(0, 9, (n, n + 1))),
    ),
    "sorting": (sort_by_neighbours, lambda n: (random(n),)),
    "wave": (
        wave,
        lambda n: (random(n, n + 1), random(n, n + 1), np.zeros((n, n + 1)), 0.2, 4),
    ),
}


SELDOM = ("wave", "life", "Gauss-Seidel", "filter bank", "prefix sums", "sorting")


@pytest.mark.parametrize("name", sampled(CASES, seldom=SELDOM))
def test_kernels_of_users_do_what_python_does(name):
    kernel, arguments = CASES[name]
    for threads in (1, 2, 4):
        kernel.threads = threads
        for n in (2, 3, 5, 13):
            check(kernel, *arguments(n))
    assert "executed in full" in kernel.explain()
