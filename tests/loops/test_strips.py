"""Loops around others in lanes: when they are, and that they do what Python does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polyc
from bench.polybench.everyday import (
    attract,
    distances,
    forward,
    mandelbrot,
    moving_average,
    viterbi,
)
from polyc.analysis.witness import Unproven
from polyc.loops.read.sizes import Signature
from polyc.loops.run.compile import compile_loops
from polyc.loops.schedule import strips
from polyc.options import Options
from polyc.target.machine import Target
from tests.loops.against_python import check
from tests.sampling import thorough

RNG = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


@polyc.kernel
def mixed(x, y, z):
    n, m = x.shape
    for j in range(m):
        top = x[0, j]
        where = 0
        for i in range(1, n):
            larger = x[i, j] > top
            top = x[i, j] if larger else top
            where = i if larger else where
        y[j] = top
        z[j] = where


@polyc.kernel
def fading(image, y):
    n, m = image.shape
    for j in range(m):
        s = image[0, j]
        for i in range(1, n):
            s = (s >> 1) + image[i, j]
        y[j] = s


@polyc.kernel
def unused(x, y):
    n, m = x.shape
    for j in range(m):
        s = 0.0
        last = 0.0
        for i in range(n):
            s = s * 0.5 + x[i, j]
            last = x[i, j]  # noqa: F841
        y[j] = s


CASES = {
    "unused": (unused, lambda n: (random(5, n), np.zeros(n))),
    "moving_average": (moving_average, lambda n: (random(n + 3, n), np.zeros((n, n)), 4)),
    "viterbi": (viterbi, lambda n: (random(n, n), random(4, n), random(4, n), np.ones((4, n)))),
    "attract": (attract, lambda n: (random(n, 3), random(n), np.zeros((n, 3)))),
    "bytes": (
        fading,
        lambda n: (RNG.integers(0, 128, (5, n), np.uint8), np.zeros(n, np.uint8)),
    ),
    "mandelbrot": (
        mandelbrot,
        lambda n: (np.linspace(-2, 1, n), np.linspace(-1, 1, 3), np.zeros((3, n), np.int32)),
    ),
    "forward": (forward, lambda n: (random(n, n), random(3, n), random(3, n))),
    "mixed": (
        mixed,
        lambda n: (random(5, n).astype(np.float32), np.zeros(n, np.float32), np.zeros(n, int)),
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_strips_do_what_python_does(name, threads):
    kernel, arguments = CASES[name]
    used = replace(kernel, threads=threads)
    for n in (1, 7, 8, 17, 33, 70):
        check(used, *arguments(n), tolerance=1e-11)
    assert "in strips: loops of" in used.explain()
    assert "PC_VECTORS(" in used.source


@pytest.mark.parametrize("isa", ["avx512", "avx2", thorough("baseline")])
def test_locals_of_a_strip_are_registers_and_conditions_masks(isa):
    target = Target.named(isa)
    types = {"steps": polyc.f64["n", "n"], "emitted": polyc.f64["t", "n"]}
    types |= {"score": polyc.f64["t", "n"], "back": polyc.i64["t", "n"]}
    compiled = compile_loops(viterbi.function, Signature(types), target, Options())
    lanes = target.vectors.bytes // 8
    assert f"best_local_0 = pc_choose_f64x{lanes}(if_1_local_0, s_local_0, best_local_0);" in (
        compiled.text
    )
    assert f"if_1_local_0 = pc_mask_gt_f64x{lanes}(s_local_0, best_local_0);" in compiled.text


def test_not_a_number_is_not_greater():
    x = random(5, 20).astype(np.float32)
    x[1, 3] = x[2, 5] = np.nan
    x[0, 7] = np.nan
    check(mixed, x, np.zeros(20, np.float32), np.zeros(20, int))


@polyc.kernel
def triangle(L, y):
    n = L.shape[0]
    for j in range(n):
        s = 1.0
        for k in range(j):
            s = s * 0.5 + L[k, j]
        y[j] = s


@polyc.kernel
def chain(x, y):
    n, m = x.shape
    for j in range(1, m):
        s = y[j - 1]
        for k in range(n):
            s = s * 0.5 + x[k, j]
        y[j] = s


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [(triangle, (random(9, 9), np.zeros(9))), (chain, (random(9, 9), np.zeros(9)))],
)
def test_loops_that_are_not_even_or_carry_something_are_in_no_strips(kernel, arguments):
    check(kernel, *arguments)
    assert "in strips" not in kernel.explain()


def test_strips_of_a_loop_that_carries_something_are_refused_by_the_proof(monkeypatch):
    monkeypatch.setattr(strips, "_is_free", lambda *_: True)
    types = Signature({"x": polyc.f64[None, None], "y": polyc.f64[None]})
    with pytest.raises(Unproven, match="chain"):
        compile_loops(chain.function, types, Target.named("avx512"), Options())


def test_strips_of_a_loop_that_is_not_even_would_be_proven(monkeypatch):
    """They are slow: lanes begin and end at different iterations of the loop inside."""
    monkeypatch.setattr(strips, "_is_even", lambda *_: True)
    types = Signature({"L": polyc.f64[None, None], "y": polyc.f64[None]})
    compiled = compile_loops(triangle.function, types, Target.named("avx512"), Options())
    assert compiled.plan.strip == 32
    assert compiled.proof is not None


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 48, 3), (9, 50, 17), (23, 7, 64)])
def test_a_local_that_sums_along_columns_lives_in_boxes(shape):
    n, m, inner = shape
    check(distances, random(n, inner), random(m, inner), np.zeros((n, m)), tolerance=1e-11)
    assert "b_t[a1, a0] = b[a0, a1]" in distances.explain()
    assert "boxes in registers: S1" in distances.explain()
