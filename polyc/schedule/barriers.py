"""Where the threads of a model must wait for one another: barriers between launches.

Launches that touch different memory, or only read the same, may run side by side: the branches of
an Inception module, the two expansions of SqueezeNet, which write different channels of one array,
the frames around padded arrays. A barrier is due where that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl

from polyc.analysis.verify import LaunchAccess
from polyc.memory.plan import Slot

Elements = dict[str, isl.Set]
"""Array -> elements, under the array's name."""


def place_barriers(launches: Sequence[LaunchAccess], slots: Iterable[Slot]) -> frozenset[int]:
    """Positions of the launches that need a barrier in front of them.

    read x, write a | read x, write b | read a b, write y   ->   {2}

    A launch needs one if since the last barrier something was written that it touches, or touched
    that it writes; be it an array, or memory that another array has had before. The launches are
    taken in their order, and no placement for that order has fewer.
    """
    places = {slot.array: slot for slot in slots}
    barriers = set()
    read: Elements = {}
    written: Elements = {}
    for position, launch in enumerate(launches):
        reads, writes = _named(launch.reads), _named(launch.writes)
        if (
            _meet(reads, written)
            or _meet(writes, written)
            or _meet(writes, read)
            or _overlap({*reads, *writes}, {*read, *written}, places)
        ):
            barriers.add(position)
            read, written = {}, {}
        _add(read, reads)
        _add(written, writes)
    return frozenset(barriers)


def _named(sets: Mapping[str, isl.Set]) -> Elements:
    return {array: elements.set_tuple_name(array) for array, elements in sets.items()}


def _add(total: Elements, new: Elements) -> None:
    for array, elements in new.items():
        total[array] = total[array].union(elements).coalesce() if array in total else elements


def _meet(some: Elements, others: Elements) -> bool:
    return any(not some[a].is_disjoint(others[a]) for a in some.keys() & others.keys())


def _overlap(some: set[str], others: set[str], places: Mapping[str, Slot]) -> bool:
    """Whether two different arrays have a byte in common: one of them takes over from the other."""
    mine = [places[a] for a in some if a in places]
    theirs = [places[a] for a in others if a in places]
    return any(m.array != t.array and m.shares_memory(t) for m in mine for t in theirs)
