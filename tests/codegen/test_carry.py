"""Values that go on from iteration to iteration in a variable: where, and where not."""

import numpy as np
import pytest

import polyc
from tests.loops.against_python import check

RNG = np.random.default_rng(5)


@polyc.kernel
def running(A):
    for i in range(1, len(A)):
        A[i] += A[i - 1]


@polyc.kernel
def backwards(A, B):
    for i in range(len(A) - 2, -1, -1):
        A[i] = B[i] * A[i + 1] - A[i]


@polyc.kernel
def read_behind(A, B):
    for i in range(1, len(A)):
        A[i] = 0.5 * A[i - 1] + 1
        B[i] = A[i - 1] + A[i]


@polyc.kernel
def two(A, B):
    for i in range(1, len(A)):
        A[i] = 0.5 * A[i - 1] + B[i - 1]
        B[i] = A[i - 1] - 0.5 * B[i - 1]


@polyc.kernel
def written_twice(A):
    for i in range(1, len(A) - 1):
        A[i] = A[i - 1] + 1
        A[i + 1] = A[i] * 0.5


@polyc.kernel
def distance(D, a, b):
    for i in range(1, D.shape[0]):
        for j in range(1, D.shape[1]):
            D[i, j] = min(
                min(D[i - 1, j], D[i, j - 1]) + 1, D[i - 1, j - 1] + (0 if a[i] == b[j] else 1)
            )


@polyc.kernel
def some_of_it(A, n):
    for i in range(n):
        for j in range(i, n):
            A[j + 1] = A[j] + i


CASES = {
    "running": (running, lambda n: (RNG.random(n),), True),
    "backwards": (backwards, lambda n: (RNG.random(n), RNG.random(n)), True),
    "read behind": (read_behind, lambda n: (RNG.random(n), RNG.random(n)), True),
    "two": (two, lambda n: (RNG.random(n), RNG.random(n)), True),
    "written twice": (written_twice, lambda n: (RNG.random(n),), False),
    "distance": (
        distance,
        lambda n: (
            RNG.integers(0, 9, (n, n + 1)),
            RNG.integers(0, 2, n),
            RNG.integers(0, 2, n + 1),
        ),
        True,
    ),
    "some of it": (some_of_it, lambda n: (RNG.random(n + 1), n), True),
}


@pytest.mark.parametrize("name", CASES)
def test_what_goes_on_in_a_variable_is_what_python_computes(name):
    kernel, arguments, carried = CASES[name]
    for n in (0, 1, 2, 3, 40, 130):
        check(kernel, *arguments(n), tolerance=1e-9)
    assert ("last_0 = " in kernel.source) is carried


def test_nothing_is_read_before_a_loop_that_does_not_run():
    """The element before the first is outside of an array of no elements."""
    running(np.ones(40))
    text = running.source
    assert text.index("if (") < text.index("last_0 = A_")
