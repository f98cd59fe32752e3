"""Minimal filtering: the matrices of Winograd's F(m, r), by Toom and Cook, in exact rationals.

m outputs of a filter with r taps are n = m + r - 1 products instead of m r:

    y  =  A^T [ (G g) * (B^T d) ]         g: r taps, d: n inputs, y: m outputs, * elementwise

Polynomials of degrees r - 1 and m - 1 are multiplied by evaluating both at n points (V_r, V_m:
Vandermonde matrices, one point at infinity), multiplying, and interpolating (V^-1). Filtering is the
transpose of that multiplication (Winograd 1980; Lavin & Gray 2016, section 4):

    G = V_r         B^T = V^-T         A^T = V_m^T

Rounding grows with the points: in float32 the largest error relative to the largest output is about
1e-6 for F(2, 3) and 1e-5 for F(4, 3) in two dimensions; n is kept to 6 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

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
