"""The register tile of a contraction: every tile that fits is priced, the cheapest wins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from collections.abc import Mapping as Table
from functools import partial
from math import ceil, gcd, prod

from polyc.codegen.load_once import fits_by_columns, fits_by_rows
from polyc.codegen.remainder import ROWS, SHRUNK_ROWS
from polyc.codegen.side_by_side import SUMS, WORTHWHILE
from polyc.mapping.cpu.diagonal import Diagonal, find_diagonal
from polyc.mapping.cpu.grouping import count_held
from polyc.mapping.cpu.layout import LINE
from polyc.mapping.cpu.loop_order import CYCLES_FROM_L2, L1_SHARE
from polyc.mapping.cpu.rows_as_one import (
    PAYS,
    Rows,
    count_places,
    list_rows_as_one,
    price_places,
)
from polyc.mapping.reading import Tile
from polyc.memory.strides import Strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.costs import ENTRY
from polyc.target.machine import Target

UNROLLED = 36
"""Multiply-adds of a window's tile, all taps together, that gcc still writes out."""

LONG = 72
"""Multiply-adds of a window's tile from which on its loops cost nothing."""

ENOUGH = 12
"""Vectors that keep loads and operations of a pooling busy: 16 take 10% longer."""

DIGITS = 6
"""Of a price: equal ones must not differ by rounding."""

LONGEST_RUN = 4
"""Iterations of a loop that is written out inside of a tile, each with accumulators of its own."""

WIDEST = 64
"""Bytes of the vectors by which prices are measured."""

STORED_ALONE = 2.0
"""Cycles for an element that is taken out of a vector and stored by itself."""

CUT_LINE = 1.05
"""Times as dear is a tile of which a row of the result ends inside a cache line.

The next tile fetches that line again, and threads cannot share out such a row (`loop_order.py`). On
a Zen 4 held to 8 lanes 4 x 24 takes 1.05 times as long as 6 x 16 in 1x1 layers of ResNet-50, and
1.02 to 1.07 times in BERT and ViT.
"""

MOST_ACROSS = 8
"""Vectors side by side where data says from where they are loaded, so that rows share nothing."""

MOVES = 2
"""What adding to a sum costs that registers have no room for: it is loaded, and stored."""

MANY_TAPS = 16
"""Taps from which on a tile's sums are not soon followed by those of the next tile."""


def choose_register_tile(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> tuple[Tile, Rows]:
    """(the cheapest tile for a contraction, the loops that run as one for it: none, or several).

    The rows of several loops are those of the first one then.
    """
    runs = list_rows_as_one(cluster, vector, strides)
    priced = _price_tiles(cluster, vector, strides, arrays, target, runs)
    alone = min((one for one in priced if not one[2]), key=lambda one: one[0])
    together = [one for one in priced if one[2] and one[0] < PAYS * alone[0]]
    _, tile, rows = min(together, key=lambda one: one[0], default=alone)
    return tile, rows


def least_price(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> float:
    """What a multiply-add costs at least, in a tile of one loop's rows."""
    return min(cost for cost, _, _ in _price_tiles(cluster, vector, strides, arrays, target))


def rank_register_tiles(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> list[Tile]:
    """Every tile of one loop's rows that fits the registers, the cheapest first."""
    priced = _price_tiles(cluster, vector, strides, arrays, target)
    return [tile for _, tile, _ in sorted(priced, key=lambda c: c[0])]


def _price_tiles(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
    runs: Sequence[Rows] = (),
) -> list[tuple[float, Tile, Rows]]:
    """What every tile costs that fits the registers, with rows of each loop, and of `runs`."""
    update = next(s for s in cluster.statements if s.reduction)
    lanes = min(target.lanes(arrays[a.array].dtype) for a in strides[update.name])
    size = arrays[update.array].dtype.itemsize
    extent = cluster.extents[vector]
    columns = ceil(extent / lanes)
    loads = strides[update.name][1:]
    walks = [a for a in loads if a.steps[cluster.shared[vector][update.name]]]
    shared = cluster.shared_positions(update)
    taps = prod(n for p, n in enumerate(update.estimated_extents) if p not in shared)
    between = _count_between(update, cluster, arrays) if cluster.summed else 0
    registers = target.vectors.registers - count_held(update, target)
    candidates: list[tuple[float, Tile, Rows]] = []
    by_data = frozenset().union(*(a.data for a in loads))
    window = len(walks) == len(loads)
    loops = [
        d
        for d in range(len(cluster.shared))
        if d != vector
        and cluster.extents[d] > 1
        and cluster.shared[d][update.name] not in by_data  # each row ends elsewhere
    ]
    rows_of = {d: cluster.shared[d][update.name] for d in loops}
    alone_in: list[Rows] = [(), *((d,) for d in loops)]
    for run in (*alone_in, *runs):
        d = run[-1] if run else None
        still = len(walks) if d is None else _count_still(walks, cluster.shared[d][update.name])
        rows = prod(cluster.extents[k] for k in run)
        known = d is None or (update.exact_extents[cluster.shared[d][update.name]] is not None)
        price: Price
        if by_data:
            price = price_entry
        elif window:
            moving = max(1, len(walks) - still)  # something moves without a second loop as well
            price = partial(
                _price_window, taps, moving, len(walks) - moving, target.vectors.registers
            )
        else:
            waits = known or taps < SUMS * WORTHWHILE
            wide = target.vectors.bytes
            price = partial(price_product, still == len(walks), wide, waits=waits)
        diagonal = find_diagonal(cluster, vector, d)
        written = strides[cluster.statements[-1].name][0]
        short = find_run(cluster, vector, d, written)
        if len(run) > 1 and (diagonal or short is not None):
            continue
        alone = 0.0
        if _is_stored_alone(cluster, vector, d, written) and short is None:
            alone = STORED_ALONE * lanes / taps
        side = 1 if short is None else cluster.extents[short]
        places = count_places(cluster, run, strides) if len(run) > 1 else (0, 0)
        for v in range(1, min(MOST_ACROSS if by_data else 4, columns) + 1):
            for u in range(1, rows + 1):
                divided = price_places(u, v, taps, places)
                if divided is None or not _fits_registers(u, v, side, window, registers):
                    break
                along = diagonal and diagonal.fits(u, v)
                rest = SHRUNK_ROWS if along else ROWS
                heights = _cut_known(rows, u) if known else _cut_unknown(rows, u, rest)
                priced = partial(_price_diagonal, diagonal, window) if diagonal and along else price
                cost = _average(heights, columns, v, priced, side) + divided
                if d is not None and not window:
                    cost += _waited_for(update, loads, walks, shared, rows_of[d], u, v, target)
                if v < columns and v * lanes * size % LINE and not window:
                    cost *= CUT_LINE
                if between:
                    held = max(0, 2 * u * v + v + 1 - registers)
                    cost += held / (u * v) * MOVES / between
                far = 1e-3 * (len(loops) - 1 - loops.index(d)) if d is not None else 0.0
                tile = run[0] if run else None, u, min(v * lanes, extent)
                candidates.append((cost + far + alone, tile, run if len(run) > 1 else ()))
    return candidates


def _fits_registers(height: int, width: int, side: int, window: bool, registers: int) -> bool:
    """Whether a tile's sums stay in so many registers, with what a step of the sum multiplies.

    In a product one operand waits there for the other, which passes by: the vectors of a row, or
    the elements of all rows (`codegen/load_once.py`).
    """
    if window or side > 1:
        return (height * width + (width if window else min(height, width))) * side + 1 <= registers
    return fits_by_rows(height, width, registers) or fits_by_columns(height, width, registers)


def _count_between(update: Statement, cluster: Cluster, arrays: Table[str, Array]) -> float:
    """Instructions for each accumulator between two times that its result is added to a sum.

    As many bytes as the sum has go into each of them.
    """
    taken = cluster.shared_positions(update) | cluster.summed_positions(update)
    taps = prod(n for p, n in enumerate(update.estimated_extents) if p not in taken)
    widest = max(arrays[load.array].dtype.itemsize for load in update.loads)
    return max(1.0, taps * min(1.0, widest / arrays[update.array].dtype.itemsize))


def find_run(cluster: Cluster, vector: int, unroll: int | None, written: Strides) -> int | None:
    """A short loop with which an unrolled one walks rows of a result that lies across the lanes.

    y[o, 2*x + b]  with lanes o, rows x:  b. A tile of both is transposed in registers and stored in
    vectors; alone each row would be stored element by element.
    """
    last = cluster.statements[-1].name
    steps = [written.steps[loop[last]] for loop in cluster.shared]
    if unroll is None or steps[vector] in (0, 1):
        return None
    short = (
        d
        for d, step in enumerate(steps)
        if d not in (vector, unroll) and step == 1 and 1 < cluster.extents[d] <= LONGEST_RUN
    )
    return next((d for d in short if steps[unroll] == cluster.extents[d]), None)


def _is_stored_alone(cluster: Cluster, vector: int, unroll: int | None, written: Strides) -> bool:
    """Whether a result lies across the lanes, and not along the rows of a tile either."""
    last = cluster.statements[-1].name
    steps = [written.steps[loop[last]] for loop in cluster.shared]
    return steps[vector] not in (0, 1) and (unroll is None or steps[unroll] != 1)


def _waited_for(
    update: Statement,
    loads: Sequence[Strides],
    walks: Sequence[Strides],
    shared: Collection[int],
    rows: int,
    height: int,
    width: int,
    target: Target,
) -> float:
    """Cycles per multiply-add for lines that come from the second-level cache for one element each.

    x[n, c, p] with rows n, 49 positions p in a row: each c reads a line of each image, of which one
    element is used; with rows p it reads one line or two. If all that a tile reads stays in the
    first-level cache, its neighbours use the other elements. So it is with the next elements of a
    row, unless its line is driven out before they are read, by those of too many other rows.
    """
    cycles = 0.0
    for access in (a for a in loads if a not in walks):
        moves = [(access.steps[p], n) for p, n in enumerate(update.estimated_extents)]
        own = [(step, n) for p, (step, n) in enumerate(moves) if p not in shared and n > 1]
        steps = [abs(step) * access.itemsize for step, _ in own if step]
        apart = (access.steps[rows] or 0) * access.itemsize
        if access.free or not steps or not apart:
            continue
        if min(steps) < LINE:
            if _drive_out(height, abs(apart), target):
                cycles += LINE * CYCLES_FROM_L2 / width
            continue
        lines = min(height, 1 + (height - 1) * abs(apart) / LINE)
        if lines * LINE * prod(n for step, n in own if step) > L1_SHARE * target.l1d:
            cycles += lines * LINE * CYCLES_FROM_L2 / (height * width)
    return cycles


def _drive_out(rows: int, apart: int, target: Target) -> bool:
    """Whether lines of so many rows do not fit the sets of the first-level cache that they fall in.

    Rows 4096 bytes apart all fall in one, of 8 or 12 lines. A product of 4096 x 64, with rows of
    1024 floats, runs at 85 GFLOP/s in tiles of 14 rows and at 107 in tiles of 7 (Zen 4, 8 ways).
    """
    way = target.l1d // target.l1d_ways
    sets = max(1, way // gcd(way, apart))
    return ceil(rows / sets) > target.l1d_ways


def choose_diagonal(
    cluster: Cluster, vector: int, tile: Tile, arrays: Table[str, Array], target: Target
) -> Diagonal | None:
    """The taps of a tile that run along a diagonal with its rows."""
    unroll, height, width = tile
    diagonal = find_diagonal(cluster, vector, unroll)
    if diagonal is None:
        return None
    update = next(s for s in cluster.statements if s.reduction)
    touched = (update.array, *(load.array for load in update.loads))
    lanes = min(target.lanes(arrays[name].dtype) for name in touched)
    return diagonal if diagonal.fits(height, ceil(width / lanes)) else None


def _count_still(walks: Sequence[Strides], position: int) -> int:
    """How many operands stay where they are along an iterator."""
    return sum(a.steps[position] == 0 for a in walks)


Price = Callable[[int, int], float]
"""Cycles per multiply-add in a tile of so many rows and vectors."""

Heights = Table[int, float]
"""How many rows of a problem are in tiles of each height."""


def _cut_known(rows: int, u: int) -> Heights:
    """Tiles of u rows, and a smaller one at the border."""
    return {u: rows - rows % u, rows % u: rows % u} if rows % u else {u: rows}


def _cut_unknown(rows: int, u: int, rests: Sequence[int]) -> Heights:
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


def _average(heights: Heights, columns: int, v: int, price: Price, side: int = 1) -> float:
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


def _price_diagonal(diagonal: Diagonal, window: bool, height: int, width: int) -> float:
    """Where taps run along a diagonal: fewer loads, each as dear as elsewhere.

    window: nothing is the same for all lanes, as in pooling. Measured on Zen 4: depthwise layers of
    5x5 and 7x7, as a whole, take 0.72 and 0.66 of the time without.
    """
    stalls = max(1.0, SUMS / (height * width))
    loads = diagonal.loads(height)
    if window:
        return stalls * (max(0.5, loads) + 0.1 / width)
    return stalls * (1 + 1.5 * loads + 0.5 / width)


def _price_window(
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
