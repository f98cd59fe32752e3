"""The parameters that a cluster may have, and those of them that are worth a measurement.

A search starts from what the cost model chose and changes one thing at a time, in the order of
`MOVES`: each move lists neighbours of the best parameters found so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations, zip_longest
from math import ceil

from polyc.mapping.columns import choose_lanes, choose_strip, is_by_columns
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.packing import find_operands
from polyc.mapping.parameters import Parameters, Tile
from polyc.mapping.pointwise import choose_pointwise_tile
from polyc.mapping.register_tile import rank_register_tiles
from polyc.memory.vector_loop import is_whole
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


def is_candidate(one: OpenCluster, parameters: Parameters, target: Target) -> bool:
    """Whether the parameters are in the space at all: what is read from a file may not be."""
    vector, packed, order = parameters.vector, parameters.packed, parameters.order
    if order and sorted(order) != list(range(len(one.cluster.shared))):
        return False
    if vector is None:
        operands = map(one.touched.index, find_operands(one.cluster, None, one.strides, 1))
        return parameters.tile == (None, 1, 1) and set(packed) <= set(operands)
    return (
        vector in list_vector_loops(one)
        and parameters.tile in list_tiles(one, vector, target)
        and set(packed) <= set(list_packable(one, vector))
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


def list_packable(one: OpenCluster, vector: int) -> list[int]:
    """The arrays, by position, that a contraction may read through a packed copy."""
    cluster = one.cluster
    if not cluster.has_reuse:
        return []
    update = next(s for s in cluster.statements if s.reduction)
    position = cluster.shared[vector][update.name]
    found = [
        one.touched.index(a.array)
        for a in one.strides[update.name][1:]
        if a.is_packable and not a.free and a.dimensions[position] is not None
    ]
    return list(dict.fromkeys(found))


def _tiles(one: OpenCluster, best: Parameters, target: Target) -> Iterator[Parameters]:
    """The cheapest tile of each unrolled loop and width, then the second cheapest, and so on."""
    if best.vector is None:
        return
    kinds: dict[tuple[int | None, int], list[Tile]] = {}
    for tile in list_tiles(one, best.vector, target):
        kinds.setdefault((tile[0], tile[2]), []).append(tile)
    for tiles in zip_longest(*(tiles[:HEIGHTS] for tiles in kinds.values())):
        yield from (replace(best, tile=tile) for tile in tiles if tile is not None)


def _vectors(one: OpenCluster, best: Parameters, target: Target) -> Iterator[Parameters]:
    """Other vector loops, with the best tile that the cost model knows."""
    for vector in list_vector_loops(one):
        if vector != best.vector:
            yield Parameters(vector, list_tiles(one, vector, target)[0])


def _packings(one: OpenCluster, best: Parameters, _: Target) -> Iterator[Parameters]:
    """One operand more or fewer packed."""
    if best.vector is None:
        return
    for k in list_packable(one, best.vector):
        yield replace(best, packed=tuple(sorted({*best.packed} ^ {k})))


def _orders(one: OpenCluster, best: Parameters, _: Target) -> Iterator[Parameters]:
    """Other orders of the loops that have more than one tile."""
    if best.vector is None:
        return
    unroll, height, width = best.tile
    sizes = {best.vector: width} | ({} if unroll is None else {unroll: height})
    extents = one.cluster.extents
    loops = range(len(extents))
    order = best.order or tuple(loops)
    moving = [d for d in order if extents[d] > sizes.get(d, 1)]
    if len(moving) <= MOST_LOOPS:
        found = list(permutations(moving))
    else:
        others = [d for d in moving if d != best.vector]
        at = range(len(moving))
        found = [(*others[:k], best.vector, *others[k:]) for k in at]
    rest = [d for d in order if d not in moving]
    for moved in found:
        yield replace(best, order=(*rest, *moved))


Move = Callable[[OpenCluster, Parameters, Target], Iterator[Parameters]]

MOVES: tuple[Move, ...] = (_tiles, _orders, _vectors, _packings)
"""In the order in which they are tried: those that pay most often first."""
