"""PolyBench's BLAS: gemm, gemver, gesummv, symm, syr2k, syrk, trmm."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid


@polyc.kernel
def gemm(alpha, beta, C, A, B):
    n, m = C.shape
    for i in range(n):
        for j in range(m):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(m):
                C[i, j] += alpha * A[i, k] * B[k, j]


def gemm_data(n: int, m: int, inner: int) -> dict[str, Any]:
    (i, j), (_, k), (r, _) = grid(n, m), grid(n, inner), grid(inner, m)
    return {
        "alpha": 1.5,
        "beta": 1.2,
        "C": ((i * j + 1) % n) / n,
        "A": (i * (k + 1) % inner) / inner,
        "B": (r * (j + 2) % m) / m,
    }


def gemm_numpy(alpha: float, beta: float, C: Any, A: Any, B: Any) -> None:
    C *= beta
    C += alpha * (A @ B)


@polyc.kernel
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = len(x)
    for i in range(n):
        for j in range(n):
            A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] += beta * A[j, i] * y[j]
    for i in range(n):
        x[i] += z[i]
    for i in range(n):
        for j in range(n):
            w[i] += alpha * A[i, j] * x[j]


def gemver_data(n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    ramp = np.arange(n, dtype=np.float64)
    step = (ramp + 1) / n
    return {
        "alpha": 1.5,
        "beta": 1.2,
        "A": (i * j % n) / n,
        "u1": ramp,
        "v1": step / 4,
        "u2": step / 2,
        "v2": step / 6,
        "w": np.zeros(n),
        "x": np.zeros(n),
        "y": step / 8,
        "z": step / 9,
    }


def gemver_numpy(
    alpha: float, beta: float, A: Any, u1: Any, v1: Any, u2: Any, v2: Any, w: Any, *xyz: Any
) -> None:
    x, y, z = xyz
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * (y @ A) + z
    w += alpha * (A @ x)


@polyc.kernel
def gesummv(alpha, beta, A, B, x, y):
    n = len(x)
    for i in range(n):
        t = 0.0
        y[i] = 0
        for j in range(n):
            t += A[i, j] * x[j]
            y[i] += B[i, j] * x[j]
        y[i] = alpha * t + beta * y[i]


def gesummv_data(n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    A, B = ((i * j + 1) % n) / n, ((i * j + 2) % n) / n
    x = (np.arange(n) % n) / n
    return {"alpha": 1.5, "beta": 1.2, "A": A, "B": B, "x": x, "y": np.zeros(n)}


def gesummv_numpy(alpha: float, beta: float, A: Any, B: Any, x: Any, y: Any) -> None:
    y[:] = alpha * (A @ x) + beta * (B @ x)


@polyc.kernel
def symm(alpha, beta, C, A, B):
    m, n = C.shape
    for i in range(m):
        for j in range(n):
            t = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                t += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * t


def symm_data(m: int, n: int) -> dict[str, Any]:
    (i, j), (r, c) = grid(m, n), grid(m, m)
    return {
        "alpha": 1.5,
        "beta": 1.2,
        "C": ((i + j) % 100) / m,
        "A": np.where(c <= r, ((r + c) % 100) / m, -999.0),
        "B": ((n + i - j) % 100) / m,
    }


def symm_numpy(alpha: float, beta: float, C: Any, A: Any, B: Any) -> None:
    C *= beta
    C += alpha * ((np.tril(A) + np.tril(A, -1).T) @ B)


@polyc.kernel
def syr2k(alpha, beta, C, A, B):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


def syr2k_data(m: int, n: int) -> dict[str, Any]:
    (i, j), (r, c) = grid(n, m), grid(n, n)
    return {
        "alpha": 1.5,
        "beta": 1.2,
        "C": ((r * c + 3) % n) / m,
        "A": ((i * j + 1) % n) / n,
        "B": ((i * j + 2) % m) / m,
    }


def syr2k_numpy(alpha: float, beta: float, C: Any, A: Any, B: Any) -> None:
    product = alpha * (A @ B.T)
    C[:] = np.tril(beta * C + product + product.T) + np.triu(C, 1)


@polyc.kernel
def syrk(alpha, beta, C, A):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


def syrk_data(m: int, n: int) -> dict[str, Any]:
    (i, j), (r, c) = grid(n, m), grid(n, n)
    C, A = ((r * c + 2) % m) / m, ((i * j + 1) % n) / n
    return {"alpha": 1.5, "beta": 1.2, "C": C, "A": A}


def syrk_numpy(alpha: float, beta: float, C: Any, A: Any) -> None:
    C[:] = np.tril(beta * C + alpha * (A @ A.T)) + np.triu(C, 1)


@polyc.kernel
def trmm(alpha, A, B):
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            for k in range(i + 1, m):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


def trmm_data(m: int, n: int) -> dict[str, Any]:
    (r, c), (i, j) = grid(m, m), grid(m, n)
    A = np.where(c < r, ((r + c) % m) / m, np.where(c == r, 1.0, 0.0))
    return {"alpha": 1.5, "A": A, "B": ((n + i - j) % n) / n}


def trmm_numpy(alpha: float, A: Any, B: Any) -> None:
    B[:] = alpha * ((np.tril(A, -1) + np.eye(len(A))).T @ B)


TWO = by_size((20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600))
"""m and n of the symmetric and triangular products."""

PROBLEMS = (
    Problem(
        "gemm",
        gemm,
        by_size(
            (20, 25, 30), (60, 70, 80), (200, 220, 240), (1000, 1100, 1200), (2000, 2300, 2600)
        ),
        gemm_data,
        ("C",),
        gemm_numpy,
    ),
    Problem(
        "gemver",
        gemver,
        by_size((40,), (120,), (400,), (2000,), (4000,)),
        gemver_data,
        ("A", "x", "w"),
        gemver_numpy,
    ),
    Problem(
        "gesummv",
        gesummv,
        by_size((30,), (90,), (250,), (1300,), (2800,)),
        gesummv_data,
        ("y",),
        gesummv_numpy,
    ),
    Problem("symm", symm, TWO, symm_data, ("C",), symm_numpy),
    Problem("syr2k", syr2k, TWO, syr2k_data, ("C",), syr2k_numpy),
    Problem("syrk", syrk, TWO, syrk_data, ("C",), syrk_numpy),
    Problem("trmm", trmm, TWO, trmm_data, ("B",), trmm_numpy),
)
