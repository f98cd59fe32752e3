"""PolyBench's stencils: adi, fdtd-2d, heat-3d, jacobi-1d, jacobi-2d, seidel-2d."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyc
from bench.polybench.problem import Problem, by_size, grid


@polyc.kernel
def adi(steps, u, v, p, q):
    n = len(u)
    mul1 = 2.0 * n * n / steps
    mul2 = 1.0 * n * n / steps
    a = -mul1 / 2
    b = 1 + mul1
    d = -mul2 / 2
    e = 1 + mul2
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1
            p[i, 0] = 0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (
                    -d * u[j, i - 1] + (1 + 2 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]
                ) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1
            p[i, 0] = 0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = (
                    -a * v[i - 1, j] + (1 + 2 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]
                ) / (d * p[i, j - 1] + e)
            u[i, n - 1] = 1
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def adi_data(steps: int, n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    scratch = {name: np.zeros((n, n)) for name in "vpq"}
    return {"steps": steps, "u": (i + n - j) / n, **scratch}


@polyc.kernel
def fdtd_2d(ex, ey, hz, fict):
    n, m = ex.shape
    for t in range(len(fict)):
        for j in range(m):
            ey[0, j] = fict[t]
        for i in range(1, n):
            for j in range(m):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(n):
            for j in range(1, m):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(n - 1):
            for j in range(m - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def fdtd_2d_data(steps: int, n: int, m: int) -> dict[str, Any]:
    i, j = grid(n, m)
    ex, ey, hz = i * (j + 1) / n, i * (j + 2) / m, i * (j + 3) / n
    return {"ex": ex, "ey": ey, "hz": hz, "fict": np.arange(steps, dtype=np.float64)}


def fdtd_2d_numpy(ex: Any, ey: Any, hz: Any, fict: Any) -> None:
    for value in fict:
        ey[0] = value
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@polyc.kernel
def heat_3d(steps, A, B):
    n = len(A)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


def heat_3d_data(steps: int, n: int) -> dict[str, Any]:
    i, j, k = grid(n, n, n)
    A = (i + j + (n - k)) * 10 / n
    return {"steps": steps, "A": A, "B": A.copy()}


def heat_3d_numpy(steps: int, A: Any, B: Any) -> None:
    middle = (slice(1, -1),) * 3
    for _ in range(steps):
        for x, y in ((A, B), (B, A)):
            total = -6 * x[middle]
            for axis in range(3):
                for side in (slice(2, None), slice(None, -2)):
                    total += x[(*middle[:axis], side, *middle[axis + 1 :])]
            y[middle] = 0.125 * total + x[middle]


@polyc.kernel
def jacobi_1d(steps, A, B):
    n = len(A)
    for _ in range(steps):
        for i in range(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def jacobi_1d_data(steps: int, n: int) -> dict[str, Any]:
    i = np.arange(n)
    return {"steps": steps, "A": (i + 2) / n, "B": (i + 3) / n}


def jacobi_1d_numpy(steps: int, A: Any, B: Any) -> None:
    for _ in range(steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@polyc.kernel
def jacobi_2d(steps, A, B):
    n = len(A)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, 1 + j] + A[1 + i, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, 1 + j] + B[1 + i, j] + B[i - 1, j])


def jacobi_2d_data(steps: int, n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    return {"steps": steps, "A": (i * (j + 2) + 2) / n, "B": (i * (j + 3) + 3) / n}


def jacobi_2d_numpy(steps: int, A: Any, B: Any) -> None:
    for _ in range(steps):
        for x, y in ((A, B), (B, A)):
            y[1:-1, 1:-1] = 0.2 * (
                x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            )


@polyc.kernel
def seidel_2d(steps, A):
    n = len(A)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


def seidel_2d_data(steps: int, n: int) -> dict[str, Any]:
    i, j = grid(n, n)
    return {"steps": steps, "A": (i * (j + 2) + 2) / n}


def _stencil(name: str, kernel: Any, make: Any, numpy: Any, *sizes: tuple[int, ...]) -> Problem:
    results = tuple(n for n in make(*sizes[0]) if n in ("A", "u", "ex", "ey", "hz"))
    return Problem(name, kernel, by_size(*sizes), make, results, numpy)


PROBLEMS = (
    _stencil("adi", adi, adi_data, None, (20, 20), (40, 60), (100, 200), (500, 1000), (1000, 2000)),
    _stencil(
        "fdtd-2d",
        fdtd_2d,
        fdtd_2d_data,
        fdtd_2d_numpy,
        (20, 20, 30),
        (40, 60, 80),
        (100, 200, 240),
        (500, 1000, 1200),
        (1000, 2000, 2600),
    ),
    _stencil(
        "heat-3d",
        heat_3d,
        heat_3d_data,
        heat_3d_numpy,
        (20, 10),
        (40, 20),
        (100, 40),
        (500, 120),
        (1000, 200),
    ),
    _stencil(
        "jacobi-1d",
        jacobi_1d,
        jacobi_1d_data,
        jacobi_1d_numpy,
        (20, 30),
        (40, 120),
        (100, 400),
        (500, 2000),
        (1000, 4000),
    ),
    _stencil(
        "jacobi-2d",
        jacobi_2d,
        jacobi_2d_data,
        jacobi_2d_numpy,
        (20, 30),
        (40, 90),
        (100, 250),
        (500, 1300),
        (1000, 2800),
    ),
    _stencil(
        "seidel-2d",
        seidel_2d,
        seidel_2d_data,
        None,
        (20, 40),
        (40, 120),
        (100, 400),
        (500, 2000),
        (1000, 4000),
    ),
)
