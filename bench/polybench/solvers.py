"""PolyBench's solvers: cholesky, durbin, gramschmidt, lu, ludcmp, trisolv."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid, positive_definite


@polyc.kernel
def cholesky(A):
    for i in range(len(A)):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


def cholesky_numpy(A: Any) -> None:
    A[:] = np.linalg.cholesky(A) + np.triu(A, 1)


@polyc.kernel
def durbin(r, y, z):
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, len(r)):
        beta = (1 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


def durbin_data(n: int) -> dict[str, Any]:
    return {"r": n + 1.0 - np.arange(n), "y": np.zeros(n), "z": np.zeros(n)}


@polyc.kernel
def gramschmidt(A, R, Q):
    m, n = A.shape
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(norm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] -= Q[i, k] * R[k, j]


def gramschmidt_data(m: int, n: int) -> dict[str, Any]:
    """Random numbers, with the long side as rows.

    PolyBench's own matrix has more columns than rows, and equal columns: what is left of those is
    rounding alone, of which no two compilers give the same.
    """
    A = np.random.default_rng(m).random((max(m, n), min(m, n))) * 100 + 10
    return {"A": A, "R": np.zeros((A.shape[1],) * 2), "Q": np.zeros_like(A)}


def gramschmidt_numpy(A: Any, R: Any, Q: Any) -> None:
    q, r = np.linalg.qr(A)
    signs = np.sign(np.diag(r))
    Q[:], R[:] = q * signs, r * signs[:, None]


@polyc.kernel
def lu(A):
    n = len(A)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


def square_data(n: int) -> dict[str, Any]:
    return {"A": positive_definite(n)}


@polyc.kernel
def ludcmp(A, b, x, y):
    n = len(b)
    for i in range(n):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w
    for i in range(n):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(n - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, n):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


def ludcmp_data(n: int) -> dict[str, Any]:
    b = (np.arange(n) + 1) / n / 2 + 4
    return {"A": positive_definite(n), "b": b, "x": np.zeros(n), "y": np.zeros(n)}


def ludcmp_numpy(A: Any, b: Any, x: Any, y: Any) -> None:
    x[:] = np.linalg.solve(A, b)


@polyc.kernel
def trisolv(L, x, b):
    for i in range(len(x)):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


def trisolv_data(n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    L = np.where(j <= i, (i + n - j + 1) * 2 / n, 0.0)
    return {"L": L, "x": np.full(n, -999.0), "b": np.arange(n, dtype=np.float64)}


ONE = by_size((40,), (120,), (400,), (2000,), (4000,))

PROBLEMS = (
    Problem("cholesky", cholesky, ONE, square_data, ("A",), cholesky_numpy),
    Problem("durbin", durbin, ONE, durbin_data, ("y",)),
    Problem(
        "gramschmidt",
        gramschmidt,
        by_size((20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600)),
        gramschmidt_data,
        ("R", "Q"),
        gramschmidt_numpy,
    ),
    Problem("lu", lu, ONE, square_data, ("A",)),
    Problem("ludcmp", ludcmp, ONE, ludcmp_data, ("x",), ludcmp_numpy),
    Problem("trisolv", trisolv, ONE, trisolv_data, ("x",)),
)
