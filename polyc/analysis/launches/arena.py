"""The memory that arrays share: each has room, and none lies over another while both are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.launches.found import has_room
from polyc.analysis.proof import counted
from polyc.analysis.steps import by_loop
from polyc.analysis.witness import illegal
from polyc.program.plan import Plan, Slot
from polyc.program.program import Program, StoredArray
from polyc.types.found import found_in
from polyc.types.sizes import Extent, Size


def verify_memory(
    program: Program, plan: Plan, launches: Sequence[LaunchAccess], alignment: int
) -> str:
    """Prove where a plan puts arrays right, or raise IllegalSchedule; what was proven, as a line.

    Every array has the room that its storage takes, which is computed anew, from a multiple of
    `alignment` bytes on: temporaries in the arena, constants in the weights, apart from one
    another. In the arena two may overlap if no launch comes while both are needed.
    """
    for slot in plan.slots:
        _check_slot(slot, program.arrays[slot.array], plan, alignment)
    if plan.regions and plan.arena_bytes % alignment:
        raise illegal("arena", f"its regions do not begin at a multiple of {alignment} bytes")
    placed = counted(verify_arena(plan.slots, plan.arena_bytes, launches), "array")
    constants = counted(_check_constants(program, plan, alignment), "constant")
    return (
        f"arena: {placed} inside, none over another while both are live; weights: {constants} apart"
    )


def _bytes_of(array: StoredArray) -> Extent:
    """What an array takes as it is stored."""
    return math.prod(array.storage.shape) * array.dtype.itemsize


def _check_slot(slot: Slot, array: StoredArray, plan: Plan, alignment: int) -> None:
    """A temporary has room: in its region if its size depends on the call, else in its slot."""
    needed = _bytes_of(array)
    if array.value is not None:
        raise illegal("arena", f"{slot.array} is a constant")
    if slot.region:
        rooms = plan.regions[slot.region - 1] if slot.region <= len(plan.regions) else ()
        if needed not in rooms and not any(has_room(needed, room) for room in rooms):
            raise illegal("arena", f"region {slot.region} has no room for {slot.array}: {needed}")
        if any(found_in([room]) for room in rooms):
            raise illegal("arena", f"how large region {slot.region} is only a call finds")
    elif not has_room(needed, slot.bytes):
        raise illegal("arena", f"{show_slot(slot)} has no room for its {needed} bytes")
    elif slot.offset % alignment:
        raise illegal("arena", f"{show_slot(slot)} begins at no multiple of {alignment} bytes")


def _check_constants(program: Program, plan: Plan, alignment: int) -> int:
    """Constants lie in the weights one after another; gives their number."""
    end, last = 0, "the beginning"
    for name, offset in sorted(plan.constants.items(), key=lambda pair: pair[1]):
        array = program.arrays[name]
        needed = _bytes_of(array)
        if array.value is None or isinstance(needed, Size) or array.value.nbytes != needed:
            raise illegal("weights", f"{name} has not the {needed} bytes that are stored of it")
        if offset % alignment or offset < end:
            raise illegal("weights", f"{name} at {offset} lies in {last}, or at an odd place")
        end, last = offset + needed, name
    if end > plan.weights_bytes:
        raise illegal("weights", f"{last} leaves the {plan.weights_bytes} bytes of all")
    return len(plan.constants)


def verify_arena(slots: Sequence[Slot], size: int, launches: Sequence[LaunchAccess] = ()) -> int:
    """Every slot lies in the arena of `size` bytes, and no two overlap while both are live.

    Gives the number of slots. A slot is live from launch `first` to launch `last`, both included,
    and must be so in all `launches` that touch it; in a loop over steps, in the whole of it.
    """
    where = {slot.array: slot for slot in slots}
    start = 0
    for step, group in by_loop(launches):
        for k, launch in enumerate(group, start):
            begin, end = (start, start + len(group) - 1) if step else (k, k)
            for slot in (where[a] for a in launch.arrays if a in where):
                if slot.first > begin or slot.last < end:
                    raise illegal("arena", f"{show_slot(slot)} is not live in launch {k}")
        start += len(group)
    live: list[Slot] = []
    for slot in sorted(slots, key=lambda s: s.first):
        if not slot.region and (slot.offset < 0 or slot.offset + slot.bytes > size):
            rule = f"{show_slot(slot)} lies outside of its {size} bytes"
            raise illegal("arena", rule)
        live = [other for other in live if other.last >= slot.first]
        for other in live:
            if common_bytes(slot, other):
                rule = f"{show_slot(other)} and {show_slot(slot)} overlap in launch {slot.first}"
                raise illegal("arena", rule)
        live.append(slot)
    return len(slots)


def common_bytes(one: Slot, other: Slot) -> range:
    """The bytes that two slots share; of a region, which each has from its beginning, the first."""
    if one.region or other.region:
        return range(int(one.region == other.region))
    end = min(one.offset + one.bytes, other.offset + other.bytes)
    return range(max(one.offset, other.offset), end)


def show_slot(slot: Slot) -> str:
    return f"{slot.array} at [{slot.offset}, {slot.offset + slot.bytes})"
