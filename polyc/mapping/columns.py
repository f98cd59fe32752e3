"""Columns: statements that walk a shared loop with unit step, and reduce across it.

    y[j] = sum of x[i, j] over i          the sum of each column, the softmax of each column, …

A strip of columns is worked on at a time, as wide as what the statements keep for it stays in the
first-level cache: memory is then read in long runs. Some rows at a time, so that accumulators are
loaded and stored once for all of them:

    band  strips of j        parallel
    └ scope                  accumulators of one strip
      └ band  i/8
        └ band  j/32 in the strip
          └ vector  j mod 32
            └ unroll  i mod 8
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyc.mapping.parameters import Tile
from polyc.memory.strides import Strides, accesses
from polyc.poly.affine import box_extents
from polyc.poly.tree import BAND, mark_members, tile
from polyc.promote.local_arrays import LARGEST_LOCAL
from polyc.schedule.cluster import MANY_ITERATIONS, Cluster
from polyc.scop.scop import Array
from polyc.target.machine import Target

ROWS = 8
"""Rows added at a time. 4096 x 4096 floats on one core, with 1, 2, 4 and 8 rows at a time: 21, 25,
28 and 29 GB/s; in strips of 1, 4, 8 and 16 KiB, 8 rows at a time: 8, 20, 25 and 29."""

VECTORS = 2
"""Vectors at a time of a wider strip."""

NARROWEST = 4
"""Vectors of the narrowest strip: memory is read in runs of no less."""


@dataclass(frozen=True)
class Columns:
    """How a strip is walked: elements in a vector loop, and rows at a time of a reduction."""

    width: int
    rows: int


def is_by_columns(cluster: Cluster) -> bool:
    """Whether a cluster with a vector loop works by columns: it computes more than pointwise."""
    if cluster.has_reuse or cluster.is_group:
        return False
    count = len(cluster.shared)
    return any(s.reduction or len(s.iterators) > count for s in cluster.statements)


def choose_strip(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    private: Collection[str],
    target: Target,
) -> Tile:
    """The register tile of a cluster by columns: no unrolled loop, and the width of a strip."""
    extents = cluster.extents
    narrowest = NARROWEST * choose_lanes(cluster, arrays, target)
    kept, streamed = [], 0
    for name in {a.array for steps in strides.values() for a in steps}:
        moving = {
            d
            for s in cluster.statements
            for a in strides[s.name]
            for d, loop in enumerate(cluster.shared)
            if a.array == name and a.steps[loop[s.name]] != 0
        }
        size = arrays[name].bytes // prod(extents[d] for d in moving)  # bytes a column
        if name in private and size * narrowest <= LARGEST_LOCAL:
            kept.append(size if vector in moving else 0)
        else:
            streamed += arrays[name].bytes
    strip = min(target.l1d // 2 // max(1, sum(kept)), LARGEST_LOCAL // max([1, *kept]))
    if streamed <= target.l2:  # narrow strips cost nothing: as many as threads want
        others = prod(n for d, n in enumerate(extents) if d != vector)
        strip = min(strip, -(-extents[vector] * others // MANY_ITERATIONS))
    return None, 1, min(max(strip - strip % narrowest, narrowest), extents[vector])


def choose_lanes(cluster: Cluster, arrays: Table[str, Array], target: Target) -> int:
    """Lanes of the widest type that a cluster touches."""
    touched = {name for s in cluster.statements for name, _, _ in accesses(s)}
    return min(target.lanes(arrays[name].dtype) for name in touched)


def choose_columns(strip: int, lanes: int, target: Target) -> Columns:
    """A narrow strip as a whole, with accumulators in registers; a wide one some vectors at a time.

    Either way some 16 vectors are loaded between two jumps. Several rows at a time that share a
    page would keep it from being fetched ahead: 64 MB in rows of 1 KiB go at 33 GB/s into
    registers, and at 5 by 8 rows at a time.
    """
    vectors = -(-strip // lanes)
    if vectors <= target.registers // 2:
        return Columns(strip, max(1, 2 * ROWS // vectors))
    return Columns(VECTORS * lanes, ROWS)


def mark_column(
    points: isl.ScheduleNode, name: str, cluster: Cluster, columns: Columns
) -> isl.ScheduleNode:
    """own loops ─ points   ->   own loops/rows ─ points/width ─ vector points ─ unroll rows.

    `points` is a statement's innermost band, of which the last member walks the strip.
    """
    statement = cluster.statement(name)
    if statement.reduction and points.get_parent_type() == BAND:
        own = points.parent().band_set_permutable(1)
        count = own.band_n_member()
        taken = {loop[name] for loop in cluster.shared}
        sizes = box_extents(statement.domain)
        last_own = max(p for p in range(len(sizes)) if p not in taken)
        own = tile(own, [1] * (count - 1) + [min(columns.rows, sizes[last_own])])
        points = own.child(0).band_sink()
        points = mark_members(points.child(0), [""] * (count - 1) + ["unroll"]).parent()
    count = points.band_n_member()
    last = points.band_split(count - 1).child(0) if count > 1 else points
    last = tile(last.band_set_permutable(1), [columns.width])
    last = last.child(0).insert_mark(isl.Id("vector")).parent()
    return last.parent() if count > 1 else last
