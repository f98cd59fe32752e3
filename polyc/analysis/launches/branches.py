"""What launches touch that only some calls make: in sets, a condition is a parameter.

    if c: launch writes { y[i] }    ->    [branch_c] -> { y[i] : branch_c >= 1 }

Then what is written in one of two branches is all that is written, and what one of them writes the
other does not read, by set algebra alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import islpy as isl

from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.witness import illegal
from polyc.poly.boxes import box
from polyc.poly.conditions import spell
from polyc.poly.parameters import among_sizes, read
from polyc.scop.scop import Array
from polyc.types.branches import BRANCH, Branches, Demands


@cache
def where_taken(branches: Branches) -> isl.Set:
    """# of parameters alone: the calls that take these branches."""
    names = dict.fromkeys(f"{BRANCH}{b.condition}" for b in branches)
    said = [f"{BRANCH}{b.condition} {'>= 1' if b.holds else '<= 0'}" for b in branches]
    return isl.Set(f"[{', '.join(names)}] -> {{ : {' and '.join(said) or 'true'} }}")


def where_admitted(demands: Demands) -> isl.Set:
    """# of parameters alone: calls whose sizes the branches that they take admit.

    A driver ends all others before they come to such a branch (`driver.py`).
    """
    admitted = isl.Set("{ : }")
    for branches, needs in demands.items():
        said = " and ".join(f"{spell(need)} >= 0" for need in needs)
        elsewhere = where_taken(branches).complement()
        admitted = admitted.intersect(elsewhere.union(read(isl.Set, f"{{ : {said} }}")))
    return admitted


def in_calls(access: LaunchAccess, calls: isl.Set) -> LaunchAccess:
    """What a launch reads in these calls, a set of parameters."""
    if calls.plain_is_universe():
        return access
    reads = {name: elements.intersect_params(calls) for name, elements in access.reads.items()}
    return replace(access, reads=reads)


def verify_conditions(launches: Sequence[LaunchAccess]) -> None:
    """No launch writes what has decided whether an earlier one is made."""
    decided: set[str] = set()
    for launch in launches:
        for array in decided & launch.writes.keys():
            rule = f"it writes {array}, which has decided what was launched before"
            raise illegal(f"launch {launch.name}", rule)
        decided |= {branch.condition for branch in launch.branches}


def in_branches(
    access: LaunchAccess, branches: Branches, arrays: Mapping[str, Array]
) -> LaunchAccess:
    """What a launch touches, where it is made in these branches only; and their conditions.

    Whether a condition holds is read in the branches around it.
    """
    if not branches:
        return access
    taken = where_taken(branches)
    reads, writes = (
        {array: elements.intersect_params(taken) for array, elements in touched.items()}
        for touched in (access.reads, access.writes)
    )
    for depth in reversed(range(len(branches))):  # what is read farther out is read in more calls
        condition = branches[depth].condition
        name = arrays[condition].memory or condition
        whole = among_sizes(box(name, arrays[name].shape))
        reads[name] = whole.intersect_params(where_taken(branches[:depth]))
    return replace(access, reads=reads, writes=writes, branches=branches)
