"""Rows: shared loops run on threads, and each statement has a loop of its own in SIMD lanes.

y[i, j] = softmax(x[i, j]) along j

parallel i | split j 64 | vector j' | keep all in place at i
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polyc.mapping.cpu.strategies.pointwise import STREAM_VECTORS
from polyc.mapping.cpu.strategies.tiles import cut_all
from polyc.mapping.cpu.vector_loop import choose_inner_loop
from polyc.memory.storage import Storage
from polyc.memory.strides import by_data, compute_strides
from polyc.schedule.cluster import Cluster
from polyc.schedule.directives import Order, Run
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.scop.scop import Array, Statement
from polyc.target.machine import Target

ROW_VECTORS = 4
"""Vectors of a row that are reduced side by side: an addition takes 3 or 4 cycles."""


def schedule_rows(
    cluster: Cluster,
    named: InitialLoops,
    parallel: int,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    target: Target,
) -> Schedule:
    """The shared loops as they stand, `parallel` of them on threads; then the rows."""
    loops = [named.shared(cluster, d) for d in range(len(cluster.shared))]
    threads = named.spell(loop for loop in loops[:parallel] if loop)
    steps: list[AnyDirective] = [Run("parallel", threads)] if threads else []
    tiles: dict[int, list[InitialLoop]] = {}
    for s in cluster.statements:
        found = _choose_vector(s, cluster, arrays, storages, target)
        loop = named.own(s, found[0]) if found else None
        if found is None or loop is None:
            continue
        rest = [own for own in named.alone(cluster, s) if own != loop]
        if rest and rest[-1].key[1] > loop.key[1]:
            steps.append(Order(tuple(named.spell([own])[0] for own in (*rest, loop))))
        tiles.setdefault(found[1], []).append(loop)
    for size, rows in tiles.items():
        cuts, inner = cut_all(named, rows, size)
        steps += [*cuts, Run("vector", inner)]
    last = named.spell([loop for loop in loops if loop][-1:])
    steps.append(Keep(None, at=last[0] if last else "", in_place=True))
    return Schedule(tuple(steps))


def order_fills(
    cluster: Cluster,
    named: InitialLoops,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> Schedule:
    """The loops of all fills of a cluster."""
    found = (order_fill(s, named, arrays, storages) for s in cluster.prelude)
    return sum(found, Schedule())


def order_fill(
    s: Statement,
    named: InitialLoops,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> Schedule:
    """The loops of a fill: those that move furthest through what is written outermost."""
    moves = compute_strides(s, arrays, storages)[0].steps
    order = sorted(range(len(moves)), key=lambda p: -(moves[p] or 0))
    loops = [loop for p in order if (loop := named.own(s, p))]
    if loops == sorted(loops, key=lambda loop: loop.key[1]):
        return Schedule()
    return Schedule((Order(tuple(named.spell([loop])[0] for loop in loops)),))


def _choose_vector(
    s: Statement,
    cluster: Cluster,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    target: Target,
) -> tuple[int, int] | None:
    """(the own iterator of a statement to end with, its vector tile), if there is one."""
    taken = cluster.shared_positions(s)
    strides = compute_strides(s, arrays, storages)
    lanes = min(target.lanes(np.dtype(arrays[a.array].dtype)) for a in strides)
    best, _ = choose_inner_loop(s, taken, strides)
    if best is None:
        return None
    extent = s.estimated_extents[best]
    if best in by_data(s):  # written out for each lane, so that no more of them run side by side
        return best, min(lanes, extent)
    if extent <= target.vectors.registers // 2 * lanes:  # the whole row stays in registers
        return best, extent
    vectors = ROW_VECTORS if strides[0].steps[best] == 0 else STREAM_VECTORS
    return best, vectors * lanes
