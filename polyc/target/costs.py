"""What things cost: the one place for constants of time, and what follows from a target's rates.

A cycle is the time in which a core begins two multiply-adds of whole vectors, whatever its clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyc.target.instructions import matrices
from polyc.target.machine import Target
from polyc.types.element_types import FLOAT32

STREAMED = 0.5
"""Of the rate of the third-level cache, what reaches a loop that multiplies what it reads.

Winograd's products on 7x7 images stream their weights at 9.5 GB/s on an Emerald Rapids whose cache
is read at 18.
"""

MOST = 8.0
"""Bytes a cycle that such a loop asks for at most: on a Zen 4 and a Zen 5, whose caches give 16 and
more, Winograd's form is chosen best by this."""

FMA_UNITS = 2
FLOPS = 2
"""Of a multiply-add."""


def cycles_a_second(target: Target) -> float:
    """Cycles of a core in a second."""
    return target.rates.flops / (FLOPS * FMA_UNITS * target.vectors.lanes(4))


def near_bytes(target: Target) -> float:
    """Bytes that a core reads from its second-level cache in a cycle, if it does nothing else."""
    return target.rates.l2 / cycles_a_second(target)


def far_bytes(target: Target) -> float:
    """Bytes that a core reads from its third-level cache in a cycle, if it does nothing else."""
    return target.rates.l3 / cycles_a_second(target)


def memory_bytes(target: Target) -> float:
    """Bytes that a core reads from memory in a cycle, if it does nothing else."""
    return target.rates.read / cycles_a_second(target)


def streamed_bytes(target: Target) -> float:
    """Bytes from beyond the second-level cache that reach a loop of multiply-adds in a cycle."""
    return min(MOST, STREAMED * far_bytes(target))


ZEROS = 0.7
"""The share of zeros from which on it is considered to leave them out."""

ENTRY = 2.2
"""Multiply-adds of a dense product that take as long as one with an entry of a sparse matrix.

Each takes a vector from memory besides. Products of 64 to 1024 channels with 10% of their weights
on a Zen 4: 46 to 67 Gflop/s, where dense ones have 105 to 113.
"""


CROSSING = 1.6
"""Times as long as that where vectors begin anywhere in a cache line, as in windows: most of them
are in two lines then. Layers of 3 by 3 taps on 14 to 56 positions, on a Zen 4: 17 to 22 Gflop/s,
where this number makes 31 of those of `ENTRY`. With 5% of their weights they take 0.51 to 0.92 of
the time of minimal filtering, which is what they are compared with.
"""


def price_entries(share: float, filled: float, crosses: bool) -> float:
    """The time of a product over that share of its terms, relative to all of them.

    filled: the share of lanes that work; crosses: data decides where vectors begin in a line.
    """
    return share * ENTRY * (CROSSING if crosses else 1.0) / filled if filled else float("inf")


OPERATIONS = {
    **dict.fromkeys(("exp", "exp_normal", "exp2"), 9.0),
    **dict.fromkeys(("sigmoid", "tanh", "erf", "expm1", "cosh"), 13.0),
    **dict.fromkeys(("log", "log2", "asin", "acos", "atan"), 17.0),
    "sinh": 30.0,
    "log1p": 45.0,
    **dict.fromkeys(("sin", "cos", "tan"), 54.0),
    **dict.fromkeys(("asinh", "acosh", "atanh"), 65.0),
    "pow": 107.0,
    "div": 6.5,
    "sqrt": 10.0,
}
"""Functions -> the multiply-adds of whole vectors that take as long, where others count for one.

Measured on a Zen 4 with AVX-512, by an operator on 4,096 floats in the first-level cache; loads and
stores are hidden behind all of these.
"""

LOOKED_UP = 8.0
"""Operations of an access whose place is computed: bounds, and an address for each lane."""

LOADS_A_LATENCY = 8
"""Single elements that are loaded, for all lanes, while a multiply-add takes its time: two in each
of four cycles, on all that have been described since Haswell and Zen."""

STORED = 2.0
"""Times as long as a load: cores have half as many ports for stores, or half as wide ones."""

ENTERED = 3.0
"""Latencies that it takes to begin and end a loop: a branch foreseen wrongly costs 12 cycles."""

UNHIDDEN = 0.25
"""Of computing and fetching, whichever is shorter: the share that does not go on behind the other.
Kernels of ResNet-50 whose weights stream from memory, on a Zen 4: 0.1 to 0.4."""

WAITED_FOR = 0.02
"""Of the time of products, what it takes at least to read their weights from memory, if it is to
pay that each line is fetched by an instruction of its own.

On a Zen 3 with AVX2 a chain of 1x1 layers on 7x7 pixels, where it is 0.25, takes 0.80 of the time
so; products of 128 to 512 rows, where it is 0.09 to 0.02, about as long as without. Where between
these the gain begins was not looked for.
"""

WAITED_FOR_AGAIN = 0.05
"""The same of a packed operand that passes by for each block of rows, from the cache where it was
written. On a Zen 3 a product of 1000 x 1000 matrices, where it is 0.14, takes 0.95 of the time so,
one of 512 x 512, where it is 0.06, about as long as without, and one of 1536, 0.01, 1.02. On an
Emerald Rapids 1000 x 1000, where it is 0.07 to 0.09 (24 GB/s at a glance, 15 measured), takes 0.93.
"""

DIVIDED = 4.0
"""Multiply-adds of whole vectors that take as long as it does to compute a place by a division.

Counted, not measured: by a constant it is a product, shifts and sums, 8 operations, of which two or
three begin beside a multiply-add.
"""

LAUNCHED = 3e-7
"""Seconds from one launch to the next, whatever it does."""

STAYS = 0.75
"""Of a cache, what loops may touch and find there again."""


@dataclass(frozen=True)
class Prices:
    """Seconds of a core for one vector operation of a kind: multiply-adds, loads, stores.

    width: bytes of a vector; single: a load of one element for all lanes; latency: from a
    multiply-add to one that needs its result; entry: to begin and end a loop. sums: by the row of
    an instruction for several terms in each lane, the multiply-adds that it takes as long as.
    """

    width: int
    fma: float
    load: float
    single: float
    store: float
    latency: float
    entry: float
    sums: Mapping[str, float] = field(default_factory=dict)

    def lanes(self, itemsize: int) -> int:
        """Elements of a vector."""
        return max(1, self.width // itemsize)


def price(target: Target) -> Prices:
    """What a target's rates come to."""
    rates, width = target.rates, target.vectors.bytes
    load = width / rates.l1
    return Prices(
        width,
        fma=1 / (FMA_UNITS * cycles_a_second(target)),
        load=load,
        single=min(load, rates.latency / LOADS_A_LATENCY),
        store=STORED * load,
        latency=rates.latency,
        entry=ENTERED * rates.latency,
        sums=_price_sums(target),
    )


def _price_sums(target: Target) -> dict[str, float]:
    """By the name of each row that takes several terms in a lane, the multiply-adds that it takes
    as long as: its instructions, of which one for floats takes as long as `Rates.pairs` says, and
    one that only adds `ADDED`."""
    features, lanes = frozenset(target.vectors.features), target.vectors.lanes(4)
    prices = {}
    for row in target.vectors.instructions:
        spelling = row.spell(features, lanes) if row.inner else None
        if spelling is not None:
            slow = spelling.is_native and row.nest.result.dtype == FLOAT32
            each = PAIR / target.rates.pairs if slow else 1.0
            prices[row.name] = (spelling.count - spelling.adds) * each + spelling.adds * ADDED
    return prices


ADDED = 1 / 3
"""Multiply-adds that it takes as long as to add integers besides.

Products begin on two of three pipes or more that add: one of each takes two thirds of a cycle, a
multiply-add half of one. Where there are four (Zen 3, vpmaddwd and vpaddd) it took 1.27 to 1.34 of
a multiply-add's time.
"""

PAIR = 2
"""Products of floats that an instruction adds to each lane."""

GAIN = 0.9
"""Of the time with float32, what sums of rounded factors take at most: these have to be made."""


def price_pairs(target: Target) -> float:
    """The time of sums of products of bfloat16, relative to float32; 1 if there is no gain."""
    if not target.vectors.factors(FLOAT32):
        return 1.0
    share = 1 / target.rates.pairs
    tile = matrices.TILE_BF16
    if target.vectors.has(tile):  # a row of the result in each cycle, all words of it
        row = matrices.MOST * matrices.MOST * tile.terms
        share = min(share, FMA_UNITS * target.vectors.lanes(4) / row)
    return share if share <= GAIN else 1.0


def summed_floats(target: Target) -> frozenset[tuple[np.dtype, np.dtype]]:
    """The types of factors for which an instruction is faster than multiply-adds of float32."""
    return target.vectors.factors(FLOAT32) if price_pairs(target) < 1 else frozenset()


MATRIX_LEAST = 9.5
"""Cycles of a product of matrices in registers, which takes one for each of its rows, if these are
fewer; how many columns and words there are does not matter. Emerald Rapids: 1 to 8 rows 9.5."""

MATRIX_WAITS = 52.0
"""Cycles from a product until another one may be added to its result."""

LINES_A_CYCLE = 2
"""That such registers are loaded with from the first-level cache."""

MATRIX_AWAKE = 64
"""Results that are scaled, rounded and stored between two products of no use, so that the unit does
not fall asleep. Emerald Rapids: 128 made layers of 64 columns take 1.25 times as long, and 16 made
those of 144 take 1.8 times as long."""

MATRIX_STORED = 18.0
"""Cycles to store such a register, with what its sums still wait for. Emerald Rapids: four of them
in 24 ns."""
