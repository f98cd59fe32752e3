"""Fills as parts of their own, for a kernel in tiles: each tile fills its share of a frame.

    F[0, :] = -inf;  F[:, 0] = -inf        for c step 1:                     # parallel
    for c: F[c, 1:, 1:] = x[c]        ->     F = -inf around x[c]            # F is local
    for c: y[c] = windows of F[c]            y[c] = windows of F

A cluster runs its fills before all else, for the whole array. Where what it writes is handed on
tile by tile, they run along with it, in the loops over dimensions of the array that they fill as
far as it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from polyc.mapping.cpu.strategies.rows import order_fill, order_fills
from polyc.mapping.open_cluster import list_touched
from polyc.mapping.signature import sign_cluster
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.schedule.align import align_writes
from polyc.schedule.cluster import Cluster, alone
from polyc.schedule.initial import InitialLoops
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array, Statement

Loops = Sequence[Mapping[str, int]]
"""As `StoredKernel.loops`."""


def is_frame(kernel: StoredKernel, handed: Collection[str]) -> bool:
    """Whether it hands on what fills stand around, and has no tiles of sums that have to fit."""
    parts = [part.cluster for part in kernel.parts]
    sums = any(s.reduction for part in parts for s in part.statements)
    return not sums and any(s.array in handed for part in parts for s in part.prelude)


def set_fills_free(part: StoredCluster, arrays: Mapping[str, Array]) -> tuple[StoredCluster, ...]:
    """The cluster behind its fills, each of them a cluster."""
    cluster = part.cluster
    if not cluster.prelude:
        return (part,)
    orders = order_fills(cluster, part.named, arrays, part.storages).directives
    kept = Schedule(tuple(d for d in part.schedule.directives if d not in orders))
    rest = replace(part, cluster=replace(cluster, prelude=()), schedule=kept)
    return *(_store_fill(s, part, arrays) for s in cluster.prelude), _store(rest, arrays)


def _store_fill(s: Statement, part: StoredCluster, arrays: Mapping[str, Array]) -> StoredCluster:
    """A fill of what a part completes, one loop in the other as the array is stored."""
    cluster = alone(s)
    order = order_fill(s, InitialLoops((cluster,)), arrays, part.storages)
    return _store(replace(part, cluster=cluster, schedule=order, key="", gain=0.0), arrays)


def _store(part: StoredCluster, arrays: Mapping[str, Array]) -> StoredCluster:
    """The part with what its cluster touches, and no more."""
    names = list_touched(part.cluster)
    return replace(
        part,
        arrays=names,
        storages={name: part.storages[name] for name in names},
        private=part.private.intersection(names),
        signature=sign_cluster(part.cluster, names, arrays),
    )


def along_with_fills(loops: Loops, clusters: Sequence[Cluster]) -> tuple[Mapping[str, int], ...]:
    """Those of the loops that fills share with what completes their arrays, for these as well."""
    statements = [s for cluster in clusters for s in cluster.statements]
    last = {s.array: s for s in statements}
    missing = [s for s in statements if any(s.name not in loop for loop in loops)]
    return tuple(found for loop in loops if (found := _extend(loop, missing, last)) is not None)


def _extend(
    loop: Mapping[str, int], fills: Sequence[Statement], last: Mapping[str, Statement]
) -> Mapping[str, int] | None:
    """The loop for fills as well; None if one of them has none that fills as far."""
    extended = dict(loop)
    for fill in fills:
        whole = last[fill.array]
        along = loop[whole.name]
        position = align_writes(whole, fill).get(along)
        if position is None or fill.estimated_extents[position] != whole.estimated_extents[along]:
            return None
        extended[fill.name] = position
    return extended
