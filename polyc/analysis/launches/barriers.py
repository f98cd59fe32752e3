"""Which launches may run at the same time: those with no barrier between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.launches.arena import common_bytes, show_slot
from polyc.analysis.steps import by_loop, in_earlier_steps
from polyc.analysis.witness import illegal, show_first
from polyc.poly.parameters import among_sizes
from polyc.program.plan import Slot


def verify_barriers(
    launches: Sequence[LaunchAccess], slots: Sequence[Slot], barriers: Collection[int]
) -> int:
    """Launches with no barrier between them may run at the same time, in any order.

    `barriers` are the positions of the launches that have one in front. Bernstein's conditions for
    every pair without a barrier between: neither writes an element that the other touches, and no
    array of one lies where another array of the other does. Where branches begin or end all threads
    wait, whichever is taken, which `verify_driver` sees to. In a loop over steps the launches
    behind its last barrier meet those in front of its first in the next step, or any later one if
    there is no barrier. Gives the number of pairs.
    """
    where = {slot.array: slot for slot in slots}
    pairs = first = 0
    for k, launch in enumerate(launches):
        parted = k > 0 and launch.branches != launches[k - 1].branches
        first = k if k in barriers or parted else first
        for other in launches[first:k]:
            _check_apart(launch, other, where)
            pairs += 1
    start = 0
    for step, group in by_loop(launches):
        end = start + len(group)
        inside = [b for b in barriers if start <= b < end]
        for other in group[max(inside, default=start) - start :] if step else ():
            for launch in group[: min(inside, default=end) - start]:
                _check_apart(launch, _in_earlier_steps(other), where)
                pairs += 1
        start = end
    return pairs


def _check_apart(launch: LaunchAccess, other: LaunchAccess, where: Mapping[str, Slot]) -> None:
    """Bernstein's conditions for two launches."""
    together = f"launches {other.name} and {launch.name}"
    rule = "no barrier stands between them, but"
    for some, others in (
        (launch.writes, other.writes),
        (launch.writes, other.reads),
        (launch.reads, other.writes),
    ):
        for array in some.keys() & others.keys():
            one, two = (sets[array].set_tuple_name(array) for sets in (some, others))
            common = among_sizes(one, two).intersect(two)
            if not common.is_empty():
                raise illegal(together, f"{rule} one writes what both touch", show_first(common))
    for a, b in product(launch.arrays, other.arrays):
        if a != b and a in where and b in where and common_bytes(where[a], where[b]):
            shared = f"{show_slot(where[a])} and {show_slot(where[b])} overlap"
            raise illegal(together, f"{rule} {shared}")


def _in_earlier_steps(launch: LaunchAccess) -> LaunchAccess:
    """The launch as any earlier step made it."""
    step = launch.step
    assert step is not None
    sets = [
        {a: in_earlier_steps(elements, step) for a, elements in accesses.items()}
        for accesses in (launch.reads, launch.writes)
    ]
    return replace(launch, reads=sets[0], writes=sets[1])
