"""Which strategy a cluster is mapped by, and its sizes; by what the iterators index, never by name.

* *contraction*, for reductions with reuse: the vector loop walks one operand with unit step,
  another loop is unrolled so that this operand's registers are used again, and their tile of
  accumulators stays in registers while the reduction loops run inside;
* *pointwise*: the same without reduction; only the vector loop is tiled, or, where some accesses
  are across it, a square of two loops that is transposed in registers;
* *transform*, for a group of statements with small loops of their own: these are unrolled, the
  vector loop is the innermost, and what the statements hand each other stays in registers;
* *columns*, for reductions without reuse across a loop with unit step: a strip of it is the tile;
* *rows*: shared outer loops run in parallel, each statement vectorises an inner loop of its own.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import ceil, prod

import numpy as np

from polyc.mapping.columns import Columns, choose_columns, choose_lanes, is_by_columns
from polyc.mapping.loop_order import choose_order
from polyc.mapping.mapping import Mapping
from polyc.mapping.parameters import Parameters
from polyc.mapping.pointwise import STREAM_VECTORS, choose_blocks, choose_pointwise_order
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.memory.vector_loop import choose_inner_loop
from polyc.poly.affine import box_extents
from polyc.schedule.cluster import MANY_ITERATIONS, SMALL_WORK, Cluster
from polyc.schedule.schedule import OuterBand
from polyc.scop.scop import Array, Statement
from polyc.target.machine import Target

ROW_VECTORS = 4
"""Vectors of a row that are reduced side by side: an addition takes 3 or 4 cycles."""


def choose_mapping(
    cluster: Cluster,
    band: OuterBand,
    parameters: Parameters,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
) -> Mapping:
    """The strategy that fits the cluster, with its sizes."""
    vector, (unroll, height, width) = parameters.vector, parameters.tile
    work = sum(prod(box_extents(s.domain)) for s in cluster.statements)
    blocks: dict[int, int] = {}
    columns: Columns | None = None
    inner = {s.name: (_by_stride(s, arrays, storages), 0) for s in cluster.prelude}
    if vector is None:
        order = band.loops
        used = set(order)
        for s in cluster.statements:
            inner[s.name] = _inner_vector(s, cluster, used, arrays, storages, target)
        sizes: dict[int, int] = {}
        strategy = "rows"
    else:
        sizes = {vector: width}
        if unroll is not None:
            sizes[unroll] = height
        if is_by_columns(cluster):
            strategy = "columns"
            order = (*(d for d in band.loops if d != vector), vector)
            columns = choose_columns(width, choose_lanes(cluster, arrays, target), target)
        elif any(s.reduction for s in cluster.statements):
            strategy = "contraction"
            order = choose_order(cluster, band.loops, vector, sizes, arrays, storages, target)
        else:
            strategy = "transform" if cluster.is_group else "pointwise"
            order = choose_pointwise_order(cluster, band.loops, sizes, vector, arrays, storages)
            blocks = choose_blocks(cluster, unroll, height, arrays)
        order = parameters.order or order
    return Mapping(
        strategy,
        tuple(order),
        sizes,
        vector,
        unroll,
        _count_parallel(cluster, band, order, {**sizes, **blocks}, work),
        inner,
        blocks,
        columns,
    )


def _count_parallel(
    cluster: Cluster, band: OuterBand, order: tuple[int, ...], sizes: Table[int, int], work: int
) -> int:
    """How many leading loops to run on threads: enough for balance, none for little work."""
    if work < SMALL_WORK:
        return 0
    count, iterations = 0, 1
    for d in order:
        if d not in band.coincident or iterations >= 4 * MANY_ITERATIONS:
            break
        count += 1
        iterations *= ceil(cluster.extents[d] / sizes.get(d, 1))
    return count if iterations > 1 else 0


def _by_stride(
    s: Statement, arrays: Table[str, Array], storages: Table[str, Storage]
) -> tuple[str, ...]:
    """The iterators of a statement, those that move furthest through what it writes first."""
    steps = compute_strides(s, arrays, storages)[0].steps
    order = sorted(range(len(steps)), key=lambda p: -(steps[p] or 0))
    return tuple(s.iterators[p] for p in order)


def _inner_vector(
    s: Statement,
    cluster: Cluster,
    used: set[int],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
) -> tuple[tuple[str, ...], int]:
    """(the iterator to end with, vector tile) for a statement's own loops; () if there is none."""
    taken = {cluster.shared[d][s.name] for d in used}
    strides = compute_strides(s, arrays, storages)
    lanes = min(target.lanes(np.dtype(arrays[a.array].dtype)) for a in strides)
    best, _ = choose_inner_loop(s, taken, strides)
    if best is None:
        return ((), 0)
    extent = box_extents(s.domain)[best]
    if extent <= target.registers // 2 * lanes:  # the whole row stays in registers
        return ((s.iterators[best],), extent)
    vectors = ROW_VECTORS if strides[0].steps[best] == 0 else STREAM_VECTORS
    return ((s.iterators[best],), vectors * lanes)
