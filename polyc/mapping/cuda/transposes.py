"""Transposes by way of shared memory: what is read along one loop, and written along another.

    y[j, i] = f(x[i, j])

    stage x by i j | order i j | split i 32 | split j 32 | block i j | distribute j' i' | …

    block i, j
    └ keep                           y_tile0[i, j]: 32 x 32, swizzled
      ├ y_tile0  thread ─ y_tile0[i, j] = x[i, j]          a warp along j
      └ y        thread ─ y[j, i] = f(y_tile0[i, j])       a warp along i

Both accesses to memory are of neighbours then. A warp meets a row of the tile on the one side and a
column on the other; the swizzle puts either into 32 banks. The copy is a statement like any other.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass

from polyc.loopnest.swizzle import Swizzle
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.mapping.cuda.coordinates.stages import find_turned
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import Stage
from polyc.schedule.directives import Distribute, Order, Run, Split
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside, short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Swizzled, Threads
from polyc.scop.expr import Load
from polyc.scop.scop import Array

SIDE = 32
"""Of a tile: a warp has a row of it."""

DOWN = 8
"""Warps of a block, each with every eighth row."""

DIAGONAL = Swizzle(bits=5, to=0, source=5)
"""Element j of row i at place j xor i, so that a column is in 32 banks as well."""


@dataclass(frozen=True)
class Transpose:
    """A statement's loops along which it writes, and reads `loads`, with unit step."""

    writes: int
    reads: int
    loads: tuple[Load, ...]


def find_transpose(
    cluster: Cluster, arrays: Table[str, Array], storages: Table[str, Storage]
) -> Transpose | None:
    """The transpose that a cluster is; None if it is more than that, or too small for tiles."""
    if len(cluster.statements) != 1 or cluster.has_reuse:
        return None
    (s,) = cluster.statements
    if s.reduction or len(cluster.shared) < len(s.iterators):
        return None
    if any(load.dynamic or load.array == s.array for load in s.loads):
        return None
    written, *_ = compute_strides(s, arrays, storages)
    sizes = s.estimated_extents
    large = [p for p, n in enumerate(sizes) if n >= SIDE]
    writes = next((p for p in large if written.steps[p] == 1), None)
    if writes is None:
        return None
    turned = {p: find_turned(s, writes, p, arrays, storages) for p in large if p != writes}
    reads = max(turned, key=lambda p: len(turned[p]), default=None)
    if reads is None or not turned[reads]:
        return None
    return Transpose(writes, reads, turned[reads])


def schedule_transpose(start: Rewritten, found: Transpose) -> Schedule:
    """The schedule of a transpose."""
    (cluster,) = start.clusters
    (s,) = cluster.statements
    names = {
        p: start.named.spell([loop])[0]
        for p in range(len(s.iterators))
        if (loop := start.named.own(s, p))
    }
    i, j = names[found.writes], names[found.reads]
    stage = Stage(tuple(dict.fromkeys(load.array for load in found.loads)), i, j)
    staged = rewrite(start, Schedule((stage,)))
    around = [name for p, name in names.items() if p not in (found.writes, found.reads)]
    grid = (*around, i, j)
    steps: list[AnyDirective] = [stage, Split((i,), SIDE), Split((j,), SIDE)]
    steps += [Order((*grid, inside(i), inside(j))), Run("block", grid)]
    steps += [Keep(None, "shared", j), Distribute((inside(j), inside(i)))]
    copies = [short(x.name) for x in staged.statements[:-1]]
    for statement in (*copies, short(s.name)):
        slow, fast = (i, j) if statement in copies else (j, i)
        steps += _share(f"{statement}.{inside(slow)}", f"{statement}.{inside(fast)}")
    swizzle = (DIAGONAL.bits, DIAGONAL.to, DIAGONAL.source)
    return Schedule((*steps, *(Swizzled(name, *swizzle) for name in staged.made)))


def _share(slow: str, fast: str) -> list[AnyDirective]:
    """A warp along one loop, and warps along the other."""
    return [
        Split((slow,), DOWN),
        Order((inside(slow), fast, slow)),
        Threads((inside(slow), fast)),
        Run("unroll", (slow,)),
    ]
