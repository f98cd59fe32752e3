"""Columns: statements that walk a shared loop with unit step, and reduce across it.

    y[j] = sum of x[i, j] over i          the sum of each column, the softmax of each column, …

A strip of columns is worked on at a time, as wide as what the statements keep for it stays in the
first-level cache: memory is then read in long runs. Some rows at a time, so that accumulators are
loaded and stored once for all of them:

    split j 4096 | split j' 32 | vector j'' | sink j' j'' | split i 8 | unroll i' | sink i'
    | parallel j | keep all at j

    j ─ keep ─ i ─ j' ─ j'' ─ i' ─ sum       accumulators of one strip
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as Table
from math import prod

from polyc.mapping.cpu.strategies.tiles import cut, cut_all, fits, put_in_order, run_and_keep
from polyc.mapping.cpu.vector_loop import is_whole
from polyc.mapping.reading import Tile
from polyc.memory.strides import Strides, accesses
from polyc.promote.local_arrays import LARGEST_LOCAL
from polyc.schedule.cluster import MANY_ITERATIONS, Cluster
from polyc.schedule.directives import Run, Sink
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.scop.scop import Array
from polyc.target.machine import Target

ROWS = 8
"""Rows added at a time. 4096 x 4096 floats on one core, with 1, 2, 4 and 8 rows at a time: 21, 25,
28 and 29 GB/s; in strips of 1, 4, 8 and 16 KiB, 8 rows at a time: 8, 20, 25 and 29."""

VECTORS = 2
"""Vectors at a time of a wider strip."""

NARROWEST = 4
"""Vectors of the narrowest strip: memory is read in runs of no less."""


def is_by_columns(cluster: Cluster) -> bool:
    """Whether a cluster with a vector loop works by columns: it computes more than pointwise."""
    if cluster.has_reuse or cluster.is_group:
        return False
    return any(s.reduction or not is_whole(s, cluster) for s in cluster.statements)


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


def schedule_columns(
    cluster: Cluster,
    named: InitialLoops,
    order: Sequence[int],
    vector: int,
    strip: int,
    parallel: int,
    arrays: Table[str, Array],
    target: Target,
) -> Schedule:
    """The shared loops in their order, the strips last; then how a strip is walked."""
    width, rows = choose_walk(strip, choose_lanes(cluster, arrays, target), target)
    loops, names, steps = put_in_order(cluster, named, order)
    outer, points = dict(names), []
    if vector in names:
        # Strips that hold all are said all the same: constants lie as strips need them.
        whole = fits(loops[vector].extent, min(strip, width))
        cuts, (outer[vector], within) = cut(names[vector], None, None if whole else strip)
        more, (vectors, lanes) = cut(within, strip, None if whole else width)
        points = [name for name in (vectors, lanes) if name]
        steps += [*cuts, *more, Run("vector", (lanes,)), Sink(tuple(points))]
    steps += _unroll_rows(cluster, named, rows)
    threads = [outer[d] for d in [*order][:parallel] if outer.get(d)]
    steps += run_and_keep(threads, [name for name in outer.values() if name])
    return Schedule(tuple(steps))


def choose_walk(strip: int, lanes: int, target: Target) -> tuple[int, int]:
    """(elements in a vector loop, rows at a time of a reduction).

    A narrow strip as a whole, with accumulators in registers; a wide one some vectors at a time.
    Either way some 16 vectors are loaded between two jumps. Several rows at a time that share a
    page would keep it from being fetched ahead: 64 MB in rows of 1 KiB go at 33 GB/s into
    registers, and at 5 by 8 rows at a time.
    """
    vectors = -(-strip // lanes)
    if vectors <= target.vectors.registers // 2:
        return strip, max(1, 2 * ROWS // vectors)
    return VECTORS * lanes, ROWS


def _unroll_rows(cluster: Cluster, named: InitialLoops, rows: int) -> list[AnyDirective]:
    """So many rows of each reduction at a time, innermost: accumulators are loaded once for all."""
    tiles: dict[int, list[InitialLoop]] = {}
    for s in cluster.statements:
        taken = cluster.shared_positions(s)
        own = [p for p in range(len(s.iterators)) if p not in taken]
        loop = named.own(s, own[-1]) if s.reduction and own else None
        if loop:
            size = min(rows, s.estimated_extents[own[-1]])
            tiles.setdefault(size, []).append(loop)
    steps: list[AnyDirective] = []
    for size, loops in tiles.items():
        cuts, inner = cut_all(named, loops, size)
        steps += [*cuts, Run("unroll", inner), Sink(inner)]
    return steps
