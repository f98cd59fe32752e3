"""Which threads of a GPU's block make an access, and where two of them meet.

A loop over threads with n iterations, a apart, runs iteration i on the threads t with

    floor(t/a) mod n = i        (the outermost such loop: floor(t/a) = i, others are idle)

What stands outside of all such loops, every thread does; one of those that do the same writes to
memory, the first. A loop that combines reads what each of these threads has, and all of them write.
Two accesses *conflict* if different threads of a block may make them at one place and one of them
writes: the relation of their threads,  t_a -> t_b,  is not within the identity. What tensor cores
read, any lane of the warp may have been the one to load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl

from polyc.analysis.accesses import Access, Surroundings
from polyc.analysis.timemap import Execution, Loop
from polyc.loopnest.nodes import Await, Node, walk_nodes
from polyc.scop.scop import Statement

TOGETHER = {"mma": 32, "wgmma": 128}
"""Threads that multiply at once, by the kind of their loops: any may load for the others."""

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


Running = frozenset[tuple[int, int | None]]
"""Phases since the last barrier, and how many iterations of the loop directly around ago."""

FARTHEST = 6
"""Iterations apart that are told from one another; copies go ahead by fewer."""


def anywhere(running: Running) -> Running:
    """The phases as seen from another loop: some iterations ago."""
    return frozenset((phase, None) for phase, _ in running)


def one_later(running: Running) -> Running:
    """The phases as seen from the next iteration of the loop directly around."""
    return frozenset(
        (phase, None if apart is None or apart == FARTHEST else apart + 1)
        for phase, apart in running
    )


class Flights:
    """The products of warpgroups that go on in the background, while a text is walked.

    A product that an iteration begins is over for the thread that waits for it: with at most n
    pending, in the n-th iteration behind. Other threads know that after a barrier: the first one
    more than n iterations later, counted as if it stood in front of the product in its iteration.
    Behind its loop the last ones are over where none may be pending.

    pending: by phase; left: those whose loop has ended.
    """

    def __init__(self) -> None:
        self._pending: dict[int, int] = {}
        self._left: set[int] = set()

    def begin(self, phase: int, node: Node) -> None:
        """A phase of the text is entered."""
        waits = [n.pending for n in walk_nodes(node) if isinstance(n, Await)]
        if waits and waits[-1]:
            self._pending[phase] = waits[-1]

    def leave(self, running: Running) -> None:
        """A loop has ended."""
        self._left |= {phase for phase, _ in running if phase in self._pending}

    def land(self, wait: Await) -> None:
        """All threads have waited for their products."""
        if wait.pending == 0:
            self._left.clear()

    def after_barrier(self, running: Running) -> Running:
        """The phases that go on behind a barrier."""
        return frozenset(
            (phase, apart)
            for phase, apart in running
            if phase in self._left
            or (FARTHEST + 1 if apart is None else apart) <= self._pending.get(phase, -1)
        )


def executing_threads(run: Execution, combines: bool = False) -> isl.Map:
    """# L -> [t]: the threads that execute an assignment, or that give what it `combines`."""
    return _threads(run.place.loops, run.points.dim(SET), False, combines)


def holding_threads(access: Access) -> isl.Map:
    """# L -> [t]: the threads in whose own storage an access is made."""
    return executing_threads(access.execution, combines=not is_write(access))


def accessing_threads(access: Access) -> isl.Map:
    """# L -> [t]: the threads that make an access; of those that do the same, the first writes."""
    alone = is_write(access) and not is_own(access)
    run = access.execution
    threads = _threads(run.place.loops, run.points.dim(SET), alone, False)
    for size in {TOGETHER[loop.kind] for loop in run.place.loops if loop.kind in TOGETHER}:
        same = f"{{ [t] -> [u] : 0 <= u and floor(t/{size}) = floor(u/{size}) }}"
        threads = threads.apply_range(isl.Map(same))
    return threads


def _threads(loops: Sequence[Loop], depth: int, alone: bool, combines: bool) -> isl.Map:
    counters = [f"t{k}" for k in range(depth)]
    conditions = ["0 <= t"]
    kinds = ("thread", "combine") if combines else ("thread",)
    over_threads = [(k, loop) for k, loop in enumerate(loops) if loop.kind in kinds]
    for k, loop in over_threads:
        digit = f"floor(t/{loop.apart})"
        if loop is not over_threads[0][1]:
            digit = f"({digit} mod {loop.extent})"
        conditions.append(f"{digit} = {counters[k]}")
    if alone:
        apart = min((loop.apart for _, loop in over_threads), default=0)
        conditions.append(f"t mod {apart} = 0" if apart else "t = 0")
    return isl.Map(f"{{ [{', '.join(counters)}] -> [t] : {' and '.join(conditions)} }}")


def is_write(access: Access) -> bool:
    return access.element is access.execution.assign.target


def is_own(access: Access) -> bool:
    """Whether the place is in storage of the thread's own."""
    return access.private is not None and access.private.local.space != "shared"


@dataclass
class Phases:
    """The accesses of a kernel by phase, and which phases conflict.

    A phase is what all threads enter in step: an outermost loop over threads, or an assignment
    outside of one; they are numbered in the order of the text. Those of different launches never
    conflict: one is over when the next begins.
    """

    around: Surroundings
    accesses: Sequence[Access]
    numbers: Mapping[int, int] = field(init=False)
    launches: Mapping[int, int] = field(init=False)  # phase -> the loop over blocks around
    _known: dict[tuple[int, int, int | None], bool] = field(default_factory=dict)
    _meetings: dict[int, list[_Meeting]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = sorted({_phase_of(a.execution) for a in self.accesses})
        self.numbers = {number: k for k, number in enumerate(found)}
        self.launches = {
            self.numbers[_phase_of(a.execution)]: _launch_of(a.execution) for a in self.accesses
        }
        touched = self._storages()
        for access in self.accesses:
            holder = self._holder(access)
            if holder in touched:
                phase = self.numbers[_phase_of(access.execution)]
                meeting = _Meeting(holder, is_write(access), *_place_to_thread(access))
                self._meetings.setdefault(phase, []).append(meeting)

    def conflict(self, one: int, other: int, apart: int | None = None) -> bool:
        """Whether two threads of a block may meet in two phases, one of them writing.

        apart: `other` is so many iterations of the loop directly around both behind `one`, in the
        same iterations of all other loops; None for any iterations of any loops in the launch.
        """
        if self.launches[one] != self.launches[other]:
            return False
        key = (one, other, apart)
        if apart is None and one > other:
            key = (other, one, None)
        if key not in self._known:
            self._known[key] = any(
                _meet(a.threads(apart), b.threads(None if apart is None else 0))
                for a in self._meetings.get(one, ())
                for b in self._meetings.get(other, ())
                if a.holder == b.holder and (a.writes or b.writes)
            )
        return self._known[key]

    def show(self, phase: int) -> str:
        """The statements of a phase."""
        names = [
            a.execution.statement.name
            for a in self.accesses
            if self.numbers[_phase_of(a.execution)] == phase
        ]
        return ", ".join(dict.fromkeys(names))

    def _holder(self, access: Access) -> str:
        if access.private is None:
            return access.element.array
        return "" if is_own(access) else f"{access.private.number} {access.element.array}"

    def _storages(self) -> set[str]:
        """Storage where threads could meet: written, and touched by anything besides.

        Not where one statement alone writes, each element once.
        """
        users: dict[str, set[str]] = {}
        written, again = set(), set()
        for access in self.accesses:
            holder, statement = self._holder(access), access.execution.statement
            users.setdefault(holder, set()).add(statement.name)
            if not is_write(access):
                again.add(holder)
                continue
            written.add(holder)
            if statement.reduction or not _writes_once(statement):
                again.add(holder)
        shared = {h for h, names in users.items() if len(names) > 1} | again
        return {h for h in shared & written if h}


@dataclass(frozen=True)
class _Meeting:
    """An access to what threads share: where, whether it writes, and who makes it, when.

    by_time: # [block…, counter…, place…] -> [t]; `counters` are those of the sequential loops
    around the phase, which begin at dimension `first`.
    """

    holder: str
    writes: bool
    by_time: isl.Map
    first: int
    counters: int

    def threads(self, later: int | None) -> isl.Map:
        """# [block…, place…] -> [t] in any iteration; or with the counters, the last moved."""
        if later is None:
            return self.by_time.project_out(IN, self.first, self.counters)
        if later == 0:
            return self.by_time
        names = [f"d{k}" for k in range(self.by_time.dim(IN))]
        last = self.first + self.counters - 1
        moved = [f"{n} + {later}" if k == last else n for k, n in enumerate(names)]
        shift = isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(moved)}] }}")
        return self.by_time.apply_domain(shift)


def _writes_once(statement: Statement) -> bool:
    """Whether no two instances write one element."""
    return bool(statement.write.as_map().intersect_domain(statement.domain).is_injective())


def _launch_of(run: Execution) -> int:
    """The number of the outermost loop over blocks around an execution; -1 if there is none."""
    return next((loop.number for loop in run.place.loops if loop.kind == "block"), -1)


def _phase_of(run: Execution) -> int:
    """The number of the node that is a phase: of the outermost loop over threads, or of itself."""
    phases = (loop.number for loop in run.place.loops if loop.kind in ("thread", "combine"))
    return next(phases, run.position)


def _place_to_thread(access: Access) -> tuple[isl.Map, int, int]:
    """# [block..., counter…, place...] -> [t]: who makes an access; number of blocks, counters.

    To the blocks belong the loops around them, of which each iteration is a launch of its own.
    """
    loops = access.execution.place.loops
    inmost = max((k for k, loop in enumerate(loops) if loop.kind == "block"), default=-1)
    blocks = [*range(inmost + 1)]
    over = (k for k, loop in enumerate(loops) if loop.kind in ("thread", "combine"))
    outside = range(inmost + 1, next(over, len(loops)))
    counted = [k for k in outside if loops[k].kind not in ("thread", "combine")]
    known = [*blocks, *counted]
    depth = access.points.dim(SET)
    counters = ", ".join(f"t{k}" for k in range(depth))
    block = isl.PwMultiAff(f"{{ [{counters}] -> [{', '.join(f't{k}' for k in known)}] }}")
    place = access.place.reset_tuple_id(OUT) if access.place.has_tuple_id(OUT) else access.place
    where = block.flat_range_product(place).as_map().intersect_domain(access.points)
    for k in sorted(access.computed):
        where = where.eliminate(OUT, len(known) + k, 1)
    by_time = where.reverse().apply_range(accessing_threads(access))
    return by_time, len(blocks), len(counted)


def _meet(one: isl.Map, other: isl.Map) -> bool:
    pairs = one.reverse().apply_range(other)  # t_a -> t_b
    return not pairs.is_subset(isl.Map("{ [t] -> [t] }"))
