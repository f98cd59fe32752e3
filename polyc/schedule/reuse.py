"""Whether what a reduction uses is used again, and whether lanes find what they read together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from polyc.memory.strides import by_data
from polyc.poly.affine import coefficients, outputs
from polyc.poly.injective import is_injective
from polyc.scop.scop import Array, Statement

REUSED = 4
"""Uses of an element from which on a tile of registers pays."""


def has_reuse(update: Statement, aligned: Mapping[int, int], arrays: Mapping[str, Array]) -> bool:
    """Whether all that a reduction streams is used by several instances: whether tiling pays.

    A load is reused if instances share an element that differ in a parallel iterator. But with one
    load that gives (almost) each instance an element of its own, as in the sum of x[i, k] + b[k] or
    in the product of a matrix and a vector, there is as much to read as to compute. (Constants are
    re-arranged at compile time for a tile, so they do not count.)
    """
    sizes = update.estimated_extents
    parallel = [p for p in aligned.values() if sizes[p] > 1]
    reused = False
    for load in update.loads:
        matrix = [coefficients(pw) for pw in outputs(load.index)]  # of dimensions x iterators
        alone = is_injective(load.index, update.domain)
        if arrays[load.array].kind != "constant" and (alone or _is_streamed(matrix, sizes)):
            return False
        if alone:
            continue
        rest = [p for p in range(len(sizes)) if p not in parallel]
        reused |= any(all(row[p] == 0 for row in matrix) for p in parallel)
        reused |= any(row[p] != 0 for row in matrix for p in rest)
    return reused


def _is_streamed(matrix: list[tuple[int | None, ...]], sizes: tuple[int, ...]) -> bool:
    """Whether a load leaves so few iterators out of account that few instances share an element.

    x[i, k] of a product with 3 columns is used 3 times. Windows, x[y + r], overlap besides.
    """
    if any(sum(c != 0 for c in row) > 1 for row in matrix):
        return False
    used = [any(row[p] != 0 for row in matrix) for p in range(len(sizes))]
    return prod(n for n, moving in zip(sizes, used, strict=True) if not moving) < REUSED


def has_lanes(s: Statement, shared: Sequence[Mapping[str, int]], lanes: int) -> bool:
    """Whether some shared loop fills so many without a load for each from where data says.

    y[c, i] = a[c, i] + x[c, k[i]]   ->   c
    """
    if not any(load.dynamic for load in s.loads):
        return True
    positions = {loop[s.name] for loop in shared} - by_data(s)
    return any(s.estimated_extents[p] >= lanes for p in positions)
