"""Maxima and minima as people write them: one instruction, and reductions that lanes share."""

from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc.loops.lower.lower import lower
from polyc.loops.read.sizes import Signature
from tests.loops.against_python import check

RNG = np.random.default_rng(5)


@polyc.kernel
def by_max(x, y):
    n, m = x.shape
    for i in range(n):
        top = x[i, 0]
        for j in range(m):
            top = max(top, x[i, j])
        y[i] = top


@polyc.kernel
def by_if(x, y):
    n, m = x.shape
    for i in range(n):
        least = x[i, 0]
        for j in range(m):
            if x[i, j] < least:
                least = x[i, j]
        y[i] = least


@polyc.kernel
def by_choice(x, y):
    n, m = x.shape
    for i in range(n):
        y[i] = x[i, 0]
        for j in range(m):
            y[i] = y[i] if x[i, j] < y[i] else max(y[i], x[i, j])
            y[i] = x[i, j] if y[i] < x[i, j] else y[i]


@polyc.kernel
def of_three(x, y):
    n, m = x.shape
    for i in range(n):
        top = x[i, 0]
        for j in range(1, m):
            top = max(top, x[i, j - 1] * 2, abs(x[i, j]))
        y[i] = top


@polyc.kernel
def under_a_condition(x, y):
    n, m = x.shape
    for i in range(n):
        top = -100
        for j in range(m):
            if x[i, j] < 1:
                top = max(top, 3 * x[i, j])
                y[i] = top


@polyc.kernel
def other_way_round(x, y):
    n, m = x.shape
    for i in range(n):
        top = x[i, 0]
        for j in range(m):
            top = max(x[i, j], top)
        y[i] = top


@polyc.kernel
def of_itself(x, y):
    n, m = x.shape
    for i in range(n):
        top = x[i, 0]
        for j in range(m):
            top = max(top, 0.5 * top + x[i, j])
        y[i] = top


KERNELS = [by_max, by_if, by_choice, of_three, under_a_condition, other_way_round, of_itself]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.name)
def test_as_python(kernel, dtype, threads):
    for n, m in ((1, 1), (3, 2), (5, 31), (2, 64), (4, 131)):
        x = (9 * RNG.standard_normal((n, m))).astype(dtype)
        check(replace(kernel, threads=threads), x, np.zeros(n, dtype))


def test_of_several_values_each_counts_where_another_is_no_number():
    nan = np.nan
    x = np.array([[0.5, nan, 7.0, 1.0], [nan, 2.0, nan, -9.0], [-1.0, nan, nan, nan]])
    for row in (x, x[:, ::-1], np.tile(x, (1, 20))):
        check(of_three, np.ascontiguousarray(row), np.zeros(3))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.name)
def test_as_python_where_there_are_no_numbers(kernel):
    for m in (1, 5, 64, 100):
        x = RNG.standard_normal((6, m))
        x[0, 0] = x[1, m // 2] = x[2, -1] = np.nan
        x[3] = np.nan
        x[4] = -np.inf
        x[5, m // 3] = np.inf
        check(kernel, x, np.zeros(6))


@pytest.mark.parametrize(
    ("kernel", "operators"),
    [
        (by_max, {"larger"}),
        (by_if, {"smaller"}),
        (of_three, {"larger"}),
        (under_a_condition, {"larger"}),
        (other_way_round, set()),
        (of_itself, set()),
    ],
)
def test_reductions(kernel, operators):
    types = {"x": polyc.f64["n", "m"], "y": polyc.f64["n"]}
    scop = lower(kernel.function, Signature(types)).scop
    assert {s.reduction for s in scop.statements} - {None} == operators
    types = {"x": polyc.i32["n", "m"], "y": polyc.i32["n"]}
    scop = lower(kernel.function, Signature(types)).scop
    names = {"larger": "max", "smaller": "min"}
    assert {s.reduction for s in scop.statements} - {None} == {names[o] for o in operators}


def test_lanes_share_a_maximum():
    by_max.compile(x=polyc.f32["n", "m"], y=polyc.f32["n"])
    assert "partial_0_0 = pc_larger_f32x" in by_max.source
    assert "pc_loadn_f32x" in by_max.source  # what is left of a row has idle lanes
    assert "pc_reduce_larger_f32x" in by_max.source
