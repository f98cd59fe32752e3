"""The order of a contraction's tile loops: the one that brings the least from distant caches.

A tile's operands are used again by other tiles. How soon decides where they come from: what all
the loops inside some level touch together either fits a cache, and is fetched into it once, or is
fetched again for every iteration outside. With loops L0 … Ln, outermost first, and a cache that
holds what the loops from Lk on touch,

    fetched(A) = footprint of A within Lk … Ln  *  iterations of L0 … L(k-1)

where loops just outside of Lk that A does not move with do not count: A is still there.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import ceil, prod

from polyc.mapping.cpu.contraction.rows_as_one import Rows, keeps_together
from polyc.mapping.cpu.layout import LINE
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses, compute_strides
from polyc.poly.affine import coefficients, moves, outputs
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.costs import FMA_UNITS, UNHIDDEN, far_bytes, memory_bytes
from polyc.target.machine import Target
from polyc.types.estimate import estimate, long_extent

L1_SHARE, L2_SHARE, L3_SHARE = 0.5, 0.75, 0.5
"""Of a cache, for the operands of the tiles; the rest is for what streams past. Of the third level
each core has its part."""

CYCLES_FROM_L2, CYCLES_BEYOND_L2 = 1 / 32, 1 / 6
"""Cycles a byte, of one core."""

CLOSE = 1.05
"""A cost up to this many times the least is as good."""

AS_GOOD = 1.08
"""Of the least time of a typical call, what an order that is better in a long one may take."""

NEIGHBOURS = 3
"""Tiles in a row for each core from which on threads seldom meet in a cache line, if tiles are made
of whole lines, or several lie in one.

Each takes a run of neighbours, and the two at an end of it are not computed at the same time. On
two cores of a Zen 4 a product of 333 x 333 matrices, 7 tiles a row, takes 423 us by panels and 447
by rows, one of 1000 x 1000 9.3 ms and 9.7; 100 x 100, two tiles a row, 12.4 us and 11.5. The logits
of a language model are such rows: GPT-2's 50257 for each of 128 tokens take 89 ms with weights
that are read once, in place of 99, and 45 on two cores, in place of 60.
"""

FEW_BLOCKS = 8
"""Of rows, up to which all are made as large as each other: what passes by for each of them passes
by for the last one as well, however few rows it has."""

WORTHWHILE = 0.98
"""Of the time without, what blocks of rows have to be predicted to take at most."""


def stays_near(size: int, target: Target) -> bool:
    """Whether so many bytes are found in the third-level cache by those that read them later."""
    return size <= L3_SHARE * target.l3 / target.cores


def rate_beyond_l2(size: int, target: Target) -> float:
    """Bytes in a cycle that a core reads of so many, where they are beyond its second level."""
    return far_bytes(target) if stays_near(size, target) else memory_bytes(target)


@dataclass(frozen=True)
class Operand:
    """How an access moves: for each dimension of its array, the steps of the shared loops.

    `inner` is what the statement's own loops cover of each dimension.
    """

    array: str
    itemsize: int
    sizes: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    inner: tuple[int, ...]

    def moves_with(self, d: int) -> bool:
        return any(row[d] for row in self.steps)

    def footprint(self, extents: Sequence[int]) -> int:
        """Bytes touched by so many iterations of each shared loop."""
        covered = (
            min(size, inner + sum(c * (n - 1) for c, n in zip(row, extents, strict=True)))
            for size, row, inner in zip(self.sizes, self.steps, self.inner, strict=True)
        )
        return self.itemsize * prod(covered)


def choose_order(
    cluster: Cluster,
    loops: Sequence[int],
    vector: int,
    tiles: Table[int, int],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
    rows: Rows = (),
) -> tuple[int, ...]:
    """The shared loops, outermost first; `tiles` are their tile sizes (1 where none is given).

    What is chosen is where the vector loop stands, together with the loops that walk the same
    dimension of the result (the groups of a convolution): as far out as costs little, since a panel
    of weights is then read once. The others keep the order in which memory is walked row by row;
    `rows`, which run as one, stay together.
    """
    last = cluster.statements[-1]
    written = compute_strides(last, arrays, storages)[0]
    steps = {d: written.steps[cluster.shared[d][last.name]] or 0 for d in loops}
    row = [d for d in _along(cluster, vector) if d in loops]
    rest = sorted(
        (d for d in loops if d not in row), key=lambda d: (cluster.extents[d] > 1, -steps[d])
    )
    rest = _gather(rest, rows)
    row.sort(key=lambda d: -steps[d])
    idle = len([*takewhile(lambda d: cluster.extents[d] == 1, rest)])
    orders = [(*rest[:k], *row, *rest[k:]) for k in range(idle, len(rest) + 1)]
    orders = [order for order in orders if keeps_together(order, rows)]
    width = tiles.get(vector, 1)
    is_long = ceil(cluster.extents[vector] / width) >= NEIGHBOURS * target.cores
    apart = steps[vector] * width * written.itemsize
    in_lines = apart % LINE == 0 or (apart < LINE and _moves_constants(cluster, vector, arrays))
    cut = (is_long and in_lines) or _cut_at_lines(row, steps, rest, tiles, written.itemsize)
    if len(orders) > 1 and not cut:
        orders = orders[1:]
    nests = {order: [(d, tiles.get(d, 1)) for d in order] for order in orders}

    def fetch(in_long: bool) -> list[float]:
        operands = list_operands(cluster, arrays, in_long)
        extents = cluster.long_extents if in_long else cluster.extents
        return [_cost(nests[order], operands, extents, target) for order in orders]

    costs = fetch(in_long=False)
    if cluster.long_extents != cluster.extents:
        work = count_cycles(cluster, arrays, target)
        times = [spend(work, cost) for cost in costs]
        orders = [o for o, time in zip(orders, times, strict=True) if time <= AS_GOOD * min(times)]
        costs = fetch(in_long=True)
    return next(o for o, cost in zip(orders, costs, strict=True) if cost <= CLOSE * min(costs))


def count_cycles(cluster: Cluster, arrays: Table[str, Array], target: Target) -> float:
    """What a contraction computes for, at least, on one core."""
    update = next((s for s in cluster.statements if s.reduction), None)
    if update is None:
        return 0.0
    lanes = target.lanes(arrays[update.array].dtype)
    return prod(update.estimated_extents) / (FMA_UNITS * lanes)


def spend(work: float, fetch: float) -> float:
    """Cycles of a kernel that computes while it fetches, for the most part."""
    return max(work, fetch) + UNHIDDEN * min(work, fetch)


def _gather(loops: list[int], rows: Rows) -> list[int]:
    """The loops with rows that run as one where the last of them stands.

    In memory another loop may be between them: heads, whose matrices differ, between images and
    their rows.
    """
    together = [d for d in rows if d in loops]
    if not together:
        return loops
    front = [d for d in loops[: loops.index(together[-1])] if d not in rows]
    behind = [d for d in loops if d not in (*front, *together)]
    return [*front, *together, *behind]


def _along(cluster: Cluster, vector: int) -> list[int]:
    """The shared loops that walk the dimensions of the result that the vector loop walks."""
    last = cluster.statements[-1]
    rows = [coefficients(function) for function in outputs(last.write)]
    walked = [row for row in rows if row[cluster.shared[vector][last.name]] != 0]
    return [
        d
        for d, loop in enumerate(cluster.shared)
        if d == vector or any(row[loop[last.name]] != 0 for row in walked)
    ]


def _moves_constants(cluster: Cluster, vector: int, arrays: Table[str, Array]) -> bool:
    """Whether sums read nothing along the vector loop but constants, which lie in panels.

    Of a depthwise convolution's image each tile of less than a line would read all lines.
    """
    return all(
        arrays[load.array].kind == "constant"
        for s in cluster.statements
        if s.reduction
        for load, columns in zip(s.loads, s.columns[1:], strict=True)
        if moves(columns[cluster.shared[vector][s.name]])
    )


def _cut_at_lines(
    row: Sequence[int],
    steps: Table[int, int],
    rest: Sequence[int],
    tiles: Table[int, int],
    itemsize: int,
) -> bool:
    """Whether tiles of a row of the result begin at cache lines, for every row.

    Threads that share out the tiles of a row write into one line otherwise, and take it from each
    other at every store.
    """
    apart = [steps[d] * tiles.get(d, 1) for d in row] + [steps[d] for d in rest]
    return all(step * itemsize % LINE == 0 for step in apart)


def list_operands(
    cluster: Cluster, arrays: Table[str, Array], in_long: bool = False
) -> list[Operand]:
    """What a contraction reads and writes, its private accumulators left out.

    in_long: as large as in a long call, and not in a typical one.
    """
    result = []
    totals = {s.array for s in cluster.statements if s.reduction}
    for s in cluster.statements:
        own = s.long_extents if in_long else s.estimated_extents
        shared = [loop[s.name] for loop in cluster.shared]
        by_data = {id(load.index): {d for d, _ in load.dynamic} for load in s.loads}
        for (name, index, _), columns in zip(accesses(s), s.columns, strict=True):
            if name in totals:
                continue
            anywhere = by_data.get(id(index), ())
            rank = len(arrays[name].shape)
            rows = [tuple(column[d] for column in columns) for d in range(rank)]
            sizes = tuple(map(long_extent if in_long else estimate, arrays[name].shape))
            result.append(
                Operand(
                    name,
                    arrays[name].dtype.itemsize,
                    sizes,
                    tuple(tuple(abs(row[p] or 0) for p in shared) for row in rows),
                    tuple(
                        size if d in anywhere else _covered_inside(row, own, shared, size)
                        for d, (row, size) in enumerate(zip(rows, sizes, strict=True))
                    ),
                )
            )
    return result


def _covered_inside(
    row: Sequence[int | None], own: Sequence[int], shared: Sequence[int], size: int
) -> int:
    """How much of a dimension a statement covers by itself; all of it if that is not affine."""
    if None in row:
        return size
    return 1 + sum(
        abs(c or 0) * (n - 1)
        for p, (c, n) in enumerate(zip(row, own, strict=True))
        if p not in shared
    )


def choose_row_blocks(
    cluster: Cluster,
    order: Sequence[int],
    vector: int,
    rows: int | None,
    tiles: Table[int, int],
    arrays: Table[str, Array],
    target: Target,
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The order of the loops, and how many rows run through all columns before others do.

    order i j, tiles of 9 rows:  all of B passes by for each of them
    order j i, panels of B:      all of A passes by for each of them
    i, blocks of 144 rows; j; i: B passes by for each 144; and a panel of it meets all of them
                                 while it is near

    {} where little is waited for: the operands are near, or come from afar while others are
    multiplied.
    """
    if rows is None:
        return tuple(order), {}
    operands, extents = list_operands(cluster, arrays), cluster.extents
    nest = [(d, tiles.get(d, 1)) for d in order]
    inner, height = dict(nest)[rows], tiles.get(rows, 1)
    place = list(order).index(rows)
    is_inside = place > list(order).index(vector)
    if is_inside:
        along = _along(cluster, vector)
        start = min(list(order).index(d) for d in along)
        if place != len(order) - 1 or list(order[start:place]) != [d for d in order if d in along]:
            return tuple(order), {}
        place = start
    others = [loop for loop in nest if loop[0] != rows]
    work = count_cycles(cluster, arrays, target)

    def fetch(loops: Sequence[tuple[int, int]]) -> float:
        """Cycles until all operands are in the second-level cache."""
        shares = L2_SHARE * target.l2, L3_SHARE * target.l3 / target.cores
        to_l2, to_l3 = _fetched(loops, operands, extents, shares)
        return to_l2 / far_bytes(target) + to_l3 / memory_bytes(target)

    def take(loops: Sequence[tuple[int, int]]) -> float:
        return spend(work, fetch(loops))

    sizes = _list_blocks(extents[rows], height)
    blocked = {n: [*others[:place], (rows, n), *others[place:], (rows, inner)] for n in sizes}
    least = min(blocked, key=lambda size: take(blocked[size]), default=0)
    if not least or take(blocked[least]) > WORTHWHILE * take(nest):
        return tuple(order), {}
    return tuple(d for d, _ in blocked[least][:-1]), {rows: least}


def _list_blocks(rows: int, height: int) -> list[int]:
    """How many rows a block may have: of few blocks all as many; else 2, 4, 8 … tiles.

    197 rows in tiles of 6: 102 (two blocks), 66 (three), 54, 42, 36, 30 (seven); 12, 24
    """
    tiles = ceil(rows / height)
    few = (ceil(tiles / blocks) for blocks in range(2, FEW_BLOCKS + 1))
    many = takewhile(lambda size: FEW_BLOCKS * size < tiles, (1 << k for k in count(1)))
    return [size * height for size in dict.fromkeys([*few, *many]) if 1 < size < tiles]


def _cost(
    nest: Sequence[tuple[int, int]],
    operands: Sequence[Operand],
    extents: Sequence[int],
    target: Target,
) -> float:
    """Cycles to fetch all operands, from the second-level cache and from beyond it."""
    near, far = _fetched(nest, operands, extents, (L1_SHARE * target.l1d, L2_SHARE * target.l2))
    return near * CYCLES_FROM_L2 + far * CYCLES_BEYOND_L2


def _fetched(
    nest: Sequence[tuple[int, int]],
    operands: Sequence[Operand],
    extents: Sequence[int],
    capacities: Sequence[float],
) -> list[int]:
    """Bytes that are fetched into a cache, for several sizes of it.

    nest: the loops, outermost first, each with how much of its dimension is inside of it.
    """
    inside, trips = list(extents), []
    levels = [[operand.footprint(inside) for operand in operands]]
    for d, size in nest:
        trips.append(ceil(inside[d] / size))
        inside[d] = size
        before = zip(operands, levels[-1], strict=True)
        levels.append([o.footprint(inside) if o.moves_with(d) else n for o, n in before])

    def fill(capacity: float) -> int:
        level = next((k for k, sizes in enumerate(levels) if sum(sizes) <= capacity), len(nest))
        total = 0
        for operand, size in zip(operands, levels[level], strict=True):
            outside = level
            while outside and not operand.moves_with(nest[outside - 1][0]):
                outside -= 1
            total += size * prod(trips[:outside])
        return total

    return [fill(capacity) for capacity in capacities]
