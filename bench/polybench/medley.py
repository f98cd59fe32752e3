"""PolyBench's medley: deriche, floyd-warshall, nussinov."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid


@polyc.kernel
def deriche(alpha, image, out, y1, y2):
    w, h = image.shape
    k = (1 - math.exp(-alpha)) * (1 - math.exp(-alpha))
    k = k / (1 + 2 * alpha * math.exp(-alpha) - math.exp(2 * alpha))
    a2 = k * math.exp(-alpha) * (alpha - 1)
    a3 = k * math.exp(-alpha) * (alpha + 1)
    a4 = -k * math.exp(-2 * alpha)
    b1 = math.pow(2, -alpha)
    b2 = -math.exp(-2 * alpha)
    for i in range(w):
        before1 = 0.0
        before2 = 0.0
        x1 = 0.0
        for j in range(h):
            y1[i, j] = k * image[i, j] + a2 * x1 + b1 * before1 + b2 * before2
            x1 = image[i, j]
            before2 = before1
            before1 = y1[i, j]
    for i in range(w):
        after1 = 0.0
        after2 = 0.0
        x1 = 0.0
        x2 = 0.0
        for j in range(h - 1, -1, -1):
            y2[i, j] = a3 * x1 + a4 * x2 + b1 * after1 + b2 * after2
            x2 = x1
            x1 = image[i, j]
            after2 = after1
            after1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(h):
        before1 = 0.0
        before2 = 0.0
        x1 = 0.0
        for i in range(w):
            y1[i, j] = k * out[i, j] + a2 * x1 + b1 * before1 + b2 * before2
            x1 = out[i, j]
            before2 = before1
            before1 = y1[i, j]
    for j in range(h):
        after1 = 0.0
        after2 = 0.0
        x1 = 0.0
        x2 = 0.0
        for i in range(w - 1, -1, -1):
            y2[i, j] = a3 * x1 + a4 * x2 + b1 * after1 + b2 * after2
            x2 = x1
            x1 = out[i, j]
            after2 = after1
            after1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]


def deriche_data(w: int, h: int) -> dict[str, Any]:
    i, j = grid(w, h)
    image = ((313 * i + 991 * j) % 65536) / 65535
    scratch = {name: np.zeros((w, h)) for name in ("out", "y1", "y2")}
    return {"alpha": 0.25, "image": image, **scratch}


@polyc.kernel
def floyd_warshall(path):
    n = len(path)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


def floyd_warshall_data(n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    far = ((i + j) % 13 == 0) | ((i + j) % 7 == 0) | ((i + j) % 11 == 0)
    return {"path": np.where(far, 999, i * j % 7 + 1).astype(np.int32)}


def floyd_warshall_numpy(path: Any) -> None:
    for k in range(len(path)):
        np.minimum(path, path[:, k : k + 1] + path[k], out=path)


@polyc.kernel
def nussinov(bases, table):
    n = len(bases)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(
                        table[i, j],
                        table[i + 1, j - 1] + (1 if bases[i] + bases[j] == 3 else 0),
                    )
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


def nussinov_data(n: int) -> dict[str, Any]:
    bases = ((np.arange(n) + 1) % 4).astype(np.int32)
    return {"bases": bases, "table": np.zeros((n, n), np.int32)}


LENGTH = by_size((60,), (180,), (500,), (2500,), (5500,))

PROBLEMS = (
    Problem(
        "deriche",
        deriche,
        by_size((64, 64), (192, 128), (720, 480), (4096, 2160), (7680, 4320)),
        deriche_data,
        ("out",),
    ),
    Problem(
        "floyd-warshall",
        floyd_warshall,
        by_size((60,), (180,), (500,), (2800,), (5600,)),
        floyd_warshall_data,
        ("path",),
        floyd_warshall_numpy,
    ),
    Problem("nussinov", nussinov, LENGTH, nussinov_data, ("table",)),
)
