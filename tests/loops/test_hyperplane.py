"""Loops that wait for one of their iterations: closures of graphs, eliminations."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import polyc
from bench.polybench.medley import floyd_warshall
from polyc.loops.schedule.hyperplane import cut_at_hyperplane
from tests.loops.against_python import check
from tests.sampling import sampled

RNG = np.random.default_rng(7)


@polyc.kernel
def closure(r):
    n = len(r)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                r[i, j] = r[i, j] | (r[i, k] & r[k, j])


@polyc.kernel
def shortest(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


@polyc.kernel
def from_the_middle(x, c):
    n = len(x)
    for t in range(n // 2):
        for i in range(n):
            x[i] = 0.5 * x[i] + c * x[n - 1 - t]


@polyc.kernel
def two_at_a_time(A, x):
    n = len(x)
    for k in range(1, n):
        for j in range(n):
            x[j] = A[k, j] * x[k] - x[k - 1]


CASES = {
    "floyd-warshall": (floyd_warshall, lambda n: (RNG.integers(1, 99, (n, n)).astype(np.int32),)),
    "closure": (closure, lambda n: (RNG.integers(0, 8, (n, n)),)),
    "shortest": (shortest, lambda n: (RNG.random((n, n)) - 0.2,)),
    "from the middle": (from_the_middle, lambda n: (RNG.random(n), 0.3)),
    "two at a time": (two_at_a_time, lambda n: (RNG.random((n, n)), RNG.random(n))),
}


@pytest.mark.parametrize("name", sampled(CASES, often=["from the middle"]))
def test_cut_loops_do_what_python_does(name):
    kernel, arguments = CASES[name]
    for threads in (1, 2, 4):
        kernel.threads = threads
        for n in (1, 2, 3, 5, 34, 70):
            check(kernel, *arguments(n))
    assert "executed in full" in kernel.explain()


@pytest.mark.parametrize("name", ["floyd-warshall", "closure", "shortest", "from the middle"])
def test_both_sides_of_the_cut_run_in_lanes(name):
    kernel, arguments = CASES[name]
    kernel(*arguments(34))
    assert kernel.source.count("#pragma omp simd") >= 2


def test_its_schedule_can_be_given_back():
    closure(*CASES["closure"][1](9))
    again = polyc.kernel(schedule=closure.tree)(closure.python)
    check(again, *CASES["closure"][1](9))
    assert again.source == closure.source


CARRIED = """{ S[k, i, j] -> S[k, i, k] : 0 <= i < 50 and 0 <= j < k < 50;
               S[k, i, j] -> S[k, i, o] : j = k and 0 <= i < 50 and 0 <= k < o < 50 }"""


def test_a_hyperplane_is_found():
    front, on, behind = cut_at_hyperplane(isl.UnionMap(CARRIED), (0, 0, 1))
    assert [lanes for _, lanes in (front, on, behind)] == [True, False, True]
    where = "{ S[k, i, j] : j %s k and 0 <= k < 50 and 0 <= i < 50 and 0 <= j < 50 }"
    box = isl.UnionSet("{ S[k, i, j] : 0 <= k < 50 and 0 <= i < 50 and 0 <= j < 50 }")
    for (part, _), relation in zip((front, on, behind), "<=>", strict=True):
        assert part.intersect(box).is_equal(isl.UnionSet(where % relation))


def test_down_the_loop_the_parts_change_places():
    (first, _), _, (last, _) = cut_at_hyperplane(isl.UnionMap(CARRIED), (0, 0, -1))
    assert isl.UnionSet("{ S[1, 0, 2] }").is_subset(first)
    assert isl.UnionSet("{ S[1, 0, 0] }").is_subset(last)


@pytest.mark.parametrize(
    "carried",
    [
        "{ }",
        "{ S[k, i, j] -> S[k, i, 49 - j] : 0 <= j < 20 }",  # none is waited for, and waits
        "{ S[k, i, j] -> S[k, i, j + 1] : 0 <= j < 50 }",  # each waits for the one before
        "{ S[k, i, j] -> S[k, i, o] : 2 j = k and 0 <= j < o < 50; "
        "S[k, i, j] -> S[k, i, j + 1] : k < j < 50 }",  # some do, behind the plane
    ],
)
def test_what_a_cut_does_not_help_stays_whole(carried):
    assert cut_at_hyperplane(isl.UnionMap(carried), (0, 0, 1)) == ()
