"""Sizes and order of the loops of a pointwise cluster: vectors, or squares to be transposed.

Where an access has unit step along another loop than the vector loop, a tile of both is loaded in
vectors along the one, transposed in registers, and stored in vectors along the other
(`codegen/transpose.py`).
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence

from polyc.codegen.transpose import LARGEST_SIDE
from polyc.mapping.cpu.vector_loop import find_crossing_loop
from polyc.mapping.reading import Tile
from polyc.memory.storage import Storage
from polyc.memory.strides import Strides, compute_strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.machine import Target

STREAM_VECTORS = 2
"""Vectors in a pointwise tile, so that two independent chains of operations overlap."""

ROW_BYTES = 512
"""Bytes that a transpose reads of a row before it goes to the next rows. 4096 x 4096 floats on one
core, in steps of 64, 128, 256, 512 and 1024 bytes and of the whole row: 8, 9, 13, 15, 15 and 7 GB/s
(16 bytes off a cache line; at its begin 7, 10, 17, 17, 18 and 15)."""


def choose_pointwise_tile(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> Tile:
    """Some vectors of the vector loop, or a square of it and the loop that accesses cross it by."""
    widest = max(arrays[a.array].dtype.itemsize for st in strides.values() for a in st)
    lanes = max(1, target.vectors.bytes // widest)
    extents = cluster.extents
    crossing = find_crossing_loop(cluster, vector, strides)
    if crossing is not None:
        side = min(lanes, LARGEST_SIDE)
        return crossing, min(side, extents[crossing]), min(side, extents[vector])
    vectors = 1 if cluster.is_group else STREAM_VECTORS  # a transform needs registers for a tile
    return None, 1, min(vectors * lanes, extents[vector])


def is_transposed(
    cluster: Cluster,
    vector: int,
    unroll: int | None,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> bool:
    """Whether the tiles of a pointwise cluster are squares of two loops, in both orders."""
    if unroll is None or any(s.reduction for s in cluster.statements):
        return False
    strides = {s.name: compute_strides(s, arrays, storages) for s in cluster.statements}
    return find_crossing_loop(cluster, vector, strides) == unroll


def choose_pointwise_order(
    cluster: Cluster,
    loops: Sequence[int],
    sizes: Table[int, int],
    vector: int,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> tuple[int, ...]:
    """The loops by how far they move through what is read, furthest first; tiled ones last.

    Where reads and writes disagree, long runs are worth more to reads, which are waited for: a copy
    of [8, 512, 64, 64] floats to [8, 64, 512, 64] goes at 18 GB/s in the order of the writes, and
    at 23 in that of the reads.
    """
    steps = [
        {d: access.steps[loop[s.name]] or 0 for d, loop in enumerate(cluster.shared)}
        for s in cluster.statements
        for access in compute_strides(s, arrays, storages)
        if not (access.is_write or cluster.is_group)
    ]
    outer = sorted(
        (d for d in loops if d not in sizes),
        key=lambda d: -max((step[d] for step in steps), default=0),
    )
    return (*outer, *(d for d in sizes if d != vector), vector)


def choose_blocks(
    cluster: Cluster,
    vector: int,
    unroll: int | None,
    height: int,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> dict[int, int]:
    """How far to go along the rows that a transpose reads, in elements: some squares."""
    if unroll is None or cluster.extents[unroll] <= height:
        return {}
    if not is_transposed(cluster, vector, unroll, arrays, storages):
        return {}
    size = min(arrays[load.array].dtype.itemsize for s in cluster.statements for load in s.loads)
    squares = max(1, min(ROW_BYTES // size, cluster.extents[unroll]) // height)
    return {unroll: squares * height}
