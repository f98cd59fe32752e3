"""Schedules that users give for their loops: right where they are legal, and refused where not."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.errors import IllegalSchedule
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(8)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


def relax(A):
    n, m = A.shape
    for i in range(1, n):
        for j in range(1, m):
            A[i, j] = A[i - 1, j] + A[i, j - 1] * 0.5


def product(A, B, C):
    n, m = A.shape
    for i in range(n):
        for j in range(B.shape[1]):
            C[i, j] = 0.0
            for k in range(m):
                C[i, j] += A[i, k] * B[k, j]


def smooth(x, y, z):
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1] + x[i] + x[i + 1]
    for j in range(2, len(x) - 2):
        z[j] = y[j - 1] * y[j + 1]


def scale(A, s):
    for i in range(A.shape[0]):
        t = s[i] * 2.0
        for j in range(A.shape[1]):
            A[i, j] *= t


ARGUMENTS = {
    "relax": lambda n: (random(n, n + 3),),
    "product": lambda n: (random(n, n + 1), random(n + 1, n + 2), random(n, n + 2)),
    "smooth": lambda n: (random(n + 4), random(n + 4), random(n + 4)),
    "scale": lambda n: (random(n, n + 1), random(n)),
}

LEGAL = [
    (relax, ""),
    thorough(relax, "order j i"),
    (relax, "skew j i 1 | order j i | parallel i"),
    thorough(relax, "skew j i 1 | order j i | vector i"),
    (relax, "split i 3 | split j 4 | order i j i' j'"),
    thorough(relax, "skew j i 1 | skew j i 1 | order j i"),
    thorough(product, "parallel i"),
    (product, "parallel i j"),
    (product, "distribute j | distribute i | order S1.i S1.k S1.j | vector j | parallel i"),
    thorough(
        product,
        "distribute j | distribute i | split S1.i S1.j S1.k 4 | order S1.k S1.i S1.j S1.k' S1.i'",
    ),
    thorough(product, "distribute j | distribute i | reverse S0.i S1.j"),
    (product, "distribute j | distribute i | split k 4 | order S1.k S1.i S1.j S1.k' | hold k'"),
    (smooth, "vector i j"),
    thorough(smooth, "parallel i j"),
    (smooth, "shift S1.j 2"),
    (smooth, "reverse i | reverse j"),
    (scale, "vector j | parallel i"),
    (scale, "split i 2 | unroll i'"),
]

ILLEGAL = [
    (relax, "reverse i", r"reverse i breaks a dependence \(flow\): S0\[2, 1\] .* S0\[1, 1\]"),
    (relax, "reverse j", r"reverse j breaks a dependence \(flow\)"),
    (relax, "parallel i", "parallel i breaks a dependence .* runs them between threads"),
    (relax, "parallel j", "parallel j breaks a dependence .* runs them between threads"),
    (relax, "vector j", "vector j breaks a dependence .* runs them at once"),
    (relax, "skew j i -1 | order j i", r"order j i breaks a dependence \(flow\)"),
    (relax, "skew j i 1 | parallel j", "parallel j breaks a dependence"),
    (product, "parallel k", "parallel k breaks a dependence .* between threads"),
    (product, "vector j", "inside of a vector loop all loops are unrolled, and k is sequential"),
    (
        smooth,
        "fuse i j",
        r"fuse i j breaks a dependence \(flow\): S1\[2\] has to run after S0\[3\]",
    ),
    (relax, "hold j", "hold j: S0 updates another element in each iteration"),
    (product, "hold j", "hold j: it holds what one statement updates, and inside of it are S0, S1"),
    (scale, "unroll z", "there is no loop z here; there are"),
    (scale, "block i", "block i: that is for GPUs"),
    (scale, "partial S1.j", "that is for GPUs"),
    (scale, "pack s", "the arrays of loops that people write lie as they are given"),
]


def _given(function, schedule):
    return polyc.kernel(schedule=schedule)(function)


@pytest.mark.parametrize(("function", "schedule"), LEGAL, ids=lambda v: getattr(v, "__name__", v))
def test_a_schedule_that_is_given_is_what_runs(function, schedule):
    kernel = _given(function, schedule)
    for n in (1, 2, 7, 18):
        check(kernel, *ARGUMENTS[function.__name__](n))
    assert "schedule: as it was given" in kernel.explain()
    assert "proven: " in kernel.explain()
    assert ("PC_SHARE" in kernel.source) or "parallel" not in schedule
    assert ("#pragma omp simd" in kernel.source) == ("vector" in schedule)


@pytest.mark.parametrize(
    ("function", "schedule", "message"), ILLEGAL, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_schedule_that_breaks_something_is_refused(function, schedule, message):
    kernel = _given(function, schedule)
    arguments = ARGUMENTS[function.__name__](9)
    before = [a.copy() for a in arguments]
    with pytest.raises(IllegalSchedule, match=message):
        kernel(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, before, strict=True))


def test_a_schedule_that_cannot_be_read_is_refused_at_once():
    with pytest.raises(IllegalSchedule, match="the schedule has 'split i'"):
        _given(relax, "split i")
