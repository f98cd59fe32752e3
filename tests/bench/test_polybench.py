"""PolyBench's kernels beside Python."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from bench.polybench.kernels import EVERYDAY, PROBLEMS
from bench.polybench.problem import Problem
from tests.sampling import sampled

SAMPLE = ("bicg", "cholesky", "covariance", "jacobi-1d", "nussinov", "trmm")
"""Those that are tested wherever tests are: of every group one."""

TINY, ODD = (3, 2, 4, 2, 3), (13, 19, 11, 17, 23)

everywhere = sampled(PROBLEMS, often=SAMPLE)


def test_there_are_thirty_with_five_growing_sizes_each():
    assert len(PROBLEMS) == 30
    for problem in PROBLEMS.values():
        counts = [len(sizes) for sizes in problem.sizes.values()]
        assert counts == [counts[0]] * 5
        assert list(problem.sizes.values())[:4] == sorted(list(problem.sizes.values())[:4])


def compare(problem: Problem, sizes: tuple[int, ...], threads: int) -> None:
    """polyc and Python on copies of the same data; every array must then be the same."""
    given = problem.make(*sizes)
    mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
    replace(problem.kernel, threads=threads)(**mine)
    problem.kernel.python(**theirs)
    for name, reference in theirs.items():
        if isinstance(reference, np.ndarray):
            scale, single = np.abs(reference).max(), reference.dtype == np.float32
            loose, least = (1e-5, 1e-6) if single else (1e-9, 1e-12)
            np.testing.assert_allclose(
                mine[name], reference, rtol=loose, atol=least * scale, err_msg=name
            )


# An ordinary run has cholesky as plain C, in test_polybench_race.
@pytest.mark.parametrize("name", sampled(PROBLEMS, often={*SAMPLE} - {"cholesky"}))
def test_a_kernel_does_what_python_does(name):
    problem = PROBLEMS[name]
    count = len(problem.sizes["mini"])
    for sizes in (TINY, ODD):
        for threads in (1, 2):
            compare(problem, sizes[:count], threads)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_a_kernel_does_what_python_does_in_more_than_one_tile(name):
    problem = PROBLEMS[name]
    compare(problem, tuple(2 * n + 1 for n in problem.sizes["mini"]), 2)


@pytest.mark.parametrize("name", [n for n, p in PROBLEMS.items() if p.numpy])
def test_numpy_does_what_the_loops_do(name):
    problem = PROBLEMS[name]
    assert problem.numpy is not None
    given = problem.make(*ODD[: len(problem.sizes["mini"])])
    mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
    problem.numpy(*mine.values())
    problem.kernel.python(**theirs)
    for result in problem.results:
        np.testing.assert_allclose(mine[result], theirs[result], rtol=1e-8, err_msg=result)


@pytest.mark.parametrize("name", list(EVERYDAY))
def test_a_loop_of_every_day_does_what_python_does(name):
    problem = EVERYDAY[name]
    for n in (5, 21):
        for threads in (1, 2):
            compare(problem, (n,), threads)
