"""Loops of which data picks an iteration: what is written where an index says.

    t[i, j] add= p[k] == i ? u[k, j] : 0        i in 0 .. 500, k in 0 .. 2000

As sets have it, every position looks at every update. But where the loop over i runs inside of the
one over k, and in it all that moves with i is the question, the answer is known before it, and one
iteration is left of it (`codegen/bound_by_data.py`): each update costs what it writes.

    split i 63 | parallel i | distribute j i' | order t_update.k t_update.i' t_update.j
    | split j 64 | vector j' | keep all at i

Threads have positions of their own, and each looks at all updates, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from polyc.mapping.cpu.strategies.pointwise import STREAM_VECTORS
from polyc.mapping.cpu.strategies.tiles import fits
from polyc.poly.affine import moves
from polyc.schedule.cluster import MANY_ITERATIONS, SMALL_WORK, Cluster
from polyc.schedule.directives import Distribute, Order, Run, Split
from polyc.schedule.initial import InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside, short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.scop.expr import Expr, loads
from polyc.scop.picks import find_picks
from polyc.scop.scop import Statement
from polyc.target.machine import Target


@dataclass(frozen=True)
class Picked:
    """The update of a cluster of which data picks iterations.

    picked: the positions of its iterators that data decides; asked: those with which it changes
    what is picked.
    """

    update: Statement
    picked: frozenset[int]
    asked: frozenset[int]


def find_picked(cluster: Cluster) -> Picked | None:
    """The update, of a cluster that has one, and nothing else that is summed up."""
    updates = [s for s in cluster.statements if s.reduction]
    if len(updates) != 1 or cluster.is_group or cluster.summed:
        return None
    (update,) = updates
    found = list(_list_picks(update))
    shared = cluster.shared_positions(update)
    if not found or not all(position in shared for position, _ in found):
        return None
    asked = frozenset(
        p
        for _, place in found
        for load in loads(place)
        for p, column in enumerate(update.columns[1 + update.loads.index(load)])
        if moves(column)
    )
    picked = frozenset(position for position, _ in found)
    return None if picked & asked else Picked(update, picked, asked)


def schedule_picked(cluster: Cluster, named: InitialLoops, one: Picked, target: Target) -> Schedule:
    """The loops of positions around everything, those of updates around what they pick."""
    update = one.update
    at = {loop[update.name]: d for d, loop in enumerate(cluster.shared)}
    loops = {p: loop for p, d in sorted(at.items()) if (loop := named.shared(cluster, d))}
    first = min(one.picked)
    outer = [p for p in loops if p < first]
    rest = [p for p in loops if p >= first]
    steps: list[AnyDirective] = []

    # Threads have outer loops, or blocks of what is picked.
    names = {p: named.spell([loop])[0] for p, loop in loops.items()}
    block = _choose_block(one, [cluster.extents[at[p]] for p in outer], first)
    parallel = [names[p] for p in outer] if block else []
    cut = block > 0 and first in loops and not fits(loops[first].extent, block)
    if cut:
        steps.append(Split((names[first],), block))
        parallel.append(names[first])
        names[first] = inside(names[first])
    if parallel:
        steps.append(Run("parallel", tuple(parallel)))

    # From here on each statement has loops of its own.
    def own(s: Statement, p: int) -> str:
        name = f"{short(s.name)}.{loops[p].name}"
        return inside(name) if cut and p == first else name

    if len(cluster.statements) > 1:
        steps += [Distribute((names[p],)) for p in reversed(rest)]
    updates = [f"{short(update.name)}.{loop.name}" for loop in named.alone(cluster, update)]
    asked = [p for p in rest if p in one.asked]
    picked = [p for p in rest if p in one.picked]
    alike = [p for p in rest if p not in one.asked and p not in one.picked]
    if updates and rest:
        steps.append(Order((*updates, *(own(update, p) for p in (*asked, *picked, *alike)))))
    if rest:
        last = rest[-1]
        chosen = [s for s in cluster.statements if s is not update or last in alike]
        lanes = min(target.lanes(np.dtype(s.value.dtype)) for s in cluster.statements)
        tiles = lanes * STREAM_VECTORS
        runs = tuple(own(s, last) for s in chosen)
        if len(chosen) == len(cluster.statements) and "." not in names[last]:
            runs = (names[last],)
        if runs and ((cut and last == first) or not fits(loops[last].extent, tiles)):
            steps.append(Split(runs, tiles))
            runs = tuple(map(inside, runs))
        steps += [Run("vector", runs)] if runs else []
    steps.append(Keep(None, at=parallel[-1] if parallel else ""))
    return Schedule(tuple(steps))


def _choose_block(one: Picked, outer: Sequence[int], first: int) -> int:
    """Positions that a thread has at a time; 0 where there is little to do."""
    extents = one.update.estimated_extents
    if prod(n for p, n in enumerate(extents) if p not in one.picked) < SMALL_WORK:
        return 0
    blocks = ceil(MANY_ITERATIONS / 2 / max(1, prod(outer)))
    return max(1, ceil(extents[first] / blocks))


def _list_picks(update: Statement) -> Iterator[tuple[int, Expr]]:
    """(the iterator that data picks, what it is compared with), where others add nothing."""
    for position, place in find_picks(update).items():
        if any(loads(place)):
            yield position, place
