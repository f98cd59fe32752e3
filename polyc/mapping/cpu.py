"""Mapping to a CPU: a cluster's schedule tree, tiled and marked as its `Mapping` says.

      band outer tiles     parallel
      └ scope              what lives inside one tile: accumulators, rows
        └ sequence
          ├ init   ─ unroll u ─ vector v
          ├ update ─ band reductions ─ unroll u ─ vector v
          └ finish ─ unroll u ─ vector v

That is a contraction. A pointwise cluster has no reductions, and tiles the vector loop only, or,
to transpose, a second loop as well, with a band of larger blocks around these tiles; the
statements of a transform have small loops of their own, all unrolled; in rows each statement has a
vector loop of its own instead of a shared one.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from functools import reduce

import islpy as isl

from polyc.mapping.columns import mark_column
from polyc.mapping.mapping import Mapping
from polyc.poly.tree import (
    BAND,
    FILTER,
    LEAF,
    drop_idle_loops,
    edit_leaf_bands,
    make_atomic,
    mark_members,
    single_statement,
    tile,
)
from polyc.schedule.cluster import Cluster
from polyc.schedule.schedule import OuterBand, build_tree, outer_band
from polyc.scop.scop import Statement

LOOP_MARKS = frozenset({"parallel", "vector", "unroll"})
"""The marks that say how the loop below them is to run."""


def map_to_cpu(cluster: Cluster, band: OuterBand, mapping: Mapping) -> isl.Schedule:
    """The schedule tree of a cluster with the mapping applied: tiled, sunk and marked."""
    innermost = {name: iterators for name, (iterators, _) in mapping.inner.items()}
    schedule = build_tree(cluster, band, mapping.order, innermost)
    node = outer_band(schedule, cluster)
    if mapping.order and mapping.vector is not None:
        sizes = {**mapping.sizes, **mapping.blocks}
        node = tile(node, [sizes.get(d, 1) for d in mapping.order])
        if mapping.blocks:
            inside = tile(node.child(0), [mapping.sizes.get(d, 1) for d in mapping.order])
            node = make_atomic(inside.child(0).band_sink().parent()).parent()
        else:
            node = node.child(0).band_sink().parent()
    if mapping.order:
        node = make_atomic(node)  # else isl may print the scope once for each statement
        tiles = node.child(0) if mapping.blocks else node
        node = tiles.child(0).insert_mark(isl.Id("scope")).parent()
        node = node.parent() if mapping.blocks else node
        marks = ["parallel" if k < mapping.parallel else "" for k in range(len(mapping.order))]
        node = mark_members(node, marks)
    else:
        node = node.insert_mark(isl.Id("scope"))
    schedule = edit_leaf_bands(node.get_schedule(), lambda band: _mark_leaf(band, cluster, mapping))
    if mapping.strategy == "transform":
        schedule = _unroll_inner(schedule, cluster)
    return drop_idle_loops(schedule, LOOP_MARKS)


def join_trees(
    trees: Sequence[isl.Schedule],
    loops: Sequence[Table[str, int]],
    sizes: Sequence[int],
    statements: Sequence[Statement],
) -> isl.Schedule:
    """Trees in sequence, once for each tile of loops that all of their statements share.

    A, B  ->  band T*floor(i/T)  (parallel) ─ mark tile ─ sequence { A, B }

    loops[k] gives the position of a statement's iterator for loop k, sizes[k] the tile T. What the
    parts hand each other lives at the `tile` mark.
    """
    schedule = reduce(isl.Schedule.sequence, trees)
    if not loops:
        return schedule
    rows = []
    for loop, size in zip(loops, sizes, strict=True):
        parts = []
        for s in statements:
            i = s.iterators[loop[s.name]]
            parts.append(f"{s.name}[{', '.join(s.iterators)}] -> [({size}*floor({i}/{size}))]")
        rows.append(f"{{ {'; '.join(parts)} }}")
    node = schedule.get_root().child(0)
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(f"[{', '.join(rows)}]"))
    node = make_atomic(node)
    node = node.child(0).insert_mark(isl.Id("tile")).parent()
    return mark_members(node, ["parallel"] * len(loops)).get_schedule()


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
    if mapping.columns is not None and name in cluster.names:
        return mark_column(band, name, cluster, mapping.columns)
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
