"""Where the threads of a model must wait for one another: between launches, and inside kernels.

Launches that touch different memory, or only read the same, may run side by side: the branches of
an Inception module, the two expansions of SqueezeNet, which write different channels of one array.
So may the loops of a kernel that fill the frame of an array, compute its interior in full tiles,
and in partial ones. A barrier is due where that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.launches.access import Elements, LaunchAccess, add_elements, name_elements
from polyc.analysis.legality import instances
from polyc.analysis.steps import by_loop, in_any_step, in_earlier_steps
from polyc.analysis.timemap import Execution, compute_executions
from polyc.loopnest.nodes import Block, For, Kernel, Node, walk_nodes
from polyc.program.plan import Slot
from polyc.scop.scop import Scop
from polyc.types.ranges import Step

MOST_LAUNCHES = 64
"""The most launches side by side, so that all pairs of them can be compared in the proof; one more
barrier costs little beside them."""


def place_barriers(launches: Sequence[LaunchAccess], slots: Iterable[Slot]) -> frozenset[int]:
    """Positions of the launches that need a barrier in front of them.

    read x, write a | read x, write b | read a b, write y   ->   {2}

    There is one where branches begin or end: one inside of a branch is for its own launches.
    A launch needs one if since the last barrier something was written that it touches, or touched
    that it writes; be it an array, or memory that another array has had before. The launches are
    taken in their order, and no placement for that order has fewer (but for one behind each
    `MOST_LAUNCHES`); those of a loop over steps twice, in a step and in one after it.
    """
    since = _Since({slot.array: slot for slot in slots})
    pairs = enumerate(pairwise(launches), 1)
    barriers = {k for k, (last, launch) in pairs if launch.branches != last.branches}
    start = 0
    for step, group in by_loop(launches):
        positions = range(start, start + len(group))
        barriers |= since.walk(group, positions, barriers)
        if step:  # once more, as the next step sees it
            since.become_earlier(step)
            barriers |= since.walk(group, positions, barriers)
            since.leave(step)
        start = positions.stop
    return frozenset(barriers)


class _Since:
    """What has been read and written since the last barrier."""

    def __init__(self, places: Mapping[str, Slot]) -> None:
        self._places = places
        self._read: Elements = {}
        self._written: Elements = {}
        self._arrays: set[str] = set()
        self._launches = 0

    def walk(
        self, launches: Sequence[LaunchAccess], positions: Iterable[int], placed: Set[int]
    ) -> set[int]:
        """The launches that need a barrier in front, or have one among those `placed`."""
        found = set()
        for position, launch in zip(positions, launches, strict=True):
            reads, writes = name_elements(launch.reads), name_elements(launch.writes)
            if (
                position in placed
                or self._launches == MOST_LAUNCHES
                or _meet(reads, self._written)
                or _meet(writes, self._written)
                or _meet(writes, self._read)
                or _overlap(launch.arrays, self._arrays, self._places)
            ):
                found.add(position)
                self._read, self._written, self._arrays = {}, {}, set()
                self._launches = 0
            self._launches += 1
            add_elements(self._read, reads)
            add_elements(self._written, writes)
            self._arrays |= launch.arrays
        return found

    def become_earlier(self, step: Step) -> None:
        """All that was so far is of earlier steps, or before them."""
        for sets in (self._read, self._written):
            sets.update({a: in_earlier_steps(e, step) for a, e in sets.items()})

    def leave(self, step: Step) -> None:
        """The loop is over: what any of its steps may have touched."""
        for sets in (self._read, self._written):
            sets.update({a: in_any_step(e, step) for a, e in sets.items()})


def join_pieces(kernel: Kernel, scop: Scop, dependences: Dependences) -> Kernel:
    """The kernel with its independent loops in concurrent blocks; `scop` is what it executes.

    frame; parallel tiles; parallel rest; parallel totals  ->  {frame, tiles, rest}; totals

    Only the outermost loops are looked at, and only in kernels with parallel ones among them.
    """
    pieces = kernel.body.body
    shared = [_is_shared(piece) for piece in pieces]
    if len(pieces) < 2 or not any(shared) or kernel.body.locals:
        return kernel
    runs = [_executions(replace(kernel, body=Block((piece,))), scop) for piece in pieces]
    relations = [*maps(dependences.coincidence), *maps(dependences.reductions)]
    groups: list[list[int]] = []
    for k in range(len(pieces)):
        if groups and not any(_depends(runs[k], runs[j], relations) for j in groups[-1]):
            groups[-1].append(k)
        else:
            groups.append([k])
    body: list[Node] = []
    for group in groups:
        nodes = tuple(pieces[k] for k in group)
        joined = len(group) > 1 and any(shared[k] for k in group)
        body += [Block(nodes, concurrent=True)] if joined else nodes
    return replace(kernel, body=Block(tuple(body)))


def _is_shared(node: Node) -> bool:
    return any(isinstance(n, For) and n.kind == "parallel" for n in walk_nodes(node))


def _executions(kernel: Kernel, scop: Scop) -> dict[str, list[Execution]]:
    """Statement -> its executions in the kernel."""
    found: dict[str, list[Execution]] = {}
    for run in compute_executions(kernel, scop):
        found.setdefault(run.statement.name, []).append(run)
    return found


def _depends(
    later: dict[str, list[Execution]],
    earlier: dict[str, list[Execution]],
    relations: list[tuple[str, str, isl.Map]],
) -> bool:
    """Whether something executed later depends on something executed earlier."""
    return any(
        next(instances(relation, earlier[source], later[sink]), None) is not None
        for source, sink, relation in relations
        if source in earlier and sink in later
    )


def _meet(some: Elements, others: Elements) -> bool:
    return any(not some[a].is_disjoint(others[a]) for a in some.keys() & others.keys())


def _overlap(some: Set[str], others: Set[str], places: Mapping[str, Slot]) -> bool:
    """Whether two different arrays have a byte in common: one of them takes over from the other."""
    mine = [places[a] for a in some if a in places]
    theirs = [places[a] for a in others if a in places]
    return any(m.array != t.array and m.shares_memory(t) for m in mine for t in theirs)
