"""PolyBench's products in sequence: 2mm, 3mm, atax, bicg, doitgen, mvt."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid


@polyc.kernel
def two_products(alpha, beta, tmp, A, B, C, D):
    n, m = tmp.shape
    for i in range(n):
        for j in range(m):
            tmp[i, j] = 0
            for k in range(A.shape[1]):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(n):
        for j in range(D.shape[1]):
            D[i, j] *= beta
            for k in range(m):
                D[i, j] += tmp[i, k] * C[k, j]


def two_products_data(ni: int, nj: int, nk: int, nl: int) -> dict[str, Any]:
    i, k = grid(ni, nk)
    r, j = grid(nk, nj)
    s, c = grid(nj, nl)
    return {
        "alpha": 1.5,
        "beta": 1.2,
        "tmp": np.zeros((ni, nj)),
        "A": ((i * k + 1) % ni) / ni,
        "B": (r * (j + 1) % nj) / nj,
        "C": ((s * (c + 3) + 1) % nl) / nl,
        "D": (i * (c + 2) % nk) / nk,
    }


def two_products_numpy(alpha: float, beta: float, tmp: Any, A: Any, B: Any, C: Any, D: Any) -> None:
    D *= beta
    D += (alpha * A @ B) @ C


@polyc.kernel
def three_products(E, A, B, F, C, D, G):
    ni, nj = E.shape
    nl = G.shape[1]
    for i in range(ni):
        for j in range(nj):
            E[i, j] = 0
            for k in range(A.shape[1]):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(nj):
        for j in range(nl):
            F[i, j] = 0
            for k in range(C.shape[1]):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(ni):
        for j in range(nl):
            G[i, j] = 0
            for k in range(nj):
                G[i, j] += E[i, k] * F[k, j]


def three_products_data(ni: int, nj: int, nk: int, nl: int, nm: int) -> dict[str, Any]:
    i, k = grid(ni, nk)
    r, j = grid(nk, nj)
    s, m = grid(nj, nm)
    t, c = grid(nm, nl)
    return {
        "E": np.zeros((ni, nj)),
        "A": ((i * k + 1) % ni) / (5 * ni),
        "B": ((r * (j + 1) + 2) % nj) / (5 * nj),
        "F": np.zeros((nj, nl)),
        "C": (s * (m + 3) % nl) / (5 * nl),
        "D": ((t * (c + 2) + 2) % nk) / (5 * nk),
        "G": np.zeros((ni, nl)),
    }


def three_products_numpy(E: Any, A: Any, B: Any, F: Any, C: Any, D: Any, G: Any) -> None:
    np.matmul(A, B, out=E)
    np.matmul(C, D, out=F)
    np.matmul(E, F, out=G)


@polyc.kernel
def atax(A, x, y, tmp):
    m, n = A.shape
    for i in range(n):
        y[i] = 0
    for i in range(m):
        tmp[i] = 0
        for j in range(n):
            tmp[i] += A[i, j] * x[j]
        for j in range(n):
            y[j] += A[i, j] * tmp[i]


def atax_data(m: int, n: int) -> dict[str, Any]:
    i, j = grid(m, n)
    A, x = ((i + j) % n) / (5 * m), 1 + np.arange(n) / n
    return {"A": A, "x": x, "y": np.zeros(n), "tmp": np.zeros(m)}


def atax_numpy(A: Any, x: Any, y: Any, tmp: Any) -> None:
    np.matmul(A, x, out=tmp)
    np.matmul(tmp, A, out=y)


@polyc.kernel
def bicg(A, s, q, p, r):
    n, m = A.shape
    for i in range(m):
        s[i] = 0
    for i in range(n):
        q[i] = 0
        for j in range(m):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


def bicg_data(m: int, n: int) -> dict[str, Any]:
    i, j = grid(n, m)
    A = (i * (j + 1) % n) / n
    p, r = (np.arange(m) % m) / m, (np.arange(n) % n) / n
    return {"A": A, "s": np.zeros(m), "q": np.zeros(n), "p": p, "r": r}


def bicg_numpy(A: Any, s: Any, q: Any, p: Any, r: Any) -> None:
    np.matmul(r, A, out=s)
    np.matmul(A, p, out=q)


@polyc.kernel
def doitgen(A, C4, total):
    nr, nq, count = A.shape
    for r in range(nr):
        for q in range(nq):
            for p in range(count):
                total[p] = 0
                for s in range(count):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(count):
                A[r, q, p] = total[p]


def doitgen_data(nq: int, nr: int, count: int) -> dict[str, Any]:
    (i, j, k), (r, c) = grid(nr, nq, count), grid(count, count)
    A, C4 = ((i * j + k) % count) / count, (r * c % count) / count
    return {"A": A, "C4": C4, "total": np.zeros(count)}


def doitgen_numpy(A: Any, C4: Any, total: Any) -> None:
    A[:] = A @ C4
    total[:] = A[-1, -1]


@polyc.kernel
def mvt(x1, x2, y1, y2, A):
    n = len(A)
    for i in range(n):
        for j in range(n):
            x1[i] += A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] += A[j, i] * y2[j]


def mvt_data(n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    x1, x2, y1, y2 = (((np.arange(n) + k) % n) / n for k in (0, 1, 3, 4))
    return {"x1": x1, "x2": x2, "y1": y1, "y2": y2, "A": (i * j % n) / n}


def mvt_numpy(x1: Any, x2: Any, y1: Any, y2: Any, A: Any) -> None:
    x1 += A @ y1
    x2 += y2 @ A


TALL = by_size((38, 42), (116, 124), (390, 410), (1900, 2100), (1800, 2200))

PROBLEMS = (
    Problem(
        "2mm",
        two_products,
        by_size(
            (16, 18, 22, 24),
            (40, 50, 70, 80),
            (180, 190, 210, 220),
            (800, 900, 1100, 1200),
            (1600, 1800, 2200, 2400),
        ),
        two_products_data,
        ("D",),
        two_products_numpy,
    ),
    Problem(
        "3mm",
        three_products,
        by_size(
            (16, 18, 20, 22, 24),
            (40, 50, 60, 70, 80),
            (180, 190, 200, 210, 220),
            (800, 900, 1000, 1100, 1200),
            (1600, 1800, 2000, 2200, 2400),
        ),
        three_products_data,
        ("G",),
        three_products_numpy,
    ),
    Problem("atax", atax, TALL, atax_data, ("y",), atax_numpy),
    Problem("bicg", bicg, TALL, bicg_data, ("s", "q"), bicg_numpy),
    Problem(
        "doitgen",
        doitgen,
        by_size((8, 10, 12), (20, 25, 30), (40, 50, 60), (140, 150, 160), (220, 250, 270)),
        doitgen_data,
        ("A",),
        doitgen_numpy,
    ),
    Problem(
        "mvt",
        mvt,
        by_size((40,), (120,), (400,), (2000,), (4000,)),
        mvt_data,
        ("x1", "x2"),
        mvt_numpy,
    ),
)
