"""What launches hand to one another: whatever one reads has been written by earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.steps import by_loop, in_any_step, in_earlier_steps
from polyc.analysis.witness import illegal, show_first
from polyc.poly.boxes import box
from polyc.poly.parameters import among_sizes, without_known
from polyc.scop.scop import Array
from polyc.types.branches import Branches
from polyc.types.ranges import Step

Elements = dict[str, isl.Set]
"""Array -> elements, under the array's name.

Those of one launch say what is assumed of sizes in any case; of several it may be left out
(`add_elements`).
"""


@dataclass(frozen=True)
class LaunchAccess:
    """What one launch reads of earlier launches' results, and what it writes; by program array.

    `scratch` are arrays that no other launch touches, but that take memory which others may have.
    In a loop over steps the sets are those of step `step.name`, one of their parameters; so are the
    conditions of `branches`, where only some calls make the launch (`branches.py`).
    """

    name: str
    reads: Mapping[str, isl.Set]  # A
    writes: Mapping[str, isl.Set]  # A
    scratch: frozenset[str] = frozenset()
    step: Step | None = None
    branches: Branches = ()

    @property
    def arrays(self) -> frozenset[str]:
        """Everything that lies in memory."""
        return self.scratch | self.reads.keys() | self.writes.keys()


def in_memory(access: LaunchAccess, arrays: Mapping[str, Array]) -> LaunchAccess:
    """What a launch touches, where it reads the memory of other arrays under another shape.

    Which elements of these it reads no integer set says: it reads all of them.
    """
    homes = {name: arrays[name].memory for name in access.arrays if arrays[name].memory}
    if not homes:
        return access
    reads = {name: elements for name, elements in access.reads.items() if name not in homes}
    reads |= {home: among_sizes(box(home, arrays[home].shape)) for home in homes.values()}
    return replace(access, reads=reads, scratch=access.scratch - homes.keys())


def behind_found(
    access: LaunchAccess, awaited: Collection[str], arrays: Mapping[str, Array]
) -> LaunchAccess:
    """What a launch touches whose sizes a call has found: as if it read what holds these."""
    if not awaited:
        return access
    homes = (arrays[name].memory or name for name in awaited)
    whole = {home: among_sizes(box(home, arrays[home].shape)) for home in homes}
    return replace(access, reads={**access.reads, **whole})


def verify_program(launches: Sequence[LaunchAccess], initialised: Collection[str]) -> int:
    """Every read of a launch is covered by earlier launches' writes; gives the number of reads.

    `initialised` are the arrays that exist beforehand: inputs, constants and states. Of a state,
    what is written in a call is read after that, or by the launch itself, whose own proof says in
    which order: `bind_states` leaves no other read of an element that is going to be overwritten.
    The program's outputs are covered as well if a last launch, the caller's, reads them in full.

    In a loop over steps, what an earlier step wrote counts only if no step writes it again: then it
    is the last value. All else must have been written earlier in the same step, and is lost behind
    the loop.
    """
    there = _Written(launches, initialised)
    checked = 0
    for step, group in by_loop(launches):
        if step is None:
            for launch in group:
                checked += there.check(launch, there.written)
                add_elements(there.written, name_elements(launch.writes))
            continue
        every = {a: among_sizes(elements) for a, elements in _unite(group).items()}
        earlier = {a: in_earlier_steps(e, step) for a, e in every.items()}
        kept = {a for a in every if _is_kept(every[a], earlier[a], there.written.get(a))}
        now: Elements = {}
        for launch in group:
            known = {a: e for a, e in there.written.items() if a not in every or a in kept}
            add_elements(known, {a: e for a, e in earlier.items() if a in kept})
            add_elements(known, now)
            checked += there.check(launch, known)
            add_elements(now, name_elements(launch.writes))
        for array in every.keys() - kept:
            there.written.pop(array, None)
        add_elements(there.written, {a: in_any_step(every[a], step) for a in kept})
    return checked


class _Written:
    """What has been written so far; and of the arrays that exist beforehand, what ever is."""

    def __init__(self, launches: Sequence[LaunchAccess], initialised: Collection[str]) -> None:
        self.written: Elements = {}
        self._initialised = initialised
        self._changing: Elements = {}
        for step, group in by_loop(launches):
            for array, elements in _unite(group, initialised).items():
                every = in_any_step(elements, step) if step else elements
                add_elements(self._changing, {array: every})

    def check(self, launch: LaunchAccess, known: Elements) -> int:
        """All reads of a launch are of elements that are known to be written; their number."""
        checked = 0
        writes = name_elements(launch.writes)
        for array, wanted in name_elements(launch.reads).items():
            if array in self._initialised and array not in self._changing:
                continue
            if array in self._changing:
                wanted = wanted.intersect(self._changing[array])
                if array in writes and launch.step is None:
                    wanted = wanted.subtract(writes[array])
            there = known.get(array, isl.Set.empty(wanted.space))
            # isl answers whether it is in there where a difference takes minutes.
            if not (wanted.plain_is_equal(there) or among_sizes(wanted, there).is_subset(there)):
                missing = show_first(wanted.subtract(there))
                raise illegal(f"launch {launch.name}", f"it reads {array} unwritten", missing)
            checked += 1
        return checked


def _is_kept(elements: isl.Set, earlier: isl.Set, before: isl.Set | None) -> bool:
    """Whether what a step writes was never written before: so that it stays what it is."""
    others = (earlier,) if before is None else (earlier, before)
    return all(among_sizes(elements, other).is_disjoint(other) for other in others)


def _unite(launches: Iterable[LaunchAccess], arrays: Collection[str] | None = None) -> Elements:
    """All that they write, or all of these arrays."""
    total: Elements = {}
    for launch in launches:
        written = launch.writes.items()
        mine = {array: e for array, e in written if arrays is None or array in arrays}
        add_elements(total, name_elements(mine))
    return total


def name_elements(sets: Mapping[str, isl.Set]) -> Elements:
    """Sets by array, as sets of elements of these arrays."""
    return {array: elements.set_tuple_name(array) for array, elements in sets.items()}


def add_elements(total: Elements, new: Elements) -> None:
    """Unite sets of elements, array by array; changes `total`.

    What is assumed of sizes in any case is left out of a union. isl would compare it for each pair
    of pieces: of an optical flow's nine inputs, joined with 29 sizes around, for a sixth of a
    second each time. A launch that a union is compared with says it.
    """
    for array, elements in new.items():
        bare = without_known(elements)
        total[array] = total[array].union(bare).coalesce() if array in total else bare
