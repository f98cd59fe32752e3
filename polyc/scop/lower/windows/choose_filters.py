"""Which minimal filters a convolution is computed with, by what they are estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from polyc.scop.lower.windows.minimal_filter import (
    LARGEST,
    MinimalFilter,
    compute_growth,
    minimal_filter,
)
from polyc.target.costs import MOST

CHANNELS = 16
"""Fewer input or output channels than a vector leave the matrix products too thin."""

LANES = 16
TRANSFORM_CYCLES = 8
"""Of the cost model: floats a vector, cycles to transform a vector (its loads, stores, and about
four additions)."""

WORTHWHILE = 0.9
"""The estimated gain below which the direct form stays: it is one kernel instead of three."""

LARGEST_GROWTH = 600
"""Of the terms of a sum (`compute_growth`): F(5, 2) in two dimensions and F(3, 3) in three are
below. On random float32 data with 512 channels their error is 1.5e-5 of the largest output; it is
8e-5 for F(5, 2) in three dimensions, whose terms grow 8400 times."""


@dataclass(frozen=True)
class Numbers:
    """What is transformed: its bytes, products that an instruction sums up in a lane, most points.

    Sums of products have 4 bytes.
    """

    bytes: int
    products: int
    largest: int


FLOATS = Numbers(4, 1, LARGEST)


def choose_filters(
    batch: int,
    groups: int,
    channels: int,
    filters: int,
    kernel: Sequence[int],
    output: Sequence[int],
    streamed: float = MOST,
    against: float = WORTHWHILE,
    rate: float = 1.0,
    numbers: Numbers = FLOATS,
) -> tuple[MinimalFilter, ...] | None:
    """The cheapest F(m, r) in each dimension by estimated cycles, or None for the direct form.

    `channels` and `filters` are those of one group; streamed: bytes of transformed weights that
    come from beyond the second-level cache in a cycle; against: the time of what else there is,
    relative to that of the direct form; rate: the time of a direct sum of so many products,
    relative to that of one of transformed numbers.
    """
    if min(channels, filters) < CHANNELS or all(r == 1 for r in kernel) or 0 in (batch, *output):
        return None
    lanes = LANES * numbers.products
    direct = rate * batch * groups * channels * filters * prod(kernel) * prod(output) / lanes
    best: tuple[MinimalFilter, ...] | None = None
    cheapest = min(WORTHWHILE, against) * direct
    sizes = [range(1, 2) if r == 1 else range(2, numbers.largest - r + 2) for r in kernel]
    for ms in product(*sizes):
        points = prod(m + r - 1 for m, r in zip(ms, kernel, strict=True))
        tiles = batch * prod(ceil(n / m) for n, m in zip(output, ms, strict=True))
        pairs = groups * channels * filters
        products = points * tiles * pairs / lanes * (1 + 1.5 / min(tiles, 14))
        weights = points * pairs * numbers.bytes / streamed
        vectors = groups * (channels / lanes + filters / LANES)
        transforms = points * tiles * vectors * TRANSFORM_CYCLES
        # Weights are read while products are computed: the one or the other is waited for.
        cost = max(products, weights) + transforms
        chosen = tuple(minimal_filter(m, r) for m, r in zip(ms, kernel, strict=True))
        if cost < cheapest and compute_growth(chosen) <= LARGEST_GROWTH:
            best, cheapest = chosen, cost
    return best
