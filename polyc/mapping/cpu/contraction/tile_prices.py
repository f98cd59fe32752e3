"""What a multiply-add costs in a register tile, in cycles of one that never waits.

    9 rows x 3 vectors of C[i, j] += A[i, k] B[k, j]:   1 + 1.5 / 9 + 0.5 / 3   broadcasts, loads
    1 row x 2 vectors:                                  8 / 2 as much: sums wait for themselves

Each kind of contraction has a price of its own; `register_tile.py` compares tiles by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table

from polyc.codegen.side_by_side import SUMS
from polyc.mapping.cpu.contraction.diagonal import Diagonal
from polyc.target.costs import ENTRY

DIGITS = 6
"""Of a price: equal ones must not differ by rounding."""

UNROLLED = 36
"""Multiply-adds of a window's tile, all taps together, that gcc still writes out."""

LONG = 72
"""Multiply-adds of a window's tile from which on its loops cost nothing."""

ENOUGH = 12
"""Vectors that keep loads and operations of a pooling busy: 16 take 10% longer."""

WIDEST = 64
"""Bytes of the vectors by which prices are measured."""

MANY_TAPS = 16
"""Taps from which on a tile's sums are not soon followed by those of the next tile."""

Price = Callable[[int, int], float]
"""Cycles per multiply-add in a tile of so many rows and vectors."""

Heights = Table[int, float]
"""How many rows of a problem are in tiles of each height."""


def cut_known(rows: int, u: int) -> Heights:
    """Tiles of u rows, and a smaller one at the border."""
    return {u: rows - rows % u, rows % u: rows % u} if rows % u else {u: rows}


def cut_unknown(rows: int, u: int, rests: Sequence[int]) -> Heights:
    """So many rows in half of all calls, and about as many in others, where any rest is as likely.

    rests: the heights of tiles that a rest is cut into, as in `codegen/remainder.py`.
    """
    heights = defaultdict(float, {u: rows // u * u + max(rows - (u - 1) / 2, 1)})
    for rest, likely in ((rows % u, 1.0), *((rest, 1 / u) for rest in range(1, u))):
        left = rest
        for height in (h for h in rests if h < u):
            heights[height] += left // height * height * likely
            left %= height
    return heights


def average(heights: Heights, columns: int, v: int, price: Price, side: int = 1) -> float:
    """The price of a multiply-add in tiles of these heights and v vectors, fewer at the border.

    side: how many times there are as many vectors, of a loop that is written out whole.
    """
    total = 0.0
    for height, high in heights.items():
        for width, wide in ((v, columns - columns % v), (columns % v, columns % v)):
            total += high * wide * price(height, width * side) if high * wide else 0.0
    return round(total / (sum(heights.values()) * columns), DIGITS)


def price_product(reused: bool, wide: int, height: int, width: int, waits: bool = True) -> float:
    """Where an operand is the same for all lanes: products of matrices, convolutions.

    A tile needs height * width accumulators. Fewer than 8 of them leave the FMA pipe waiting for
    its own result (4 cycles of latency, two pipes). A row costs a broadcast from L1; a column a
    vector that streams from L2, once a tile if the rows use it again (`reused`). Of a vector of
    `wide` bytes that element is the greater part, the narrower it is: 8 lanes want 3 x 32 where 16
    want 9 x 48. Nothing `waits` where a tile of few accumulators has several of each
    (`codegen/side_by_side.py`).
    """
    stalls = max(1.0, SUMS / (height * width)) if waits else 1.0
    return stalls * (1 + (1.5 / height if reused else 1.5) + 0.5 * WIDEST / wide / width)


def price_entry(height: int, width: int) -> float:
    """Where data says what is multiplied: each accumulator takes a vector of its own from memory.

    Its place is computed once for all, and one factor is broadcast. Products of 64 and of 768
    channels with 10% of their weights, on a Zen 4, for 2, 4, 8, 12 and 16 vectors: 54, 65, 66, 61,
    58 and 46, 50, 51, 51, 51 Gflop/s. Vectors of one row share cache lines.
    """
    sums = height * width
    return ENTRY * (1 + 0.5 / sums + 0.01 * sums + 0.15 / width)


def price_diagonal(diagonal: Diagonal, window: bool, height: int, width: int) -> float:
    """Where taps run along a diagonal: fewer loads, each as dear as elsewhere.

    window: nothing is the same for all lanes, as in pooling. Measured on Zen 4: depthwise layers of
    5x5 and 7x7, as a whole, take 0.72 and 0.66 of the time without.
    """
    stalls = max(1.0, SUMS / (height * width))
    loads = diagonal.loads(height)
    if window:
        return stalls * (max(0.5, loads) + 0.1 / width)
    return stalls * (1 + 1.5 * loads + 0.5 / width)


def price_window(
    taps: int, moving: int, still: int, registers: int, height: int, width: int
) -> float:
    """Where every operand differs from lane to lane: pooling, depthwise convolutions.

    Loads bind. Of `moving` operands each row needs its own vectors; `still` ones (the weights of
    a depthwise convolution) are loaded once for all rows of a tile; or once for all, where the taps
    are so few that the C compiler unrolls them and all these vectors stay in registers. Measured on
    15 depthwise layers of 3x3 from MobileNetV2 and ShuffleNet, Zen 4, relative to the best tile:
    2 x 2 1.07, 4 x 1 1.13, 7 x 1 1.13, 4 x 2 1.27, 4 x 3 1.30, 2 x 4 1.67.
    """
    work = taps * height * width
    kept = work <= UNROLLED and (taps * still + height) * width < registers * 3 // 4
    stalls = max(1.0, 8 / (height * width)) if taps > MANY_TAPS else 1.0
    loads = moving + (0 if kept else still / height)
    # Rows that share nothing gain nothing from each other.
    alone = 0.02 * max(0, height * width - ENOUGH) if not still else 0.0
    return stalls * (max(1.0, loads) + 0.1 / width + 1 / min(work, LONG) + alone)
