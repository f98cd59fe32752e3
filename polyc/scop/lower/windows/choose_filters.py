"""Which minimal filters a convolution is computed with, by what they are estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, inf, prod

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


SLACK = 1.05
"""How much more than the cheapest filters those may cost at the hint that suit other sizes better.

256 channels on 14 x 14 pixels: F(3, 3) x F(4, 3) costs 1.04 times what F(4, 3) x F(4, 3) does, and
on 9 x 6, where tiles of 4 by 4 pixels are mostly cut off, the other takes 1.2 times as long.
"""


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
    others: Sequence[Sequence[int]] = (),
) -> tuple[MinimalFilter, ...] | None:
    """The cheapest F(m, r) in each dimension by estimated cycles, or None for the direct form.

    `channels` and `filters` are those of one group; streamed: bytes of transformed weights that
    come from beyond the second-level cache in a cycle; against: the time of what else there is,
    relative to that of the direct form; rate: the time of a direct sum of so many products,
    relative to that of one of transformed numbers; others: outputs that a call may ask for as
    well, for which the filters are chosen among those that are hardly dearer (`SLACK`).
    """
    if min(channels, filters) < CHANNELS or all(r == 1 for r in kernel) or 0 in (batch, *output):
        return None
    lanes, pairs = LANES * numbers.products, groups * channels * filters
    vectors = groups * (channels / lanes + filters / LANES)
    direct = rate * batch * pairs * prod(kernel) * prod(output) / lanes
    sizes = [range(1, 2) if r == 1 else range(2, numbers.largest - r + 2) for r in kernel]

    def cost(ms: Sequence[int], output: Sequence[int]) -> float:
        points = prod(m + r - 1 for m, r in zip(ms, kernel, strict=True))
        tiles = batch * prod(ceil(n / m) for n, m in zip(output, ms, strict=True))
        products = points * tiles * pairs / lanes * (1 + 1.5 / min(tiles, 14))
        weights = points * pairs * numbers.bytes / streamed
        # Weights are read while products are computed: the one or the other is waited for.
        return max(products, weights) + points * tiles * vectors * TRANSFORM_CYCLES

    found = {
        ms: (chosen, cost(ms, output))
        for ms in product(*sizes)
        if compute_growth(
            chosen := tuple(minimal_filter(m, r) for m, r in zip(ms, kernel, strict=True))
        )
        <= LARGEST_GROWTH
    }
    cheapest = min((own for _, own in found.values()), default=inf)
    if cheapest >= min(WORTHWHILE, against) * direct:
        return None
    close = {ms: own for ms, (_, own) in found.items() if own <= SLACK * cheapest}
    costs = {ms: [cost(ms, other) for other in others] for ms in close}
    least = [min(cost(ms, other) for ms in found) for other in others]

    def regret(ms: tuple[int, ...]) -> tuple[float, float]:
        """How many times the least the filters cost, at the worst; then what they cost here."""
        worst = max((own / best for own, best in zip(costs[ms], least, strict=True)), default=1.0)
        return worst, close[ms]

    return found[min(close, key=regret)][0]
