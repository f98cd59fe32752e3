"""Minimal filters: exact in rationals, the published matrices, and what rounding may do."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from polyc.scop.lower.windows.minimal_filter import (
    LARGEST,
    Matrix,
    MinimalFilter,
    compute_growth,
    error_bound,
    minimal_filter,
)

SIZES = [(m, r) for m in range(1, LARGEST + 1) for r in range(1, LARGEST + 2 - m)]
FILTERED = [(m, r) for m, r in SIZES if m > 1 and r > 1]

LAVIN_GRAY_INPUT = """
4  0 -5  0 1 0
0 -4 -4  1 1 0
0  4 -4 -1 1 0
0 -2 -1  2 1 0
0  2 -1 -2 1 0
0  4  0 -5 0 1
"""
LAVIN_GRAY_TAPS = """
 1/4      0     0
-1/6   -1/6  -1/6
-1/6    1/6  -1/6
1/24   1/12   1/6
1/24  -1/12   1/6
   0      0     1
"""
LAVIN_GRAY_OUTPUT = """
1 1  1 1  1 0
0 1 -1 2 -2 0
0 1  1 4  4 0
0 1 -1 8 -8 1
"""


def matrix(text: str) -> Matrix:
    return tuple(tuple(map(Fraction, line.split())) for line in text.strip().splitlines())


@pytest.mark.parametrize(("m", "r"), SIZES)
def test_exact_for_every_tap_and_input(m: int, r: int) -> None:
    f = minimal_filter(m, r)
    assert (f.m, f.r, f.n) == (m, r, m + r - 1)
    for p, k, j in product(range(m), range(r), range(f.n)):
        terms = [f.output[p][a] * f.taps[a][k] * f.input[a][j] for a in range(f.n)]
        assert sum(terms) == (j == p + k), f"output {p}, tap {k}, input {j}"


def test_the_matrices_of_lavin_and_gray() -> None:
    f = minimal_filter(4, 3)
    assert f.input == matrix(LAVIN_GRAY_INPUT)
    assert f.taps == matrix(LAVIN_GRAY_TAPS)
    assert f.output == matrix(LAVIN_GRAY_OUTPUT)


@pytest.mark.parametrize(("m", "r"), SIZES)
def test_input_and_output_matrices_are_integer(m: int, r: int) -> None:
    f = minimal_filter(m, r)
    assert all(x.denominator == 1 for row in (*f.input, *f.output) for x in row)


@pytest.mark.parametrize(("m", "r"), [(LARGEST, 2), (2, LARGEST), (0, 0)])
def test_too_many_points_are_refused(m: int, r: int) -> None:
    with pytest.raises(AssertionError, match="points"):
        minimal_filter(m, r)


@pytest.mark.parametrize(
    ("sizes", "growth"),
    [([(1, 1)], 1), ([(2, 3)], 8 / 3), ([(4, 3)], 16), ([(4, 3)] * 2, 256), ([(4, 3), (1, 1)], 16)],
)
def test_growth(sizes: list[tuple[int, int]], growth: float) -> None:
    assert compute_growth([minimal_filter(m, r) for m, r in sizes]) == pytest.approx(growth)


@pytest.mark.parametrize(("m", "r"), FILTERED)
def test_growth_is_that_of_the_worst_signs(m: int, r: int) -> None:
    f = minimal_filter(m, r)
    taps, inputs, outputs = (np.array(x, float) for x in (f.taps, f.input, f.output))
    signs = [np.array(list(product([-1, 1], repeat=k)), float) for k in (r, f.n)]
    values = np.abs(signs[0] @ taps.T)[:, None] * np.abs(signs[1] @ inputs.T)[None]
    worst = (values @ np.abs(outputs).T).max() / r
    assert worst <= compute_growth([f]) <= 4 * worst


def filtered(f: MinimalFilter, g: np.ndarray, d: np.ndarray) -> np.ndarray:
    """y[sample, p] in the precision of g[sample, c, r] and d[sample, c, n], each step rounded."""

    def apply(rows: Matrix, x: np.ndarray) -> np.ndarray:
        """sum of rows[a][k] * x[…, k], from left to right."""
        result = []
        for row in rows:
            total = np.zeros_like(x[..., 0])
            for k, coefficient in enumerate(row):
                if coefficient:
                    total = total + x[..., k] * x.dtype.type(coefficient)
            result.append(total)
        return np.stack(result, -1)

    weights, values = apply(f.taps, g), apply(f.input, d)
    total = np.zeros_like(values[:, 0])
    for c in range(values.shape[1]):
        total = total + values[:, c] * weights[:, c]
    return apply(f.output, total)


@pytest.mark.parametrize("channels", [1, 20])
@pytest.mark.parametrize(("m", "r"), FILTERED)
@pytest.mark.parametrize(("dtype", "roundoff"), [("f2", 2.0**-11), ("f4", 2.0**-24)])
def test_errors_stay_below_the_bound(
    m: int, r: int, channels: int, dtype: str, roundoff: float
) -> None:
    f, rng = minimal_filter(m, r), np.random.default_rng(m * r)
    g = rng.uniform(-1, 1, (300, channels, r)).astype(dtype)
    d = rng.uniform(-1, 1, (300, channels, f.n)).astype(dtype)
    exact = [(d[..., p : p + r].astype(float) * g.astype(float)).sum((1, 2)) for p in range(m)]
    error = np.abs(filtered(f, g, d) - np.stack(exact, -1)).max()
    scale = channels * r * np.abs(g).max().astype(float) * np.abs(d).max().astype(float)
    bound = error_bound([f], channels, roundoff)
    assert 0 < error / scale < bound < 1
    assert dtype == "f2" or bound < 1e-4


def test_the_bound_of_a_plain_sum() -> None:
    rounded = (1 + 100) * 2.0**-24
    assert error_bound([minimal_filter(1, 1)], 100) == pytest.approx(rounded / (1 - rounded))
