"""Grids with borders as people write them: conditions, clipped and periodic subscripts, windows.

Their interiors are loops that ask nothing, and borders do what Python does.
"""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.loopnest import nodes
from polyc.loopnest.decided import drop_decided
from polyc.loopnest.nodes import Assign, For, If, walk_expr, walk_nodes
from polyc.loops.read.sizes import Signature
from polyc.loops.read.types import argument_of
from polyc.loops.run.compile import compile_loops
from polyc.options import Options
from polyc.target.machine import Target
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(5)


@polyc.kernel
def clipped(x, y):
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            above, below = x[max(i - 1, 0), j], x[min(i + 1, n - 1), j]
            y[i, j] = above + below + x[i, max(j - 1, 0)] + x[i, min(j + 1, m - 1)] - 4 * x[i, j]


@polyc.kernel
def periodic(world, after):
    n, m = world.shape
    for i in range(n):
        for j in range(m):
            s = world[(i - 1) % n, (j - 1) % m] + world[(i - 1) % n, j] + world[i, (j - 1) % m]
            s = s + world[(i + 1) % n, (j + 1) % m] + world[(i + 1) % n, j] + world[i, (j + 1) % m]
            after[i, j] = 1 if s == 3 or (s == 2 and world[i, j] == 1) else 0


@polyc.kernel
def asked(world, after):
    n, m = world.shape
    for i in range(n):
        for j in range(m):
            s = 0
            if i > 0:
                s += world[i - 1, j]
                if j > 0:
                    s += world[i - 1, j - 1]
            if i < n - 1:
                s += world[i + 1, j]
                if j < m - 1:
                    s += world[i + 1, j + 1]
            if s > 1:
                after[i, j] = s
            elif s == 1:
                after[i, j] = -world[i, j]
            else:
                after[i, j] = 0


@polyc.kernel
def window(x, y):
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            total = 0.0
            count = 0.0
            for a in range(max(i - 1, 0), min(i + 2, n)):
                for b in range(max(j - 2, 0), min(j + 2, m)):
                    total += x[a, b]
                    count += 1.0
            y[i, j] = total / count


@polyc.kernel
def insulated(u, new, a, steps):
    n, m = u.shape
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                up = u[i - 1, j] if i > 0 else u[i + 1, j]
                down = u[i + 1, j] if i < n - 1 else u[i - 1, j]
                left = u[i, j - 1] if j > 0 else u[i, j + 1]
                right = u[i, j + 1] if j < m - 1 else u[i, j - 1]
                new[i, j] = u[i, j] + a * (up + down + left + right - 4 * u[i, j])
        for i in range(n):
            for j in range(m):
                u[i, j] = new[i, j]


@polyc.kernel
def warped(x, y, D):
    n, m = D.shape
    for i in range(n):
        for j in range(m):
            cost = abs(x[i] - y[j])
            if i > 0 and j > 0:
                D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
            elif i > 0:
                D[i, j] = cost + D[i - 1, j]
            elif j > 0:
                D[i, j] = cost + D[i, j - 1]
            else:
                D[i, j] = cost


@polyc.kernel
def checkered(A, B):
    n, m = A.shape
    for i in range(n):
        for j in range(m):
            if (i + j) % 2 == 0:
                B[i, j] = A[i, j] * 2.0
            else:
                B[i, j] = A[i, j] - 1.0


@polyc.kernel
def halves(A, x, y):
    n = len(A)
    for i in range(n):
        for j in range(n):
            A[i, j] = (x[j] if j < i else y[j]) if i != j else x[i] + y[i]


def grid(n: int, *, extra: int = 2) -> np.ndarray:
    return RNG.random((n, n + extra))


def cells(n: int) -> tuple[np.ndarray, np.ndarray]:
    return RNG.integers(0, 2, (n, n + 3)), np.zeros((n, n + 3), np.int64)


CASES = {
    "clipped": (clipped, lambda n: (grid(n), grid(n))),
    "periodic": (periodic, cells),
    "asked": (asked, cells),
    "window": (window, lambda n: (grid(n), grid(n))),
    "insulated": (insulated, lambda n: (grid(n + 1), grid(n + 1), 0.2, 4)),
    "warped": (warped, lambda n: (RNG.random(n), RNG.random(n + 1), np.zeros((n, n + 1)))),
    "checkered": (checkered, lambda n: (grid(n), grid(n))),
    "halves": (halves, lambda n: (grid(n, extra=0), RNG.random(n), RNG.random(n))),
}


INSULATED = thorough("insulated")
"""Four steps of a grid with all its borders: `window` has borders on all sides as well."""

WINDOW = thorough("window")
"""The longest of the others, where any kernel will do."""


@pytest.mark.parametrize("name", [INSULATED if n == "insulated" else n for n in CASES])
def test_borders_do_what_python_does(name):
    kernel, arguments = CASES[name]
    for threads in (1, 2):
        kernel.threads = threads
        for n in (1, 2, 3, 4, 9, 40):
            check(kernel, *arguments(n))
    assert "executed in full" in kernel.explain()


@pytest.mark.thorough
def test_empty_grids_stay_empty():
    for kernel in (clipped, periodic, asked, window):
        kernel.threads = 1
        check(kernel, np.zeros((0, 3)), np.zeros((0, 3)))
        check(kernel, np.zeros((3, 0)), np.zeros((3, 0)))


@pytest.mark.parametrize(
    "name", ["clipped", "periodic", thorough("asked"), WINDOW, INSULATED, "halves"]
)
def test_interiors_ask_nothing(name):
    """Some innermost loop in lanes executes its statements without a condition."""
    kernel, arguments = CASES[name]
    given = dict(zip(kernel.function.arguments, arguments(9), strict=True))
    signature = Signature({n: argument_of(n, value) for n, value in given.items()})
    compiled = compile_loops(kernel.function, signature, Target.named("avx2"), Options())
    assert compiled.proof is not None
    dense = [
        loop
        for loop in walk_nodes(drop_decided(compiled.kernel.body))
        if isinstance(loop, For) and loop.kind == "simd" and not any(map(_asks, walk_nodes(loop)))
    ]
    assert dense


def _asks(node) -> bool:
    if isinstance(node, Assign):
        return any(isinstance(e, nodes.Test) for e in walk_expr(node.value))
    return isinstance(node, If)


@pytest.mark.parametrize("name", ["clipped", WINDOW, INSULATED])
def test_its_schedule_can_be_given_back(name):
    kernel, arguments = CASES[name]
    kernel(*arguments(9))
    again = polyc.kernel(schedule=kernel.tree)(kernel.python)
    check(again, *arguments(9))
    assert again.source == kernel.source
