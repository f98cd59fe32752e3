"""Minimal filtering: the matrices of Winograd's F(m, r), by Toom and Cook, in exact rationals.

m outputs of a filter with r taps are n = m + r - 1 products instead of m r:

    y  =  A^T [ (G g) * (B^T d) ]         g: r taps, d: n inputs, y: m outputs, * elementwise

Polynomials of degrees r - 1 and m - 1 are multiplied by evaluating both at n points (V_r, V_m:
Vandermonde matrices, one point at infinity), multiplying, and interpolating (V^-1). Filtering is
the transpose of that multiplication (Winograd 1980; Lavin & Gray 2016, section 4):

    G = V_r         B^T = V^-T         A^T = V_m^T

Rounding grows with the points (`compute_growth`, `error_bound`): on random float32 data with 512
channels, the largest error relative to the largest output is 2e-6 for the direct sum, and in two
dimensions 1e-6 for F(2, 3) and 1e-5 for F(4, 3). So n is kept to 6 at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod

Matrix = tuple[tuple[Fraction, ...], ...]

POINTS = tuple(map(Fraction, (0, 1, -1, 2, -2)))
"""Small points first: the magnitude of B and A, and with it the rounding error, grows with them."""

LARGEST = len(POINTS) + 1
"""The largest n = m + r - 1; one more point is infinity."""


@dataclass(frozen=True)
class MinimalFilter:
    """F(m, r) in one dimension: `input` is B^T (n x n), `taps` G (n x r), `output` A^T (m x n)."""

    m: int
    r: int
    input: Matrix
    taps: Matrix
    output: Matrix

    @property
    def n(self) -> int:
        return self.m + self.r - 1

    @cached_property
    def magnitude(self) -> Fraction:
        """The largest sum of |terms| of an output, for inputs and taps of magnitude 1."""

        def sums(matrix: Matrix) -> list[Fraction]:
            return [sum(map(abs, row), Fraction(0)) for row in matrix]

        products = [g * b for g, b in zip(sums(self.taps), sums(self.input), strict=True)]
        return max(
            sum((abs(a) * p for a, p in zip(row, products, strict=True)), Fraction(0))
            for row in self.output
        )


@lru_cache
def minimal_filter(m: int, r: int) -> MinimalFilter:
    """The matrices of F(m, r), scaled so that B^T is integer for integer points."""
    n = m + r - 1
    assert 1 <= n <= LARGEST, f"F({m}, {r}) needs {n} points"
    points = POINTS[: n - 1]
    scales = [_scale(points, k) for k in range(n)]
    inverse = _invert(_vandermonde(points, n))
    transposed = tuple(zip(*inverse, strict=True))
    return MinimalFilter(
        m,
        r,
        tuple(tuple(x * s for x in row) for row, s in zip(transposed, scales, strict=True)),
        tuple(
            tuple(x / s for x in row)
            for row, s in zip(_vandermonde(points, r), scales, strict=True)
        ),
        tuple(zip(*_vandermonde(points, m), strict=True)),
    )


def compute_growth(filters: Sequence[MinimalFilter]) -> float:
    """How much larger the terms summed for one output may be than those of the direct form.

        max over rows of  |A^T| [ (|G| 1) * (|B^T| 1) ]  /  r,   multiplied over the dimensions

    1 for F(1, 1), 2.7 for F(2, 3), 16 for F(4, 3), 256 for F(4, 3) in two dimensions.
    """
    return float(prod(f.magnitude / f.r for f in filters))


def error_bound(
    filters: Sequence[MinimalFilter], channels: int, roundoff: float = 2.0**-24
) -> float:
    """A bound on |computed - exact|, relative to max|x| max|w| * taps * channels.

    That is the largest output possible, and the growth times gamma(k) = k u / (1 - k u) bounds the
    error where k operations round between an input and an output (Higham 2002, lemma 3.1; for these
    matrices Barabasz et al. 2020). `roundoff` is u: 2^-24 for float32, 2^-53 for float64. Holds for
    any order of summation, with or without fused multiply-add, if nothing overflows or underflows.
    Random data stays far below: signs cancel, here as in any bound of this kind.
    """
    steps = sum(map(_depth, (m for f in filters if f.r > 1 for m in (f.input, f.taps, f.output))))
    rounded = (steps + 1 + channels) * roundoff  # one product, then the sum over channels
    return compute_growth(filters) * rounded / (1 - rounded)


def _depth(matrix: Matrix) -> int:
    """Roundings on the way through a matrix: a coefficient, its product, the sum of a row."""
    return max(sum(x != 0 for x in row) for row in matrix) + 1


def _vandermonde(points: tuple[Fraction, ...], columns: int) -> Matrix:
    """Row k: 1, p_k, p_k^2, …; the last row is the point at infinity, which sees the top degree."""
    rows = [tuple(p**j for j in range(columns)) for p in points]
    return (*rows, tuple(Fraction(j == columns - 1) for j in range(columns)))


def _scale(points: tuple[Fraction, ...], k: int) -> Fraction:
    """The denominator of the k-th Lagrange polynomial; 1 for the point at infinity."""
    product = Fraction(1)
    for j, other in enumerate(points):
        if k < len(points) and j != k:
            product *= points[k] - other
    return product


def _invert(matrix: Matrix) -> Matrix:
    """Gauss-Jordan elimination over the rationals."""
    n = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return tuple(tuple(row[n:]) for row in rows)
