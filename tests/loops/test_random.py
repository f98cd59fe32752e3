"""Kernels at random are what Python computes, on one thread and on two."""

import importlib.util

import numpy as np
import pytest

from tests.loops.random_kernels import (
    write_kernel,
    write_kernel_of_data,
    write_kernel_with_borders,
)
from tests.sampling import sampled

FEW = range(8)
"""The others of these take longest."""

MANY = range(8, 132)
SIZES = [(1, 1), (2, 1), (3, 2), (12, 1), (40, 2), (70, 1)]


def find_differences(seed, folder, write=write_kernel):
    """The calls, by size and threads, after which some array is not what Python computes."""
    path = folder / f"{write.__name__}_{seed}.py"
    path.write_text(write(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel, rng = module.f, np.random.default_rng(seed)
    found = []
    for n, threads in SIZES:
        shapes = [(n, n), (n, n), n, n, n]
        mine = [rng.random(shape) - 0.5 for shape in shapes]
        theirs = [array.copy() for array in mine]
        places = rng.integers(-n, n, n)
        begins = np.sort(rng.integers(0, n + 1, n + 1))
        kernel.threads = threads
        kernel(*mine, 0.7, places, begins)
        with np.errstate(all="ignore"):
            kernel.python(*theirs, 0.7, places, begins)
        sane = [np.abs(other) < 1e6 for other in theirs]  # what explodes is not compared
        triples = zip(mine, theirs, sane, strict=True)
        same = (np.allclose(a[k], b[k], rtol=1e-6, atol=1e-9) for a, b, k in triples)
        if not all(same):
            found.append((n, threads))
    return found


@pytest.mark.parametrize("seed", sampled(FEW, often={2, 4}))
def test_a_random_kernel_is_what_python_computes(seed, tmp_path):
    assert find_differences(seed, tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", MANY)
def test_more_random_kernels(seed, tmp_path):
    assert find_differences(seed, tmp_path) == []


@pytest.mark.parametrize("seed", sampled(FEW, often={2, 7}))
def test_a_random_kernel_with_borders_is_what_python_computes(seed, tmp_path):
    assert find_differences(seed, tmp_path, write_kernel_with_borders) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", MANY)
def test_more_random_kernels_with_borders(seed, tmp_path):
    assert find_differences(seed, tmp_path, write_kernel_with_borders) == []


@pytest.mark.parametrize("seed", sampled(FEW, often={0, 3}))
def test_a_random_kernel_of_data_is_what_python_computes(seed, tmp_path):
    assert find_differences(seed, tmp_path, write_kernel_of_data) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", MANY)
def test_more_random_kernels_of_data(seed, tmp_path):
    assert find_differences(seed, tmp_path, write_kernel_of_data) == []
