"""Kernels at random are what Python computes, on one thread and on two."""

import importlib.util

import numpy as np
import pytest

from tests.loops.random_kernels import write_kernel

FEW, MANY = range(12), range(12, 132)
SIZES = [(1, 1), (2, 1), (3, 2), (12, 1), (40, 2), (70, 1)]


def run(seed, folder):
    path = folder / f"kernel_{seed}.py"
    path.write_text(write_kernel(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel, rng = module.f, np.random.default_rng(seed)
    for n, threads in SIZES:
        shapes = [(n, n), (n, n), n, n, n]
        mine = [rng.random(shape) - 0.5 for shape in shapes]
        theirs = [array.copy() for array in mine]
        kernel.threads = threads
        kernel(*mine, 0.7)
        with np.errstate(all="ignore"):
            kernel.python(*theirs, 0.7)
        for one, other in zip(mine, theirs, strict=True):
            # What grows beyond all bounds is not compared.
            sane = np.abs(other) < 1e6
            np.testing.assert_allclose(one[sane], other[sane], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", FEW)
def test_a_random_kernel_is_what_python_computes(seed, tmp_path):
    run(seed, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", MANY)
def test_more_random_kernels(seed, tmp_path):
    run(seed, tmp_path)
