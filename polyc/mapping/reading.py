"""What a cluster's schedule says of its tiles: the costs, the layouts and the search ask for it."""

from __future__ import annotations

from dataclasses import dataclass

from polyc.schedule.cluster import Cluster
from polyc.schedule.counting import Collapse
from polyc.schedule.directives import Order, Run, Split
from polyc.schedule.initial import InitialLoop, InitialLoops, Key
from polyc.schedule.keeping import Pack
from polyc.schedule.names import split_primes
from polyc.schedule.schedule import Schedule
from polyc.schedule.threads import Use
from polyc.target.instructions.matrices import MATRICES

Tile = tuple[int | None, int, int]
"""(loop to unroll, its tile, the vector loop's tile in elements)."""


def read_vector(schedule: Schedule, named: InitialLoops) -> tuple[int | None, int]:
    """(the shared loop of a cluster that runs in lanes, its tile); (None, 1) if there is none."""
    found = _running("vector", schedule, named)
    if found is None:
        return None, 1
    d, loop = found
    sizes = _sizes(schedule, named, loop)
    return d, sizes[0] if sizes else _only(named).extents[d]


def read_tile(schedule: Schedule, named: InitialLoops) -> Tile:
    """The register tile that a strategy has put into a cluster's schedule."""
    vector, width = read_vector(schedule, named)
    found = _running("unroll", schedule, named) if vector is not None else None
    found = found or _find_rows_of_matrices(schedule, named)
    if found is None:
        return None, 1, width
    d, loop = found
    sizes = _sizes(schedule, named, loop)
    return d, sizes[-1] if sizes else _only(named).extents[d], width


@dataclass(frozen=True)
class Grouped:
    """A loop of a statement's own of which an instruction takes `size` iterations in each lane.

    words: how many times as many one takes that multiplies matrices, whose result is a tile; 0 for
    another.
    """

    instruction: str
    statement: str
    position: int
    size: int
    words: int = 0


def read_grouped(schedule: Schedule, named: InitialLoops) -> Grouped | None:
    """The loop whose iterations an instruction takes together."""
    for directive in schedule.directives:
        if isinstance(directive, Use) and (loops := _outermost(directive, named)):
            loop = loops[-1]  # the terms of a word are innermost
            cut = _sizes(schedule, named, loop)
            size = cut[-1] if cut else loop.extent
            if size is not None:
                around = cut[-2] if len(cut) > 1 else loop.extent
                words = (around or 0) // size if _multiplies_matrices(directive) else 0
                return Grouped(directive.instruction, *loop.key, size, words)
    return None


def _multiplies_matrices(use: Use) -> bool:
    return use.instruction in (row.name for row in MATRICES)


def _find_rows_of_matrices(
    schedule: Schedule, named: InitialLoops
) -> tuple[int, InitialLoop] | None:
    """The innermost shared loop over rows of an instruction for matrices, and its position."""
    shared = _shared(named)
    for directive in schedule.directives:
        if isinstance(directive, Use) and _multiplies_matrices(directive):
            vector, _ = read_vector(schedule, named)
            found = [(shared[n.key], n) for n in _outermost(directive, named) if n.key in shared]
            return next(((d, loop) for d, loop in reversed(found) if d != vector), None)
    return None


def read_packed(schedule: Schedule) -> tuple[str, ...]:
    """The arrays that are read as packed copies."""
    packed = (d.arrays for d in schedule.directives if isinstance(d, Pack))
    return tuple(name for arrays in packed for name in arrays)


def read_order(schedule: Schedule, named: InitialLoops) -> tuple[int, ...]:
    """The order of a cluster's shared loops, those that run once first; () if it is not given."""
    shared = _shared(named)
    for directive in schedule.directives:
        if isinstance(directive, Order):
            loops = [loop for name in directive.loops for loop in named.find(name)]
            found = [shared[loop.key] for loop in loops if loop.key in shared]
            if found and len(found) == len(shared):
                count = len(_only(named).shared)
                return (*(d for d in range(count) if d not in found), *found)
    return ()


def read_rows(schedule: Schedule, named: InitialLoops) -> tuple[int, ...]:
    """The shared loops of a cluster that run as one; () if each runs by itself."""
    shared = _shared(named)
    for directive in schedule.directives:
        if isinstance(directive, Collapse):
            loops = [loop for name in directive.loops for loop in named.find(name)]
            if loops and all(loop.key in shared for loop in loops):
                return tuple(shared[loop.key] for loop in loops)
    return ()


def _only(named: InitialLoops) -> Cluster:
    (cluster,) = named.clusters
    return cluster


def _shared(named: InitialLoops) -> dict[Key, int]:
    """The shared loops of a cluster that do not run once, by what they are found by."""
    cluster = _only(named)
    loops = {d: named.shared(cluster, d) for d in range(len(cluster.shared))}
    return {loop.key: d for d, loop in loops.items() if loop}


def _running(kind: str, schedule: Schedule, named: InitialLoops) -> tuple[int, InitialLoop] | None:
    """A shared loop that is run in a way, and its position."""
    shared = _shared(named)
    for directive in schedule.directives:
        if isinstance(directive, Run) and directive.kind == kind:
            for loop in _outermost(directive, named):
                if loop.key in shared:
                    return shared[loop.key], loop
    return None


def _sizes(schedule: Schedule, named: InitialLoops, loop: InitialLoop) -> list[int]:
    """The sizes of the tiles that a loop is cut into, large ones first."""
    return [
        directive.size
        for directive in schedule.directives
        if isinstance(directive, Split) and loop in _outermost(directive, named)
    ]


def _outermost(directive: Run | Split | Use, named: InitialLoops) -> list[InitialLoop]:
    """The loops before anything is cut that a directive names, or parts of them."""
    return [loop for name in directive.loops for loop in named.find(split_primes(name)[0])]
