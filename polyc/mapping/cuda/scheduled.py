"""A schedule for a GPU, applied: the tree, and what it says of memory.

pipeline acc_left.kt 3   ->   acc_left has 3 places along the dimension that kt walks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.loopnest.swizzle import Swizzle
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.mapping.cuda.overwrite import overwrite_named
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage, permuted, row_major
from polyc.memory.strides import accesses
from polyc.names import show
from polyc.poly.affine import outputs, plain_iterator
from polyc.schedule.canonical import Made
from polyc.schedule.initial import make_tree
from polyc.schedule.loops import Loop, LoopTree, lower_tree, paths
from polyc.schedule.names import find_statement, short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell
from polyc.schedule.threads import Lay, Pipeline, Swizzled
from polyc.scop.scop import Array, Statement


@dataclass(frozen=True)
class Scheduled:
    """A kernel in the coordinates of its schedule, its loops, and what is said of memory.

    threads: of a block. storages: of the
    arrays that the schedule has made; swizzles: of those in shared memory; folds: of those whose
    copies go ahead of their use, the dimension that counts them -> how many there are at a time;
    pipelines: what says so.
    """

    schedule: Schedule
    rewritten: Rewritten
    loops: LoopTree
    tree: isl.Schedule
    threads: int
    storages: Mapping[str, Storage]
    swizzles: Mapping[str, Swizzle | None]
    folds: Mapping[str, Mapping[int, int]]
    pipelines: Mapping[str, Pipeline]

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.rewritten.statements

    @property
    def touched(self) -> tuple[str, ...]:
        """The arrays that the statements touch, in order of appearance."""
        return tuple(dict.fromkeys(name for s in self.statements for name, _, _ in accesses(s)))

    @property
    def private(self) -> frozenset[str]:
        return self.rewritten.touched_private

    @property
    def named(self) -> Made:
        """What the schedule has made, by name with what each name begins with."""
        now = self.rewritten
        statements = ((short(name), short(root)) for name, root in now.statements_made.items())
        return Made(tuple(now.made.items()), tuple(statements))

    @property
    def made(self) -> dict[str, Array]:
        """The arrays that the schedule has made."""
        return {name: self.rewritten.arrays[name] for name in self.rewritten.made}


def begin(kernel: StoredKernel, arrays: Mapping[str, Array]) -> Rewritten:
    """A kernel before anything is done to its statements."""
    clusters = tuple(one.cluster for one in kernel.parts)
    return Rewritten(clusters, arrays, kernel.storages, kernel.private)


def find_made(kernel: StoredKernel, arrays: Mapping[str, Array]) -> Made:
    """What a schedule that is given makes itself; IllegalSchedule if it does not fit its kernel."""
    moved = overwrite_named(kernel, kernel.schedule, arrays)
    return apply_schedule(kernel.schedule, begin(moved, arrays)).named


def apply_schedule(schedule: Schedule, start: Rewritten) -> Scheduled:
    """A schedule applied to a kernel; IllegalSchedule, which names a directive, if it cannot be."""
    now = rewrite(start, schedule)
    loops = schedule.apply(make_tree(now.named))
    pipelines = [*find_pipelines(schedule, now, loops)]
    return Scheduled(
        schedule,
        now,
        loops,
        lower_tree(loops, {s.name: s.domain for s in now.statements}, counted=True),
        count_threads(loops),
        lay_out(schedule, now),
        find_swizzles(schedule, now),
        _fold(pipelines),
        {array: directive for array, _, directive in pipelines},
    )


def count_threads(tree: LoopTree) -> int:
    """The threads of a block: those that the loops over threads have room for."""
    return max(
        (
            loop.width * loop.apart
            for path in paths(tree)
            for loop in path
            if isinstance(loop, Loop) and loop.kind in ("thread", "combine")
        ),
        default=1,
    )


def lay_out(schedule: Schedule, now: Rewritten) -> dict[str, Storage]:
    """How the arrays lie that a schedule has made."""
    found = {name: row_major(now.arrays[name]) for name in now.made}
    for directive in schedule.directives:
        if isinstance(directive, Lay):
            array = now.arrays[_made(directive, directive.array, now)]
            if sorted(directive.order) != [*range(len(array.shape))]:
                raise IllegalSchedule(
                    f"{spell(directive)}: {show(array.name)} has {len(array.shape)} dimensions, "
                    "which are numbered from 0 and said once each"
                )
            found[array.name] = permuted(array, directive.order)
    return found


def find_swizzles(schedule: Schedule, now: Rewritten) -> dict[str, Swizzle | None]:
    """The swizzles of arrays in shared memory."""
    found: dict[str, Swizzle | None] = {}
    for directive in schedule.directives:
        if isinstance(directive, Swizzled):
            bits, to, source = directive.bits, directive.to, directive.source
            array = now.arrays[_made(directive, directive.array, now)]
            swizzle = Swizzle(bits, to, source)
            if not (0 < bits <= 8 and to >= 0 and to + bits <= source <= 16):
                raise IllegalSchedule(
                    f"{spell(directive)}: 1 to 8 bits are exclusive-ored with others above them, "
                    "of the lowest 24"
                )
            found[array.name] = swizzle
    return found


def _fold(pipelines: Iterable[tuple[str, int, Pipeline]]) -> dict[str, dict[int, int]]:
    """By array: dimension -> how many places it has."""
    found: dict[str, dict[int, int]] = {}
    for array, dimension, directive in pipelines:
        found.setdefault(array, {})[dimension] = directive.stages
    return found


def find_pipelines(
    schedule: Schedule, now: Rewritten, tree: LoopTree
) -> Iterator[tuple[str, int, Pipeline]]:
    """Arrays and their dimensions that have a place for so many iterations, in turns."""
    statements = {s.name: s for s in now.statements}
    for directive in schedule.directives:
        if not isinstance(directive, Pipeline):
            continue
        for name in directive.loops:
            title, _, loop = name.rpartition(".")
            s = statements[find_statement(tree, title)]
            _made(directive, s.array, now)
            plain = [plain_iterator(f) for f in outputs(s.write)]
            walked = (
                [
                    d
                    for d, p in enumerate(plain)
                    if p is not None and p == (s.iterators.index(loop), 0)
                ]
                if loop in s.iterators
                else []
            )
            if len(walked) != 1:
                raise IllegalSchedule(
                    f"{spell(directive)}: {show(s.array)} has no dimension that {show(loop)} alone "
                    "walks, and so no place for each of some iterations"
                )
            yield s.array, walked[0], directive


def _made(directive: Lay | Swizzled | Pipeline, array: str, now: Rewritten) -> str:
    if array not in now.made:
        raise IllegalSchedule(
            f"{spell(directive)}: {show(array)} is no array that this schedule makes; those are "
            f"{', '.join(map(show, now.made)) or 'none'}"
        )
    return array
