"""The register tile of a contraction: every tile that fits is priced, the cheapest wins."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, gcd, inf, prod

from polyc.codegen.load_once import fits_by_columns, fits_by_rows
from polyc.codegen.remainder import ROWS, SHRUNK_ROWS
from polyc.codegen.side_by_side import SUMS, WORTHWHILE
from polyc.mapping.cpu.contraction.diagonal import Diagonal, find_diagonal
from polyc.mapping.cpu.contraction.grouping import count_held
from polyc.mapping.cpu.contraction.loop_order import (
    CYCLES_FROM_L2,
    L1_SHARE,
    L2_SHARE,
    rate_beyond_l2,
    spend,
)
from polyc.mapping.cpu.contraction.rows_as_one import (
    Rows,
    count_places,
    pays,
    price_places,
)
from polyc.mapping.cpu.contraction.tile_prices import (
    Price,
    average,
    cut_known,
    cut_unknown,
    price_diagonal,
    price_entry,
    price_product,
    price_window,
)
from polyc.mapping.cpu.layout import LINE
from polyc.mapping.reading import Tile
from polyc.memory.strides import Strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.costs import FMA_UNITS
from polyc.target.machine import Target

LONGEST_RUN = 4
"""Iterations of a loop that is written out inside of a tile, each with accumulators of its own."""

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


def choose_register_tile(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
    runs: Sequence[Rows] = (),
) -> tuple[Tile, Rows]:
    """(the cheapest tile for a contraction, the loops that run as one for it: none, or several).

    The rows of several loops are those of the first one then; `runs` are the loops that may.
    """
    priced = _price_tiles(cluster, vector, strides, arrays, target, runs)
    alone = min((one for one in priced if not one[2]), key=lambda one: one[0])
    together = [one for one in priced if one[2] and pays(one[0], alone[0], cluster, one[2])]
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
    most: float = inf,
) -> list[Tile]:
    """Tiles of one loop's rows that cost up to `most` times what the cheapest does; it is first."""
    priced = sorted(_price_tiles(cluster, vector, strides, arrays, target), key=lambda c: c[0])
    return [tile for cost, tile, _ in priced if cost <= most * priced[0][0]]


Priced = tuple[float, Tile, Rows]
"""What a tile costs a multiply-add, the tile, and the loops that run as one for it, if several."""


def _price_tiles(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
    runs: Sequence[Rows] = (),
) -> list[Priced]:
    """What every tile costs that fits the registers, with rows of each loop, and of `runs`."""
    contraction = _Contraction(cluster, vector, strides, arrays, target)
    alone: list[Rows] = [(), *((d,) for d in contraction.loops)]
    return [priced for run in (*alone, *runs) for priced in contraction.price_run(run)]


@dataclass(frozen=True)
class _Contraction:
    """A contraction with a loop in lanes, whose tiles are priced."""

    cluster: Cluster
    vector: int
    strides: Table[str, tuple[Strides, ...]]
    arrays: Table[str, Array]
    target: Target

    @cached_property
    def update(self) -> Statement:
        return next(s for s in self.cluster.statements if s.reduction)

    @cached_property
    def loads(self) -> tuple[Strides, ...]:
        return self.strides[self.update.name][1:]

    @cached_property
    def walks(self) -> list[Strides]:
        """What moves with the lanes."""
        return [a for a in self.loads if a.steps[self._position(self.vector)]]

    @cached_property
    def lanes(self) -> int:
        touched = self.strides[self.update.name]
        return min(self.target.lanes(self.arrays[a.array].dtype) for a in touched)

    @cached_property
    def columns(self) -> int:
        """Vectors along the loop in lanes."""
        return ceil(self.cluster.extents[self.vector] / self.lanes)

    @cached_property
    def taps(self) -> int:
        """Terms of a sum."""
        shared = self.cluster.shared_positions(self.update)
        return prod(n for p, n in enumerate(self.update.estimated_extents) if p not in shared)

    @cached_property
    def again(self) -> int:
        """Times that what moves with the lanes is taken: iterations of the other loops."""
        return prod(
            self.cluster.extents[d]
            for d in self.loops
            if _count_still(self.walks, self._position(d)) == len(self.walks)
        )

    @cached_property
    def by_data(self) -> frozenset[int]:
        """The iterators that data says where to read by."""
        return frozenset[int]().union(*(a.data for a in self.loads))

    @cached_property
    def is_window(self) -> bool:
        """Whether every operand differs from lane to lane."""
        return len(self.walks) == len(self.loads)

    @cached_property
    def registers(self) -> int:
        return self.target.vectors.registers - count_held(self.update, self.target)

    @cached_property
    def between(self) -> float:
        summed = self.cluster.summed
        return _count_between(self.update, self.cluster, self.arrays) if summed else 0

    @cached_property
    def loops(self) -> list[int]:
        """Those that may be the rows of a tile; not one along which each row ends elsewhere."""
        return [
            d
            for d in range(len(self.cluster.shared))
            if d != self.vector
            and self.cluster.extents[d] > 1
            and self._position(d) not in self.by_data
        ]

    def _position(self, d: int) -> int:
        """The iterator of the sum that a shared loop is."""
        return self.cluster.shared[d][self.update.name]

    def _is_known(self, d: int | None) -> bool:
        return d is None or self.update.exact_extents[self._position(d)] is not None

    def price_run(self, run: Rows) -> Iterator[Priced]:
        """What tiles cost whose rows are those of these loops as one; of one row without any."""
        cluster, d = self.cluster, run[-1] if run else None
        diagonal = find_diagonal(cluster, self.vector, d)
        written = self.strides[cluster.statements[-1].name][0]
        short = find_run(cluster, self.vector, d, written)
        if len(run) > 1 and (diagonal or short is not None):
            return
        price = self._choose_price(d)
        rows = prod(cluster.extents[k] for k in run)
        is_known = all(map(self._is_known, run))
        alone = 0.0
        if _is_stored_alone(cluster, self.vector, d, written) and short is None:
            alone = STORED_ALONE * self.lanes / self.taps
        # Of equal ones it is the innermost loop.
        far = 0.0 if d is None else 1e-3 * sum(e > d for e in self.loops)
        side = 1 if short is None else cluster.extents[short]
        places = count_places(cluster, run, self.strides) if len(run) > 1 else (0, 0)
        most = MOST_ACROSS if self.by_data else 4
        for v in range(1, min(most, self.columns) + 1):
            for u in range(1, rows + 1):
                divided = price_places(u, v, self.taps, places)
                fits = _fits_registers(u, v, side, self.is_window, self.registers)
                if divided is None or not fits:
                    break
                along = diagonal if diagonal and diagonal.fits(u, v) else None
                rest = SHRUNK_ROWS if along else ROWS
                heights = cut_known(rows, u) if is_known else cut_unknown(rows, u, rest)
                priced = partial(price_diagonal, along, self.is_window) if along else price
                cost = average(heights, self.columns, v, priced, side) + divided
                cost = self._with_waits(cost, d, u, v)
                width = min(v * self.lanes, cluster.extents[self.vector])
                tile = run[0] if run else None, u, width
                yield cost + far + alone, tile, run if len(run) > 1 else ()

    def _choose_price(self, d: int | None) -> Price:
        """What a multiply-add costs in tiles with rows of a loop."""
        still = len(self.walks) if d is None else _count_still(self.walks, self._position(d))
        if self.by_data:
            return price_entry
        if self.is_window:
            # Something moves without a second loop as well.
            moving = max(1, len(self.walks) - still)
            registers = self.target.vectors.registers
            return partial(price_window, self.taps, moving, len(self.walks) - moving, registers)
        waits = self._is_known(d) or self.taps < SUMS * WORTHWHILE
        wide = self.target.vectors.bytes
        return partial(price_product, still == len(self.walks), wide, waits=waits)

    def _with_waits(self, cost: float, d: int | None, u: int, v: int) -> float:
        """The cost of a tile with what it waits for lines, and what it moves from and to memory."""
        if d is not None and not self.is_window:
            shared, rows = self.cluster.shared_positions(self.update), self._position(d)
            cost += _waited_for(
                self.update, self.loads, self.walks, shared, rows, u, v, self.target
            )
            cost = self._with_stream(cost, u, v)
        size = self.arrays[self.update.array].dtype.itemsize
        if v < self.columns and v * self.lanes * size % LINE and not self.is_window:
            cost *= CUT_LINE
        if self.between:
            held = max(0, 2 * u * v + v + 1 - self.registers)
            cost += held / (u * v) * MOVES / self.between
        return cost

    def _with_stream(self, cost: float, u: int, v: int) -> float:
        """The cost where vectors come from beyond the second-level cache for each tile of u rows.

        They do where what a sum takes for v of them does not fit there, and is taken more often.
        """
        vectors = sum(a.itemsize for a in self.walks) * self.lanes
        if self.again <= u or self.taps * v * vectors <= L2_SHARE * self.target.l2:
            return cost
        rate = rate_beyond_l2(sum(self.arrays[a.array].bytes for a in self.walks), self.target)
        return spend(cost, vectors / rate / u * FMA_UNITS)


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
