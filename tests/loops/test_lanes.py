"""What runs in lanes, and along which loop: by what memory and arithmetic cost."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import polyc
from bench.polybench.everyday import autocorrelation, grey, nearest
from bench.polybench.inference import embed, layer_norm, rotate, sparse_product, sum_of_rows
from tests.loops.against_python import check

RNG = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


def loops_in_lanes(kernel) -> list[str]:
    """The bodies of loops that the C compiler cuts into vectors."""
    return re.findall(r"#pragma omp simd\n *for [^\n]*\{\n(.*?)\n *\}\n", kernel.source, re.DOTALL)


@polyc.kernel
def gates(x, w, b, h):
    for j in range(len(h)):
        update = b[0, j]
        new = b[1, j]
        for e in range(len(x)):
            update += w[0, j, e] * x[e]
            new += w[1, j, e] * x[e]
        h[j] = h[j] / (1.0 + math.exp(-update)) + math.tanh(new)


def test_rows_that_data_picks_are_walked_in_lanes():
    for n, k, width in ((1, 1, 1), (3, 5, 20), (4, 2, 67)):
        ids = RNG.integers(-9, 9, (n, k))
        check(embed, ids, random(9, width), np.zeros((n, width)))
    assert "pc_load_f64x" in embed.source


def test_what_data_picks_is_added_in_lanes():
    for n, k in ((1, 1), (3, 7), (4, 8), (2, 41)):
        columns = RNG.integers(0, 50, (n, k))
        check(sparse_product, random(n, k), columns, random(50), np.zeros(n))
    with pytest.raises(polyc.errors.RuntimeFailure):
        sparse_product(random(2, 8), np.full((2, 8), 50), random(50), np.zeros(2))


def test_the_even_and_the_odd_elements_of_a_row_are_written_by_one_loop():
    for shape in ((1, 1, 2), (3, 2, 34), (2, 3, 7)):
        n, _, d = shape
        check(rotate, random(*shape), random(n, d // 2), random(n, d // 2), np.zeros(shape))
    (body,) = loops_in_lanes(rotate)
    assert body.count("out_[") == 2


def test_the_loops_that_run_most_decide_along_which_lanes_run():
    for n, m in ((1, 1), (5, 33), (40, 70)):
        check(gates, random(m), random(2, n, m) - 0.5, random(2, n), random(n))
    assert gates.source.count("pc_reduce_add_f64x") == 2


def test_the_best_of_each_row_is_found_in_lanes():
    for n, m in ((1, 1), (9, 5), (70, 30), (33, 70)):
        check(nearest, random(n, 16), random(m, 16), np.zeros(n, np.int64))
    assert any("which_local" in body and "if_1_local" in body for body in loops_in_lanes(nearest))


def test_arithmetic_pays_for_loads_that_lie_apart():
    check(grey, RNG.integers(0, 256, (5, 21, 3)).astype(np.uint8), np.zeros((5, 21)))
    assert loops_in_lanes(grey)


def test_whole_numbers_are_added_in_lanes():
    for n, m in ((1, 1), (3, 9), (2, 300)):
        check(sum_of_rows, RNG.integers(0, 256, (n, m)).astype(np.uint8), np.zeros(n, np.int64))
    assert "pc_reduce_add_i64x" in sum_of_rows.source


def test_what_one_free_loop_has_together_stays_together():
    for n, m in ((1, 1), (3, 70), (40, 33)):
        check(layer_norm, random(n, m), random(m), random(m), np.zeros((n, m)))
        check(autocorrelation, random(n + m), np.zeros(n))
    for kernel in (layer_norm, autocorrelation):
        assert "schedule: the original order" in kernel.explain()
        assert kernel.source.count("PC_SHARE(") == 1


@polyc.kernel
def two_loops(x, y, z):
    n, m = x.shape
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j]
        y[i] = s
    for j in range(m):
        for i in range(n):
            z[j] += x[i, j] * y[i]


def test_what_is_written_apart_may_stay_apart():
    check(two_loops, random(9, 40), np.zeros(9), np.zeros(40))
    assert "it takes apart what one loop has" in autocorrelation.explain()
    assert "it takes apart" not in two_loops.explain()
