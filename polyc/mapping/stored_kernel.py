"""What becomes one kernel: a stored cluster, or several that share their outermost tiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from polyc.mapping.fuse_schedules import fuse_schedules
from polyc.mapping.reading import read_packed
from polyc.mapping.signature import sign_cluster, sign_layouts
from polyc.mapping.stored_cluster import StoredCluster
from polyc.memory.storage import Storage
from polyc.poly.canonical import Canonical
from polyc.schedule.canonical import NOTHING, Made, to_positions
from polyc.schedule.fills import set_fills_aside
from polyc.schedule.initial import InitialLoops
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.scop.literals import compute_form
from polyc.scop.scop import Array, Statement
from polyc.types.branches import Branches
from polyc.types.ranges import Step


def homes_of(names: Iterable[str], arrays: Mapping[str, Array]) -> frozenset[str]:
    """The arrays that have the memory of these: themselves, but for those that say another."""
    return frozenset(arrays[name].memory or name for name in names)


@dataclass(frozen=True)
class StoredKernel:
    """Stored clusters that run one after another for each tile of the loops that they share.

    loops[k] maps each statement's name to the position of its iterator for the k-th of these
    loops, outermost first, and sizes[k] is the extent of a tile; a kernel of one cluster has none.
    `handed` are the arrays that no other kernel touches, and more than one part does. terms: how
    many terms of its sum the second of two parts takes at a time of what the first one copies; 0
    for all.
    """

    parts: tuple[StoredCluster, ...]
    loops: tuple[Mapping[str, int], ...] = ()
    sizes: tuple[int, ...] = ()
    handed: frozenset[str] = frozenset()
    terms: int = 0

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements in textual order; a prelude before what completes its array."""
        return tuple(
            s for one in self.parts for s in (*one.cluster.prelude, *one.cluster.statements)
        )

    @cached_property
    def body(self) -> tuple[Statement, ...]:
        """The statements, fills left out of what another one completes."""
        return set_fills_aside(self.statements)[1]

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The arrays touched, in order of appearance."""
        return tuple(dict.fromkeys(name for one in self.parts for name in one.arrays))

    @cached_property
    def storages(self) -> Mapping[str, Storage]:
        return {name: storage for one in self.parts for name, storage in one.storages.items()}

    @cached_property
    def private(self) -> frozenset[str]:
        """The arrays that no other kernel touches."""
        return self.handed.union(*(one.private for one in self.parts))

    @cached_property
    def awaited(self) -> frozenset[str]:
        """The arrays that hold sizes which a call must have found."""
        return frozenset[str]().union(*(one.cluster.awaited for one in self.parts))

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(s.array for s in self.statements)

    @property
    def step(self) -> Step | None:
        """The loop over steps that the kernel is launched in."""
        return self.parts[0].step

    @property
    def branches(self) -> Branches:
        """Where the kernel is launched, if not in every call."""
        return self.parts[0].branches

    @property
    def gain(self) -> float:
        """What a measured schedule saves; a part of a larger kernel was measured alone."""
        return self.parts[0].gain if len(self.parts) == 1 else 0.0

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the loops."""
        first = self.parts[0].cluster.statements[0]
        sizes = first.estimated_extents
        return tuple(sizes[loop[first.name]] for loop in self.loops)

    @property
    def long_extents(self) -> tuple[int, ...]:
        """The same in a long call."""
        first = self.parts[0].cluster.statements[0]
        return tuple(first.long_extents[loop[first.name]] for loop in self.loops)

    def conflicts_with(self, other: StoredKernel, arrays: Mapping[str, Array]) -> bool:
        """Whether the two have to stay in order: one writes memory that the other needs."""
        mine, theirs = (k.awaited | homes_of(k.arrays, arrays) for k in (self, other))
        return not (self.written.isdisjoint(theirs) and other.written.isdisjoint(mine))

    @property
    def given(self) -> str:
        """The name that its schedule was given for; empty if strategies have written it."""
        return self.parts[-1].given

    @property
    def called(self) -> str:
        """What it is called where people give schedules: as its last statement is."""
        return short(self.body[-1].name)

    @cached_property
    def named(self) -> InitialLoops:
        """The loops that the schedule starts from."""
        return InitialLoops(tuple(one.cluster for one in self.parts))

    @cached_property
    def counted(self) -> InitialLoops:
        """The same for a GPU: with loops that run once."""
        return InitialLoops(self.named.clusters, counted=True)

    @cached_property
    def scheduled(self) -> tuple[str, ...]:
        """The arrays that the schedule may name: those that are touched, and what was packed."""
        packed = (read_packed(one.schedule) for one in self.parts)
        return tuple(dict.fromkeys((*self.arrays, *(name for names in packed for name in names))))

    @cached_property
    def schedule(self) -> Schedule:
        """That of the only part; or those of all parts, inside of the loops that they share."""
        if self.given or not self.loops:
            return self.parts[-1].schedule
        clusters = [one.cluster for one in self.parts]
        schedules = [one.schedule for one in self.parts]
        fused = fuse_schedules(clusters, schedules, self.loops, self.sizes, self.terms)
        return fused or Schedule()

    def sign(self, arrays: Mapping[str, Array], made: Made = NOTHING) -> tuple[Schedule, Canonical]:
        """Equal signatures mean equal kernels: names become positions, everything else stays.

        made: what a schedule makes itself that is given.
        """
        schedule = to_positions(self.schedule, self.counted, self.scheduled, made)
        if len(self.parts) == 1:
            return schedule, (self.parts[0].signature, self._sign_places())
        parts = tuple(sign_cluster(one.cluster, self.arrays, arrays) for one in self.parts)
        return schedule, (parts, self._sign_places())

    def form(self, arrays: Mapping[str, Array]) -> Hashable:
        """Equal forms mean that kernels are equal but for literals."""
        schedule = to_positions(self.schedule, self.counted, self.scheduled)
        parts = (sign_cluster(one.cluster, self.arrays, arrays, compute_form) for one in self.parts)
        return schedule, tuple(parts), self._sign_places()

    def _sign_places(self) -> Canonical:
        """Where arrays lie, and which loops the parts share."""
        layouts = sign_layouts(self.arrays, self.storages, self.private)
        loops = tuple(tuple(loop[s.name] for s in self.statements) for loop in self.loops)
        return layouts, loops, self.sizes
