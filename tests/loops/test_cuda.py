"""Kernels for a GPU, on the emulator and on a GPU: PolyBench, users' schedules, refusals, races."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from bench.polybench.data import search
from bench.polybench.kernels import PROBLEMS
from polyc.codegen.cuda.launches import place_launches
from polyc.errors import IllegalSchedule, RuntimeFailure, ShapeError
from polyc.loopnest.nodes import For, walk_nodes
from polyc.loops.run import compile_cuda
from polyc.options import options_from_environment
from tests.cuda import emulated as emulator
from tests.cuda.conftest import emulated  # noqa: F401
from tests.loops.against_python import check
from tests.loops.test_given import ARGUMENTS, product, random, relax, scale, smooth
from tests.sampling import sampled, thorough

ON_EMULATOR = replace(options_from_environment(), emulated=True)

TINY, ODD = (3, 2, 4, 2, 3), (13, 19, 11, 17, 23)

SAMPLE = ("gemm", "seidel-2d")
"""Those that are tested wherever tests are."""


def on_gpu(function, schedule=None):
    return polyc.kernel(schedule=schedule, target="cuda", options=ON_EMULATOR)(function)


@pytest.mark.parametrize(
    "name",
    sampled(PROBLEMS, often=SAMPLE),
)
def test_polybench_does_on_a_gpu_what_python_does(name, emulated):  # noqa: F811
    problem = PROBLEMS[name]
    kernel = replace(problem.kernel, target="cuda", options=replace(ON_EMULATOR, emulated=emulated))
    for sizes in (TINY, ODD):
        given = problem.make(*sizes[: len(problem.sizes["mini"])])
        mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
        kernel(**mine)
        kernel.python(**theirs)
        for result, reference in theirs.items():
            if isinstance(reference, np.ndarray):
                scale = np.abs(reference).max()
                np.testing.assert_allclose(
                    mine[result], reference, rtol=1e-9, atol=1e-12 * scale, err_msg=result
                )
    assert "proven: " in kernel.explain()
    assert "PC_KERNEL" in kernel.source


LAUNCHED = {
    "gemm": "launches\n  2 blocks of 256\n",
    "jacobi-2d": "  for c0 from 0 to below 13:\n    3 blocks of 256\n    3 blocks of 256\n",
    "seidel-2d": "  for c0 from 3 to below 100:\n    2 blocks of 256\n",
}


@pytest.mark.cuda
@pytest.mark.parametrize("name", LAUNCHED)
def test_what_carries_a_dependence_is_a_launch_a_step(name):
    problem = PROBLEMS[name]
    kernel = replace(problem.kernel, target="cuda", options=ON_EMULATOR)
    kernel(**problem.make(*ODD[: len(problem.sizes["mini"])]))
    assert LAUNCHED[name] in kernel.explain()


@pytest.mark.cuda
@pytest.mark.parametrize("name", [thorough("gemm"), "seidel-2d", thorough("durbin")])
def test_where_isl_stops_loops_stay_as_they_were_written(name):
    problem = PROBLEMS[name]
    few = replace(ON_EMULATOR, max_operations=1)
    kernel = polyc.kernel(target="cuda", options=few)(problem.kernel.python)
    given = problem.make(*ODD[: len(problem.sizes["mini"])])
    check(kernel, *given.values(), tolerance=1e-9)
    assert "schedule: the original order" in kernel.explain()
    assert "isl's schedule is not used: isl stopped" in kernel.explain()


# -- schedules of users ---------------------------------------------------------------------------

LEGAL = [
    thorough(relax, "", "one thread"),
    (relax, "skew j i 1 | order j i | split i 8 | block i | thread i'", "for c0 from 2 to"),
    (product, "split i 4 | split j 8 | order i j i' j' | block i j | thread i' j'", "15 blocks"),
    (scale, "split i 2 | block i | warp i'", "9 blocks of 64"),
    thorough(scale, "thread i | keep t in stack at i", "1 blocks of 18"),
]

MORE_LEGAL = [
    (relax, "skew j i 1 | order j i | split i 32 | thread i'", "1 blocks of 32"),
    (product, "block i j", "360 blocks of 1"),
    (smooth, "split i 4 | split j 4 | block i j | thread i' j'", "5 blocks of 4"),
    (smooth, "split i 4 | block i | thread i'", "one thread"),
    (scale, "block i | thread j", "18 blocks of 19"),
]
"""Of the same directives as those above."""

ILLEGAL = [
    (relax, "thread i", r"thread i breaks a dependence \(flow\): S0\[2, \d+\].* between threads"),
    (relax, "block i", "block i breaks a dependence .* between blocks"),
    (relax, "reverse j", r"reverse j breaks a dependence \(flow\)"),
    (product, "block k", r"block k breaks a dependence \(flow\): S1\[\d, \d, 1\].*S1\[\d, \d, 0\]"),
    (product, "split k 8 | thread k'", "thread k' breaks a dependence .* between threads"),
    (product, "split i 4 | thread i' | block j", "put j outside by order"),
    (product, "distribute j | block i | block S0.j", "loops over blocks are directly inside"),
    (product, "parallel i", "parallel i: that is for CPUs"),
    (product, "join i j as e", "stay as they are; say order, split, skew, block, thread, or keep"),
    (scale, "pack s", "the arrays of loops that people write lie as they are given"),
    (scale, "unroll z", "there is no loop z here"),
]


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("function", "schedule", "launched"),
    [*LEGAL, *(thorough(*case) for case in MORE_LEGAL)],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_a_schedule_that_is_given_runs_on_a_gpu(function, schedule, launched):
    kernel = on_gpu(function, schedule)
    for n in (1, 2, 7, 18):
        check(kernel, *ARGUMENTS[function.__name__](n))
    assert launched in kernel.explain()
    assert "schedule: as it was given" in kernel.explain()
    assert "proven: " in kernel.explain()


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("function", "schedule", "message"), ILLEGAL, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_schedule_that_breaks_something_on_a_gpu_is_refused(function, schedule, message):
    kernel = on_gpu(function, schedule)
    arguments = ARGUMENTS[function.__name__](9)
    before = [a.copy() for a in arguments]
    with pytest.raises(IllegalSchedule, match=message):
        kernel(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, before, strict=True))


# -- races ----------------------------------------------------------------------------------------


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["floyd-warshall", thorough("durbin")])
def test_barriers_keep_threads_apart(name):
    """As ThreadSanitizer sees it, to which a thread of a block is a thread."""
    if not emulator.has_sanitizers(emulator.RACES):
        pytest.skip("no ThreadSanitizer")
    problem = PROBLEMS[name]
    kernel = replace(problem.kernel, target="cuda", options=ON_EMULATOR)
    given = problem.make(9)
    mine = copy.deepcopy(given)
    kernel(**mine)
    assert "PC_SYNC" in kernel.source
    assert _races(kernel, given) == ""


def _races(kernel, given) -> str:
    """What ThreadSanitizer says of a call."""
    arrays = [v for v in given.values() if isinstance(v, np.ndarray)]
    outputs = [arrays[state.input] for state in kernel._stored().bundle.manifest.states]
    with tempfile.TemporaryDirectory() as folder:
        text = kernel.source.replace("if (homes[k] >= 0 && io[homes[k]] != io[k])", "if (0)")
        program = emulator.build(text, Path(folder), emulator.RACES)
        outcome = emulator.run(program, [*arrays, *outputs, np.zeros(1)], workspace=1 << 16)
    assert outcome.error == 0
    return outcome.report


@pytest.mark.cuda
def test_without_a_barrier_nothing_is_proven(monkeypatch):
    monkeypatch.setattr(compile_cuda, "place_block_barriers", lambda body, conflict: body)
    kernel = on_gpu(relax, "skew j i 1 | order j i | split i 32 | thread i'")
    with pytest.raises(IllegalSchedule, match="threads of a block may meet"):
        kernel(random(9, 12))


@pytest.mark.cuda
def test_a_sum_that_threads_race_for_is_not_proven(monkeypatch):
    """Whatever made the loops: here the loop over k, of which each iteration adds to one place."""

    def race(nest):
        def swap(node):
            return replace(node, kind="thread") if isinstance(node, For) else node

        (loop,) = [n for n in walk_nodes(nest) if isinstance(n, For)]
        return place_launches(replace(nest, body=(swap(loop),)))

    def total(x, s):
        for i in range(len(x)):
            s[0] += x[i]

    monkeypatch.setattr(compile_cuda, "place_launches", race)
    with pytest.raises(IllegalSchedule, match="thread loop c0 carries a dependence"):
        on_gpu(total)(random(9), np.zeros(1))


# -- calls ----------------------------------------------------------------------------------------


def gather(x, index, y):
    for i in range(len(index)):
        y[i] = x[index[i]]


@pytest.mark.cuda
def test_a_subscript_that_is_data_is_checked_on_a_gpu():
    kernel = on_gpu(gather)
    check(kernel, random(7), np.array([6, 0, 3, -1]), np.zeros(4))
    for _ in range(2):
        with pytest.raises(RuntimeFailure, match="a subscript that is data leaves its array"):
            kernel(random(7), np.array([6, 0, 7]), np.zeros(3))
    check(kernel, random(7), np.array([6, 0, 3, -7]), np.zeros(4))


@pytest.mark.cuda
def test_sizes_are_checked_before_anything_is_changed():
    kernel = on_gpu(relax)
    check(kernel, random(0, 4))
    check(kernel, random(5, 6)[:, ::2])
    with pytest.raises(ShapeError, match="a subscript of 'y' leaves"):
        on_gpu(follow)(random(4), random(3))
    x = random(9)
    with pytest.raises(ShapeError, match="shares memory"):
        on_gpu(smooth)(x[:6], x[2:8], random(6))


def follow(x, y):
    for i in range(len(x)):
        y[i] = x[i]


@pytest.mark.cuda
def test_sizes_that_are_numbers_are_compiled_ahead():
    kernel = on_gpu(relax).compile(A=polyc.f64[9, 12])
    assert "float64[9, 12]" in kernel.explain()
    check(kernel, random(9, 12))
    unknown = on_gpu(relax).compile(A=polyc.f64["n", 12])
    with pytest.raises(ShapeError, match="nothing was compiled yet"):
        unknown.explain()
    with pytest.raises(ShapeError, match="dimension 1 of argument 'A' is 9"):
        unknown(random(9, 9))


@pytest.mark.cuda
def test_each_launch_is_a_function_of_its_own():
    kernel = on_gpu(PROBLEMS["jacobi-2d"].kernel.python)
    kernel(**PROBLEMS["jacobi-2d"].make(3, 40))
    assert (
        "for c0 from 0 to below 3:\n    10 blocks of 256\n    10 blocks of 256" in kernel.explain()
    )
    assert kernel.source.count("PC_KERNEL(") == 2
    assert "&& !error; c0 += 1)" in kernel.source


def scatter(x, index, y):
    for i in range(len(index)):
        y[index[i]] = x[i]


@pytest.mark.cuda
def test_data_says_where_something_is_written():
    rng = np.random.default_rng(1)
    check(on_gpu(scatter), random(40), rng.integers(-9, 9, 40), random(9))


def spread(x, y, step):
    for i in range(len(y)):
        x[i * step] = y[i]


@pytest.mark.cuda
def test_a_number_of_a_call_is_no_data():
    check(on_gpu(spread), random(40), random(13), 3)


@pytest.mark.cuda
def test_a_loop_is_left():
    check(on_gpu(search.python), random(40), random(7), np.zeros(7, np.int64))


def repeat(x):
    while x[0] < 1:
        x[0] += 1


def test_what_cannot_be_compiled_is_refused_ahead():
    with pytest.raises(polyc.errors.UnsupportedOp, match="`while` is outside of the subset"):
        on_gpu(repeat).compile(x=polyc.f64["n"])


def test_a_cpu_may_be_named_as_well():
    kernel = polyc.kernel(target="baseline")(relax)
    check(kernel, random(9, 12))
    with pytest.raises(polyc.errors.UnsupportedOp, match="target 'gpu' is not known"):
        polyc.kernel(target="gpu")(relax)(random(9, 12))
