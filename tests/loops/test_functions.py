"""Functions in lanes, where the C compiler has none: innermost loops that call them are strips."""

import math
from dataclasses import replace

import numpy as np
import pytest

import polyc
from bench.polybench.inference import softmax
from tests.loops.against_python import check

RNG = np.random.default_rng(3)


@polyc.kernel
def option(price, strike, years, call):
    for i in range(len(price)):
        root = 0.3 * math.sqrt(years[i])
        first = (math.log(price[i] / strike[i]) + 0.065 * years[i]) / root
        inside = 0.5 * (1 + math.erf(first / math.sqrt(2)))
        outside = 0.5 * (1 + math.erf((first - root) / math.sqrt(2)))
        call[i] = price[i] * inside - strike[i] * math.exp(-0.02 * years[i]) * outside


@polyc.kernel
def backwards(x, y):
    for i in range(len(x) - 1, -1, -3):
        y[i] = math.cos(x[i])


@polyc.kernel
def below(x, y):
    n = x.shape[0]
    for i in range(n):
        for j in range(i):
            y[i, j] = math.tanh(x[j, i]) + math.sin(x[i, j])


@polyc.kernel
def neighbours(x, y):
    n = len(x)
    for i in range(1, n - 1):
        y[i] = math.exp(x[i - 1] - x[i + 1]) if x[i] > 0.5 else math.log(1 + x[i])


@polyc.kernel
def chain(x, y):
    for i in range(1, len(x)):
        y[i] = math.exp(-y[i - 1]) + x[i]


@polyc.kernel
def energy(x, e):
    for i in range(len(x)):
        e[0] += math.log1p(x[i])


@polyc.kernel
def picked(x, index, y):
    for i in range(len(index)):
        y[i] = math.sqrt(x[index[i]]) * math.asin(x[index[i]])


@polyc.kernel
def to_bytes(x, y):
    for i in range(len(x)):
        y[i] = int(255 * math.sin(x[i]))


@polyc.kernel
def partly(x, y):
    for i in range(len(x)):
        y[i] = 2 * x[i]
        if i > 4:
            y[i] = math.atan(y[i])


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


CASES = {
    "option": (option, lambda n: (random(n) + 0.1, random(n) + 0.1, random(n) + 0.1, random(n))),
    "softmax": (softmax, lambda n: (random(3, n + 1), random(3, n + 1))),
    "of floats": (
        softmax,
        lambda n: (random(3, n + 1).astype(np.float32), random(3, n + 1).astype(np.float32)),
    ),
    "backwards": (backwards, lambda n: (random(n), random(n))),
    "below": (below, lambda n: (random(n, n), random(n, n))),
    "neighbours": (neighbours, lambda n: (random(n), random(n))),
    "chain": (chain, lambda n: (random(n), random(n))),
    "energy": (energy, lambda n: (random(n), random(1))),
    "picked": (picked, lambda n: (random(50), RNG.integers(0, 50, n), random(n))),
    "bytes": (to_bytes, lambda n: (random(n).astype(np.float32), np.zeros(n, np.uint8))),
    "partly": (partly, lambda n: (random(n), random(n))),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_functions_do_what_python_does(name, threads):
    kernel, arguments = CASES[name]
    for n in (0, 1, 7, 8, 9, 16, 31, 100, 5000 if threads == 2 and name == "option" else 33):
        check(replace(kernel, threads=threads), *arguments(n), tolerance=1e-13)


def test_they_are_in_lanes():
    row, matrix = polyc.f64["n"], polyc.f64["n", "m"]
    option.compile(price=row, strike=row, years=row, call=row)
    softmax.compile(x=matrix, y=matrix)
    for kernel in (option, softmax):
        assert "pc_exp_f64x" in kernel.source
        assert "pc_exp_f64(" not in kernel.source
    assert "in strips: loops of" in option.explain()


@polyc.kernel
def halves(x, y):
    for i in range(len(x)):
        y[0, i] = x[i] ** 0.5
        y[1, i] = x[i] ** 1.5
        y[2, i] = x[i] ** -1.5
        y[3, i] = x[i] ** 3
        y[4, i] = x[i] ** -2
        y[5, i] = x[i] ** 3.5
        y[6, i] = x[i] ** 12
        y[7, i] = x[i] ** -7


def test_powers_by_products_and_roots():
    x = np.concatenate([[0.0, np.inf, np.nan, 1e-300, 1e60], 3 * random(100)])
    y, exact = np.zeros((8, x.size)), np.zeros((8, x.size))
    halves(x, y)
    with np.errstate(all="ignore"):
        for k, exponent in enumerate((0.5, 1.5, -1.5, 3, -2, 3.5, 12, -7)):
            exact[k] = x**exponent
    np.testing.assert_allclose(y, exact, rtol=15e-16)
    assert "pc_pow" not in halves.source


@polyc.kernel
def other_powers(x, y):
    for i in range(len(x)):
        y[i] = x[i] ** 2.25 + x[i] ** 17 + x[i] ** x[i] + math.exp(math.sin(x[i])) ** 6


def test_other_powers():
    check(other_powers, random(50), random(50), tolerance=1e-14)


def test_powers_of_whole_numbers():
    @polyc.kernel
    def cubes(x, y):
        for i in range(len(x)):
            y[i] = x[i] ** 3 + x[i] ** 4

    x = RNG.integers(-1000, 1000, 40)
    y = np.zeros(40, int)
    cubes(x, y)
    np.testing.assert_array_equal(y, x**3 + x**4)
