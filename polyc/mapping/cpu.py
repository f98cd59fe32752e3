"""Mapping to a CPU: which loops are tiled, run by threads, unrolled into registers, and vectorised.

Three strategies, chosen by what the iterators index, never by an operator's name:

* *contraction*, for reductions with reuse: the vector loop walks one operand with unit step,
  another loop is unrolled so that this operand's registers are used again, and their tile of
  accumulators stays in registers while the reduction loops run inside:

      band outer tiles     parallel
      └ scope              accumulators
        └ sequence
          ├ init   ─ unroll u ─ vector v
          ├ update ─ band reductions ─ unroll u ─ vector v
          └ finish ─ unroll u ─ vector v

* *pointwise*: the same without reduction; only the vector loop is tiled;
* *transform*, for a group of statements with small loops of their own: these are unrolled, the
  vector loop is the innermost, and what the statements hand each other stays in registers;
* *rows*: shared outer loops run in parallel, each statement vectorises an inner loop of its own.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from math import ceil, prod

import islpy as isl
import numpy as np

from polyc.memory.layout import Strides, compute_strides, worth
from polyc.memory.storage import Storage
from polyc.poly.affine import box_extents
from polyc.poly.tree import (
    BAND,
    FILTER,
    LEAF,
    edit_leaf_bands,
    make_atomic,
    mark_members,
    single_statement,
    tile,
)
from polyc.schedule.cluster import MANY_ITERATIONS, SMALL_WORK, Cluster
from polyc.schedule.schedule import OuterBand, build_tree, outer_band
from polyc.scop.scop import Array, Statement
from polyc.target.machine import Target

STREAM_VECTORS = 2
"""Vectors in a pointwise tile, so that two independent chains of operations overlap."""


@dataclass(frozen=True)
class Mapping:
    """The choices of a strategy, in terms of a cluster's shared loops.

    order: the shared loops, outermost first; sizes: their tile sizes (1: not tiled);
    parallel: how many leading loops run on threads; inner: for a statement, its inner loops in the
    order in which they are to end, and the tile size of the last one (0: not vectorised).
    """

    strategy: str
    order: tuple[int, ...]
    sizes: Table[int, int]
    vector: int | None
    unroll: int | None
    parallel: int
    inner: Table[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)

    def describe(self, cluster: Cluster) -> str:
        """One line for a human: `contraction: o/32 y x/14, unroll x, vector o, 2 parallel`."""
        names = cluster.statements[-1]

        def loop(d: int) -> str:
            return names.iterators[cluster.shared[d][names.name]]

        loops = [
            loop(d) + (f"/{self.sizes[d]}" if self.sizes.get(d, 1) > 1 else "") for d in self.order
        ]
        parts = [f"{self.strategy}: {' '.join(loops) or 'no shared loop'}"]
        if self.unroll is not None:
            parts.append(f"unroll {loop(self.unroll)}")
        if self.vector is not None:
            parts.append(f"vector {loop(self.vector)}")
        parts += [f"vector {s}.{loops_[-1]}" for s, (loops_, t) in self.inner.items() if t]
        parts.append(f"{self.parallel} parallel" if self.parallel else "one thread")
        return ", ".join(parts)


def choose_register_tile(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> tuple[int | None, int, int]:
    """(loop to unroll, its tile, the vector loop's tile in elements) for a contraction.

    Every tile that fits the registers is priced by `_tile_cost`; the cheapest wins.
    """
    update = next(s for s in cluster.statements if s.reduction)
    lanes = min(target.lanes(arrays[a.array].dtype) for a in strides[update.name])
    extent = cluster.extents[vector]
    walks = [a for a in strides[update.name][1:] if a.steps[cluster.shared[vector][update.name]]]
    candidates: list[tuple[float, int | None, int, int]] = []
    loops = [d for d in range(len(cluster.shared)) if d != vector and cluster.extents[d] > 1]
    for d in [None, *loops]:
        reused = d is None or all(a.steps[cluster.shared[d][update.name]] == 0 for a in walks)
        size = 1 if d is None else cluster.extents[d]
        for vectors in range(1, min(4, ceil(extent / lanes)) + 1):
            for u in range(1, size + 1):
                if u * vectors + vectors + 1 > target.registers:
                    break
                cost = _tile_cost(size, u, ceil(extent / lanes), vectors, reused)
                far = 1e-3 * (d is not None and d != loops[-1])
                candidates.append((cost + far, d, u, min(vectors * lanes, extent)))
    _, unroll, height, width = min(candidates, key=lambda c: c[0])
    return unroll, height, width


def _tile_cost(rows: int, u: int, columns: int, v: int, reused: bool) -> float:
    """Cycles per multiply-add of a `rows` x `columns` (in vectors) problem cut into u x v tiles.

    A tile needs u*v accumulators. Fewer than 8 of them leave the FMA pipe waiting for its own
    result (4 cycles of latency, two pipes). A row costs a broadcast from L1; a column a vector that
    streams from L2, once a tile if the rows use it again (`reused`). Border tiles are smaller.
    """

    def one(height: int, width: int) -> float:
        stalls = max(1.0, 8 / (height * width))
        return stalls * (1 + (1.5 / height if reused else 1.5) + 0.5 / width)

    total = 0.0
    for height, high in ((u, rows - rows % u), (rows % u, rows % u)):
        for width, wide in ((v, columns - columns % v), (columns % v, columns % v)):
            total += high * wide * one(height, width) if high * wide else 0.0
    return total / (rows * columns)


def choose_mapping(
    cluster: Cluster,
    band: OuterBand,
    vector: int | None,
    register_tile: tuple[int | None, int, int],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
) -> Mapping:
    """The strategy that fits the cluster, with its sizes."""
    unroll, height, width = register_tile
    work = sum(prod(box_extents(s.domain)) for s in cluster.statements)
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
        outer = [d for d in band.loops if d not in (vector, unroll)]
        batch = [d for d in outer if _is_leading(cluster, d)]
        rest = [d for d in outer if d not in batch]
        if any(s.reduction for s in cluster.statements):
            strategy = "contraction"
            order = (*batch, vector, *rest, *([unroll] if unroll is not None else []))
        else:
            strategy = "transform" if cluster.is_group else "pointwise"
            order = (*outer, vector)
    return Mapping(
        strategy,
        tuple(order),
        sizes,
        vector,
        unroll,
        _count_parallel(cluster, band, order, sizes, work),
        inner,
    )


def map_to_cpu(cluster: Cluster, band: OuterBand, mapping: Mapping) -> isl.Schedule:
    """The schedule tree of a cluster with the mapping applied: tiled, sunk and marked."""
    innermost = {name: iterators for name, (iterators, _) in mapping.inner.items()}
    schedule = build_tree(cluster, band, mapping.order, innermost)
    node = outer_band(schedule, cluster)
    if mapping.order and mapping.vector is not None:
        node = tile(node, [mapping.sizes.get(d, 1) for d in mapping.order])
        node = node.child(0).band_sink().parent()
    if mapping.order:
        node = make_atomic(node)  # else isl may print the scope once for each statement
        node = node.child(0).insert_mark(isl.Id("scope")).parent()
        marks = ["parallel" if k < mapping.parallel else "" for k in range(len(mapping.order))]
        node = mark_members(node, marks)
    else:
        node = node.insert_mark(isl.Id("scope"))
    schedule = edit_leaf_bands(node.get_schedule(), lambda band: _mark_leaf(band, cluster, mapping))
    return _unroll_inner(schedule, cluster) if mapping.strategy == "transform" else schedule


def _unroll_inner(schedule: isl.Schedule, cluster: Cluster) -> isl.Schedule:
    """Mark the bands of single statements, above their point loops, to be unrolled."""

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if node.get_type() != BAND or node.get_parent_type() != FILTER:
            return node
        name = single_statement(node)
        if name is None or name not in cluster.names or node.child(0).get_type() == LEAF:
            return node
        return mark_members(node, ["unroll"] * node.band_n_member())

    return schedule.get_root().map_descendant_bottom_up(visit).get_schedule()


def _mark_leaf(band: isl.ScheduleNode, cluster: Cluster, mapping: Mapping) -> isl.ScheduleNode:
    """Split a leaf's innermost band into marked loops."""
    name = single_statement(band)
    inner = mapping.inner.get(name) if name else None
    if inner is not None:
        _, size = inner
        if not size:
            return band
        count = band.band_n_member()
        last = band.band_split(count - 1).child(0) if count > 1 else band
        last = last.band_set_permutable(1)
        last = tile(last, [size]).child(0).insert_mark(isl.Id("vector")).parent()
        return last.parent() if count > 1 else last
    if mapping.vector is None or name not in cluster.names:
        return band
    marks = {mapping.vector: "vector", mapping.unroll: "unroll"}
    return mark_members(band, [marks.get(d, "") for d in mapping.order])


def _is_leading(cluster: Cluster, d: int) -> bool:
    """Whether a shared loop is the first of the statement's iterators: a batch dimension."""
    return all(loop == 0 for loop in cluster.shared[d].values())


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
    own = [p for p in range(len(s.iterators)) if p not in taken]
    strides = compute_strides(s, arrays, storages)
    extents = box_extents(s.domain)
    lanes = min(target.lanes(np.dtype(arrays[a.array].dtype)) for a in strides)
    best, best_worth = None, 0.3
    for p in own:
        if extents[p] < 4 or not _may_vectorise(s, p, strides):
            continue
        value = sum(worth(a, p) for a in strides) / len(strides)
        if value > best_worth:
            best, best_worth = p, value
    if best is None:
        return ((), 0)
    return ((s.iterators[best],), min(lanes, extents[best]))


def _may_vectorise(s: Statement, p: int, strides: tuple[Strides, ...]) -> bool:
    """Whether a loop of a statement carries nothing but a declared reduction, and may be innermost.

    A reduction keeps its order but for the lanes of a vector: only its last loop may be one.
    """
    written, extents = strides[0], box_extents(s.domain)
    if written.steps[p] == 0:
        later = range(p + 1, len(extents))
        return s.reduction is not None and all(written.steps[q] or extents[q] == 1 for q in later)
    return all(load.array != s.array for load in s.loads)
