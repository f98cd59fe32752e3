"""What isl's scheduler makes of kernels: right on any number of threads, and really in parallel."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import polyc
from bench.polybench.algebra import atax, bicg, mvt
from bench.polybench.blas import gemm
from bench.polybench.solvers import durbin, gramschmidt, lu, trisolv
from bench.polybench.stencils import jacobi_1d, seidel_2d
from polyc.options import Options
from tests.loops.against_python import check
from tests.sampling import sampled, thorough

RNG = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


@polyc.kernel
def moments(A, mean, spread):
    n, m = A.shape
    for j in range(m):
        s = 0.0
        for i in range(n):
            s += A[i, j]
        s = s / n
        mean[j] = s
        t = 0.0
        for i in range(n):
            d = A[i, j] - s
            t += d * d
        spread[j] = t / n


CASES = {
    "gemm": (
        gemm,
        lambda n: (1.5, 0.5, random(n, n + 2), random(n, n + 1), random(n + 1, n + 2)),
    ),
    "jacobi": (jacobi_1d, lambda n: (5, random(n), random(n))),
    "seidel": (seidel_2d, lambda n: (4, random(n, n))),
    "lu": (lu, lambda n: (random(n, n) + n * np.eye(n),)),
    "moments": (moments, lambda n: (random(n, n + 3), random(n + 3), random(n + 3))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, thorough(2), 4])
def test_kernels_are_right_on_any_number_of_threads(name, threads):
    kernel, arguments = CASES[name]
    kernel = replace(kernel, threads=threads)
    for n in (1, 2, 5, 41):
        check(kernel, *arguments(n))


SHARED = {
    "gemm": "tiles of S0, S1",
    "jacobi": "wavefronts of tiles of S0, S1",
    "seidel": "wavefronts of tiles of S0",
    "lu": "wavefronts of tiles of S0, S1, S2",
}


@pytest.mark.parametrize("name", SHARED)
def test_what_runs_in_parallel_is_said_and_printed(name):
    kernel, arguments = CASES[name]
    kernel(*arguments(3))
    assert f"in parallel: {SHARED[name]}" in kernel.explain()
    assert "PC_SHARE(pc_trips(" in kernel.source


def test_loops_that_carry_nothing_run_in_lanes():
    gemm(*CASES["gemm"][1](3))
    assert "#pragma omp simd" in gemm.source


def test_sums_run_in_lanes():
    for n in (2, 5, 40, 70):
        check(atax, random(n, n + 3), random(n + 3), random(n + 3), random(n))
    assert "pc_loadn_f64x" in atax.source  # what is left of a row has idle lanes
    assert "pc_reduce_add_f64x" in atax.source


def test_locals_live_inside_of_their_loops():
    moments(*CASES["moments"][1](3))
    assert "s_local" in moments.source
    assert "isl's schedule is not used: it keeps all values of d in memory" in moments.explain()


def test_the_original_order_is_the_recorded_fallback():
    hurried = polyc.kernel(options=replace(Options(), max_operations=10))(seidel_2d.python)
    check(hurried, 3, random(9, 9))
    assert "schedule: the original order" in hurried.explain()
    assert "isl's schedule is not used: isl stopped" in hurried.explain()


@polyc.kernel
def reuse(x, y, z):
    for i in range(len(x)):
        w = x[i] * 2
        y[i] = w
        w = w + 1
        z[i] += w
    for i in range(len(x)):
        w = y[i]
        for j in range(i):
            w -= z[j]
        x[i] = w


def test_a_local_for_several_things_becomes_several():
    for n in (1, 2, 33):
        check(reuse, random(n), random(n), random(n))
    assert "w_1[" in reuse.explain()
    assert "w_2[" in reuse.explain()


def test_loops_sink_to_where_they_walk_along_rows():
    for n in (1, 2, 7, 40):
        check(gramschmidt, random(n + 3, n) + 1, random(n, n), random(n + 3, n), tolerance=1e-9)
    in_lanes = r"#pragma omp simd\n.*\n +R_\[size_R_shape_1 \* c\d+ \+ c\d+\] \+= Q_"
    assert re.search(in_lanes, gramschmidt.source)


def test_loops_that_carry_all_run_along_diagonals():
    seidel_2d(3, random(9, 9))
    assert "band  3*i + 2*i_1 + j" in seidel_2d.explain()


@polyc.kernel
def solve_transposed(L, x):
    n = len(x)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]


@polyc.kernel
def grows(A, x):
    for i in range(len(x)):
        for j in range(A.shape[1]):
            x[i] += A[i, j] * x[i]


@polyc.kernel
def reads_the_first(A, x):
    for i in range(len(x)):
        for j in range(A.shape[1]):
            x[i] += A[i, j] * x[0]


@polyc.kernel
def running(A):
    for i in range(1, len(A)):
        A[i] += A[i - 1]


@polyc.kernel
def backwards(r, x, y):
    n = len(x)
    for k in range(n):
        for i in range(k):
            y[k] += r[k - i - 1] * x[i]


SUMS = {
    "trisolv": (trisolv, lambda n: (np.tril(random(n, n)) + n * np.eye(n), random(n), random(n))),
    "transposed": (solve_transposed, lambda n: (random(n, n) + n * np.eye(n), random(n))),
    "grows": (grows, lambda n: (random(n, 7) / 9, random(n))),
    "reads the first": (reads_the_first, lambda n: (random(n, 7) / 9, random(n))),
    "running": (running, lambda n: (random(n),)),
    "backwards": (backwards, lambda n: (random(n), random(n), random(n))),
}


@pytest.mark.parametrize("name", sampled(SUMS, seldom=["grows", "transposed"]))
def test_sums_that_read_their_own_array(name):
    kernel, arguments = SUMS[name]
    for n in (0, 1, 2, 7, 65, 300):
        for threads in (1, 2):
            check(replace(kernel, threads=threads), *arguments(n), tolerance=1e-9)


def test_lanes_share_sums_of_solved_elements():
    trisolv(*SUMS["trisolv"][1](300))
    assert "partial_0_0 += " in trisolv.source


def test_backward_rows_are_read_in_vectors():
    durbin.compile(r=polyc.f64["n"], y=polyc.f64["n"], z=polyc.f64["n"])
    assert re.search(r"pc_loads_f64x\d\(&r_\[.*\], -1\)", durbin.source)


@polyc.kernel
def around(A, x, y, z):
    n, m = A.shape
    for i in range(n):
        z[i] = 0
    for i in range(n):
        for j in range(m):
            z[i] += A[i, j] * x[j]
    for j in range(m):
        for i in range(n):
            y[j] += A[i, j] * z[i]
    for j in range(m):
        x[j] = y[j] - x[j]


@polyc.kernel
def apart(A, B, x, y, z):
    n, m = A.shape
    for i in range(n):
        for j in range(m):
            z[i] += A[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            y[j] += A[n - 1 - i, j] * z[i]
    for i in range(n):
        for j in range(m):
            x[j] += B[i, j] * y[j]


JOINED = {
    "atax": (atax, lambda n, m: (random(n, m), random(m), random(m), random(n))),
    "bicg": (bicg, lambda n, m: (random(n, m), random(m), random(n), random(m), random(n))),
    "mvt": (mvt, lambda n, m: (*(random(n) for _ in range(4)), random(n, n))),
    "around": (around, lambda n, m: (random(n, m), random(m), random(m), random(n))),
}


@pytest.mark.parametrize("name", sampled(JOINED, seldom=["atax", "bicg"]))
def test_neighbours_that_walk_one_matrix_share_tiles(name):
    kernel, arguments = JOINED[name]
    for n, m in [(1, 1), (5, 3), (32, 33), (33, 600), (70, 1030), (0, 3), (3, 0)]:
        for threads in (1, 2):
            used = replace(kernel, threads=threads)
            check(used, *arguments(n, m), tolerance=1e-9)
    used(*arguments(40, 50))
    assert re.search(r"floor\(\w+/32\).*\n.*sequence\n", used.explain())


def test_neighbours_that_walk_a_matrix_in_other_orders_share_none():
    for n, m in [(1, 1), (33, 40)]:
        check(apart, random(n, m), random(n, m), random(m), random(m), random(n), tolerance=1e-9)
    assert not re.search(r"floor\(\w+/32\).*\n.*(sequence|set)\n", apart.explain())


@polyc.kernel
def rotate(x, c, s, y, z):
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * c[j]
            z[i, j] = x[i, j] * s[j]


def test_statements_of_a_loop_that_read_the_same_stay_together():
    for n, m in [(1, 1), (7, 33), (40, 300)]:
        check(rotate, random(n, m), random(m), random(m), random(n, m), random(n, m))
    assert rotate.source.count("PC_SHARE(") == 1
