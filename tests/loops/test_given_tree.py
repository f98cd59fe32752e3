"""Schedule trees that are given back: as they were shown, edited, and refused where wrong."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import polyc
from bench.polybench.kernels import PROBLEMS
from polyc.errors import IllegalSchedule
from polyc.loops.run.kernel import LoopKernel
from polyc.options import options_from_environment
from tests.loops.against_python import check
from tests.sampling import sampled, thorough

RNG = np.random.default_rng(9)


def relax(A):
    n, m = A.shape
    for i in range(1, n):
        for j in range(1, m):
            A[i, j] = A[i - 1, j] + A[i, j - 1] * 0.5


def smooth(x, y, z):
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1] + x[i] + x[i + 1]
    for j in range(2, len(x) - 2):
        z[j] = y[j - 1] * y[j + 1]


def total(A, s):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            s[i] += A[i, j]


def fill(x):
    for i in range(len(x)):
        x[i] = 1.0


def backwards(x):
    n = len(x)
    for i in range(1, n):
        x[n - 1 - i] += x[n - i]


ARGUMENTS = {
    "relax": lambda n: (RNG.random((n, n + 3)),),
    "smooth": lambda n: tuple(RNG.random(n + 4) for _ in range(3)),
    "total": lambda n: (RNG.random((n, n + 2)), RNG.random(n)),
    "fill": lambda n: (RNG.random(n),),
    "backwards": lambda n: (RNG.random(n + 1),),
}

WAVES = """
domain  S0[i, j]
└ band  i + j
  └ mark  parallel
    └ band  i
"""
TILES = """
    domain  S0[a, b]
    └ band  floor(a/4) + floor(b/8)  atomic
      └ mark  parallel
        └ band  floor(a/4)  atomic
          └ band  a, b
"""
BY_PIECES = """
domain  S0[i], S1[j]
└ sequence
  ├ filter  S0
  │ └ mark  simd
  │   └ band  {i if { [i] : i <= 4 }; 2*i if { [i] : i >= 5 }}
  └ filter  S1
    └ band  -j
"""
TWO_HALVES = """
domain  S0[i, j]
  sequence
    filter  { S0[i, j] : i < 5 }
      band  j
        band  i
    filter  { S0[i, j] : i >= 5 }
      mark  parallel
        band  i
          mark  simd
            band  j
"""
FUSED = """
domain S0[i], S1[j]
└ band  S0: i; S1: j + 1
  └ sequence
    ├ filter  S0
    └ filter  S1
"""

LEGAL = [
    (relax, WAVES),
    thorough(relax, TILES),
    thorough(smooth, BY_PIECES),
    thorough(smooth, FUSED),
    (total, TWO_HALVES),
]

GAP = """
domain S0[i]
└ sequence
  ├ filter  { S0[i] : i < 3 }
  │ └ band  i
  └ filter  { S0[i] : i > 3 }
    └ band  i
"""

ILLEGAL = [
    (fill, "domain S0[i]\n└ band  i  unrolled", "an unrolled band has members of at most 8 values"),
    (
        relax,
        "domain S0[i, j]\n└ band  -i, j",
        r"breaks a dependence \(flow\): S0\[2, 1\] has to run after",
    ),
    (relax, "domain S0[i, j]\n└ band  j - i\n  └ band  i", r"breaks a dependence \(flow\)"),
    (
        relax,
        "domain S0[i, j]\n└ mark  parallel\n  └ band  i\n    └ band  j",
        "the proof refuses .* parallel",
    ),
    (relax, "domain S0[i, j]\n└ band  i\n  └ mark  simd\n    └ band  j", "the proof refuses"),
    (relax, "domain S0[i, j]\n└ band  i", "the proof refuses|breaks a dependence"),
    (smooth, FUSED.replace("j + 1", "j"), r"\(flow\): S1\[2\] has to run after S0\[3\]"),
    (
        smooth,
        "domain S0[i]\n└ band  i",
        "the statements of this kernel are S0 with 1 iterators, S1",
    ),
    (smooth, "domain S0[i, j], S1[i]\n└ band  i", "the statements of this kernel are"),
    (fill, "domain S0[i]\n└ band  k", "isl cannot read"),
    (fill, "domain S0[i]\n└ band  i, ", "isl cannot read"),
    (fill, "domain S0[i]\n└ band  S1: i", "it says nothing of S0"),
    (fill, "domain S0[i]\n└ band  S0: i; S3: i", "it says something of S3"),
    (
        fill,
        "domain S0[i]\n└ band  i] : i < 3; S0[i] -> [i",
        "no function|isl cannot read|more members",
    ),
    (fill, "domain S0[i]\n└ band  {i if { [i] : i < 3 }}", "has no value for some instances of S0"),
    (fill, "domain S0[i]\n└ band  {i if { [i, j] : i < 3 }}", "is no condition on S0"),
    (fill, "domain S0[i]\n└ loop  i", "below a node stands a band, a mark"),
    (fill, "domain S0[i]\n└ sequence", "nothing stands below it"),
    (fill, "domain S0[i]\n└ sequence\n  └ band  i", "below a sequence stand filters"),
    (fill, "domain S0[i]\n├ band  i\n└ band  i", "only a sequence has several nodes"),
    (fill, "domain S0[i]\n└ sequence\n  └ filter  S5\n    └ band  i", "isl cannot read 'S5'"),
    (
        fill,
        "domain S0[i]\n└ sequence\n  └ filter  { S0[i, j] : i < 3 }",
        "is no statement, and no set of one",
    ),
    (fill, GAP, "the proof refuses"),
    (
        fill,
        "domain S0[i]\n└ sequence\n  ├ filter  S0\n  │ └ band  i\n  └ filter  S0\n    └ band  i",
        "isl makes no tree|the proof refuses",
    ),
    (
        fill,
        "domain S0[i]\n└ mark  threads\n  └ band  i",
        "mark 'threads': there are hold, parallel",
    ),
    (fill, "domain S0[i]\n└ mark  simd", "below it stands a band of one member"),
    (
        total,
        "domain S0[i, j]\n└ mark  simd\n  └ band  i, j",
        "below it stands a band of one member",
    ),
    (
        total,
        "domain S0[i, j]\n└ mark  simd\n  └ band  i\n    └ mark  parallel\n      └ band  j",
        "threads share no loop inside of lanes",
    ),
    (
        total,
        "domain S0[i, j]\n└ mark  vector\n  └ band  i\n    └ band  j",
        "inside of it stand loops that are unrolled",
    ),
]


def _name(value: object) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(
    "name",
    sampled(
        ["gemm", "trisolv", "jacobi-1d", "seidel-2d", "durbin", "bicg"], often=["trisolv", "bicg"]
    ),
)
def test_what_is_shown_can_be_given_back(name):
    first, again = _give_back(name)
    assert again.source == first.source
    assert again.tree == first.tree
    assert "schedule: as it was given" in again.explain()
    assert "proven: " in again.explain()


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_what_is_shown_of_any_kernel_can_be_given_back(name):
    """The text of the loops may differ where a filter's set has several pieces: isl cuts loops by
    the order in which it holds them, which a schedule does not say.
    """
    first, again = _give_back(name)
    assert again.tree == first.tree
    if not any(line.count("->") > 1 for line in first.tree.splitlines() if "filter" in line):
        assert again.source == first.source


def _give_back(name: str) -> tuple[LoopKernel, LoopKernel]:
    """A kernel, and the same by the schedule that it shows, with the same results."""
    problem = PROBLEMS[name]
    given = problem.make(*problem.sizes["mini"])
    first = polyc.kernel(problem.kernel.python)
    first(**(once := copy.deepcopy(given)))
    again = polyc.kernel(schedule=first.tree)(problem.kernel.python)
    again(**(twice := copy.deepcopy(given)))
    for array, other in zip(once.values(), twice.values(), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-12)
    return first, again


@pytest.mark.parametrize(("function", "tree"), LEGAL, ids=_name)
def test_a_tree_that_is_given_is_what_runs(function, tree):
    kernel = polyc.kernel(schedule=tree)(function)
    for n in (1, 2, 7, 18):
        check(kernel, *ARGUMENTS[function.__name__](n))
    assert ("in parallel" in kernel.explain()) == ("parallel" in tree)
    in_lanes = "#pragma omp simd" in kernel.source or "pc_load_f64x" in kernel.source
    assert in_lanes == ("simd" in tree)


@pytest.mark.parametrize(("function", "tree", "message"), ILLEGAL, ids=_name)
def test_a_tree_that_breaks_something_is_refused(function, tree, message):
    arguments = ARGUMENTS[function.__name__](9)
    before = [a.copy() for a in arguments]
    with pytest.raises(IllegalSchedule, match=message):
        polyc.kernel(schedule=tree)(function)(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, before, strict=True))


def test_a_tree_is_proven_whatever_the_options_say():
    options = polyc.Options(verify=False)
    tree = "domain S0[i, j]\n└ mark  parallel\n  └ band  i\n    └ band  j"
    with pytest.raises(IllegalSchedule, match="the proof refuses"):
        polyc.kernel(schedule=tree, options=options)(relax)(*ARGUMENTS["relax"](9))


def test_sizes_stand_in_functions():
    first = polyc.kernel(backwards)
    first(*ARGUMENTS["backwards"](9))
    turned = polyc.kernel(schedule="domain S0[i]\n└ band  i - size_x_shape_0")(backwards)
    for n in (0, 1, 5, 40):
        check(turned, *ARGUMENTS["backwards"](n))


def test_a_text_without_statements_is_refused_at_once():
    with pytest.raises(IllegalSchedule, match="is no statement with its iterators"):
        polyc.kernel(schedule="domain S0\n└ band  i")


def test_a_tree_is_for_a_cpu():
    from dataclasses import replace

    options = replace(options_from_environment(), emulated=True)
    kernel = polyc.kernel(schedule=WAVES, target="cuda", options=options)(relax)
    with pytest.raises(IllegalSchedule, match="a tree is for a CPU"):
        kernel(*ARGUMENTS["relax"](5))
