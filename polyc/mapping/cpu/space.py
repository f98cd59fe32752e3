"""The schedules that a cluster may have, and those of them that are worth a measurement.

A search starts from what the cost model chose and changes one thing at a time, in the order of
`MOVES`: each move lists neighbours of the best schedule found so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations, zip_longest
from math import ceil

from polyc.errors import IllegalSchedule
from polyc.mapping.cpu.contraction.register_tile import rank_register_tiles
from polyc.mapping.cpu.laying import Tiles, choose_tiles, lay_out
from polyc.mapping.cpu.packing import find_operands
from polyc.mapping.cpu.strategies.columns import choose_lanes, choose_strip, is_by_columns
from polyc.mapping.cpu.strategies.pointwise import choose_pointwise_tile
from polyc.mapping.cpu.vector_loop import is_whole
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.reading import (
    Grouped,
    Tile,
    read_grouped,
    read_order,
    read_packed,
    read_rows,
    read_tile,
    read_vector,
)
from polyc.mapping.tuned import Tuned
from polyc.schedule.canonical import from_positions
from polyc.schedule.schedule import Schedule
from polyc.target.machine import Target

MOST_VECTORS = 8
"""Vectors in a tile without accumulators."""

STRIPS = (16, 64, 256, 1024, 4096)
"""Widths of a strip of columns."""

MOST_LOOPS = 3
"""Loops with more than one tile of which every order is tried; of more, only the vector loop is
moved."""

HEIGHTS = 4
"""Register tiles of one loop and one width that are tried, the cheapest by the cost model."""


def find_tuned(one: OpenCluster, tuned: Tuned, target: Target) -> Schedule | None:
    """The tuned schedule in the cluster's names; None if it is not in the space of this cluster.

    What is read from a file may be anything, so it is told from what strategies emit.
    """
    try:
        stored = Schedule.parse(tuned.schedule)
        schedule = from_positions(stored, one.named, one.nameable)
    except IllegalSchedule:
        return None
    tiles, order = _read(one, schedule)
    if not _is_candidate(one, tiles, target):
        return None
    chosen = lay_out(one, tiles)
    found = (chosen.schedule(target, order), chosen.schedule(target))
    return schedule if schedule in found else None


def _read(one: OpenCluster, schedule: Schedule) -> tuple[Tiles, tuple[int, ...]]:
    """What a strategy's schedule says of tiles and copies, and its order of the shared loops."""
    named = one.named
    vector, _ = read_vector(schedule, named)
    tiles = Tiles(
        vector,
        read_tile(schedule, named),
        read_packed(schedule),
        read_grouped(schedule, named),
        read_rows(schedule, named),
    )
    return tiles, read_order(schedule, named)


def _is_candidate(one: OpenCluster, tiles: Tiles, target: Target) -> bool:
    if not set(tiles.packed) <= set(list_packable(one, tiles.vector, tiles.grouped)):
        return False
    if tiles.rows:  # no search makes rows of several loops
        chosen = choose_tiles(one, target)
        return (tiles.vector, tiles.tile, tiles.rows) == (chosen.vector, chosen.tile, chosen.rows)
    return tiles.vector is None or (
        tiles.vector in list_vector_loops(one)
        and tiles.tile in list_tiles(one, tiles.vector, target)
    )


def list_vector_loops(one: OpenCluster) -> list[int]:
    """Shared loops that may run in SIMD lanes."""
    cluster = one.cluster
    if cluster.has_reuse and not all(is_whole(s, cluster) for s in cluster.statements):
        return []
    return [d for d, extent in enumerate(cluster.extents) if extent > 1]


def list_tiles(one: OpenCluster, vector: int, target: Target) -> list[Tile]:
    """Every tile of a vector loop, the best by the cost model first."""
    cluster = one.cluster
    if is_by_columns(cluster):
        strip = choose_strip(cluster, vector, one.strides, one.arrays, one.private, target)
        lanes = choose_lanes(cluster, one.arrays, target)
        return [strip, *((None, 1, w) for w in STRIPS if lanes <= w < strip[2])]
    if any(s.reduction for s in cluster.statements):
        return rank_register_tiles(cluster, vector, one.strides, one.arrays, target)
    lanes = min(target.lanes(one.arrays[a.array].dtype) for st in one.strides.values() for a in st)
    extent = cluster.extents[vector]
    counts = range(1, min(MOST_VECTORS, ceil(extent / lanes)) + 1)
    best = choose_pointwise_tile(cluster, vector, one.strides, one.arrays, target)
    others = [(None, 1, min(n * lanes, extent)) for n in counts]
    return [best, *(tile for tile in others if tile != best)]


def list_packable(
    one: OpenCluster, vector: int | None, grouped: Grouped | None = None
) -> Sequence[str]:
    """The arrays that a contraction may read through a packed copy.

    vector: its loop in lanes; grouped: that of which an instruction takes terms next to each other.
    """
    cluster = one.cluster
    if vector is None:
        return find_operands(cluster, None, one.strides, 1)
    if not cluster.has_reuse:
        return []
    update = next(s for s in cluster.statements if s.reduction)
    along = [cluster.shared[vector][update.name]]
    along += [grouped.position] if grouped and grouped.statement == update.name else []
    found = [
        a.array
        for a in one.strides[update.name][1:]
        if a.is_packable and not a.free and any(a.dimensions[p] is not None for p in along)
    ]
    return list(dict.fromkeys(found))


def _tiles(one: OpenCluster, best: Schedule, target: Target) -> Iterator[Schedule]:
    """The cheapest tile of each unrolled loop and width, then the second cheapest, and so on."""
    tiles, _ = _read(one, best)
    if tiles.vector is None:
        return
    kinds: dict[tuple[int | None, int], list[Tile]] = {}
    for tile in list_tiles(one, tiles.vector, target):
        kinds.setdefault((tile[0], tile[2]), []).append(tile)
    for each in zip_longest(*(ranked[:HEIGHTS] for ranked in kinds.values())):
        for tile in (tile for tile in each if tile is not None):
            yield lay_out(one, replace(tiles, tile=tile, rows=())).schedule(target)


def _vectors(one: OpenCluster, best: Schedule, target: Target) -> Iterator[Schedule]:
    """Other vector loops, with the best tile that the cost model knows."""
    tiles, _ = _read(one, best)
    for vector in list_vector_loops(one):
        if vector != tiles.vector:
            tile = list_tiles(one, vector, target)[0]
            yield lay_out(one, Tiles(vector, tile, ())).schedule(target)


def _packings(one: OpenCluster, best: Schedule, target: Target) -> Iterator[Schedule]:
    """One operand more or fewer packed."""
    tiles, order = _read(one, best)
    if tiles.vector is None:
        return
    for name in list_packable(one, tiles.vector):
        packed = {*tiles.packed} ^ {name}
        listed = tuple(sorted(packed, key=one.touched.index))
        yield lay_out(one, replace(tiles, packed=listed)).schedule(target, order)


def _orders(one: OpenCluster, best: Schedule, target: Target) -> Iterator[Schedule]:
    """Other orders of the loops that have more than one tile."""
    tiles, order = _read(one, best)
    if tiles.vector is None or tiles.rows:
        return
    unroll, height, width = tiles.tile
    sizes = {tiles.vector: width} | ({} if unroll is None else {unroll: height})
    extents = one.cluster.extents
    order = order or tuple(range(len(extents)))
    moving = [d for d in order if extents[d] > sizes.get(d, 1)]
    if len(moving) <= MOST_LOOPS:
        found = list(permutations(moving))
    else:
        others = [d for d in moving if d != tiles.vector]
        at = range(len(moving))
        found = [(*others[:k], tiles.vector, *others[k:]) for k in at]
    rest = [d for d in order if d not in moving]
    laid = lay_out(one, tiles)
    for moved in found:
        yield laid.schedule(target, (*rest, *moved))


Move = Callable[[OpenCluster, Schedule, Target], Iterator[Schedule]]

MOVES: tuple[Move, ...] = (_tiles, _orders, _vectors, _packings)
"""In the order in which they are tried: those that pay most often first."""
