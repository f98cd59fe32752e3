"""Of sizes of which one follows from the smaller of two, sets know cases: which is the smaller one.

    m = min(h - 3, 0)   ->   h <= 3 and m = h - 3, or h >= 3 and m = 0

Loops would be generated for each case of a statement's sizes, so that many become one conjunction.
"""

from __future__ import annotations

from collections.abc import Collection

import islpy as isl

from polyc.types.derived import Derived
from polyc.types.groups import group_by_shared
from polyc.types.parameters import expand
from polyc.types.ranges import assumed_ranges
from polyc.types.sizes import Extent, Size, names_in

MOST_PARTS = 4
"""Of what is assumed of some sizes, as of two pairs of which either may be the smaller one."""

MOST_TOGETHER = 4
"""Sizes in a group whose convex hull is sought: in few dimensions that is cheap."""

PARAM = isl.dim_type.param


def in_few_cases(known: isl.Set, names: frozenset[str]) -> isl.Set:
    """What is known of some sizes, in few cases, or in one conjunction that holds in all.

    It is one where that says the same, where the cases are but gaps between numbers (no size says
    which of two is the smaller), and where there are many.
    """
    hull = isl.Set.from_basic_set(known.simple_hull())
    cases = known.n_basic_set()
    leaves = _find_leaves(names) if cases > 1 else {}
    if not _tell_which(leaves) or hull.is_subset(known):
        return hull
    return _tighten(hull, known, leaves) if cases > MOST_PARTS else known


def project_onto(known: isl.Set, names: Collection[str]) -> isl.Set:
    """What follows for some sizes alone; others are eliminated as rational numbers."""
    space = known.get_space()
    for name in [str(space.get_dim_name(PARAM, k)) for k in range(space.dim(PARAM))]:
        if name not in names:
            position = known.find_dim_by_name(PARAM, name)
            known = known.eliminate(PARAM, position, 1).project_out(PARAM, position, 1)
    return known


def _tighten(hull: isl.Set, known: isl.Set, leaves: dict[str, frozenset[str]]) -> isl.Set:
    """A conjunction that holds in all cases, with the convex hulls of sizes that stand together.

    h <= 3 and m = 0 and k = -h, or h >= 3 and m = 3 - h and k = -3   ->   m + k = -h and …

    No case says by itself what all of them have in common. Sizes of other dimensions are left out:
    what holds of them is independent, and each multiplies the cases.
    """
    # Sizes that follow from none in common.
    for group, _ in group_by_shared(leaves.items()):
        if len(group) > MOST_TOGETHER:
            continue
        part = project_onto(known, group).coalesce()
        if 1 < part.n_basic_set() <= MOST_PARTS:
            hull = hull.intersect(isl.Set.from_basic_set(part.convex_hull()))
    return hull


def _find_leaves(names: frozenset[str]) -> dict[str, frozenset[str]]:
    """The sizes that each of some sizes follows from."""
    known = (size.name for size in assumed_ranges() if size.name in names)
    return {name: frozenset(names_in([expand(Size.of(name))])) for name in known}


def _tell_which(leaves: dict[str, frozenset[str]]) -> bool:
    """Whether one of the sizes follows from the smaller of two, and from what another one does."""
    return any(
        own & leaves[other]
        for name, own in leaves.items()
        if _has_smaller(expand(Size.of(name)))
        for other in leaves.keys() - {name}
    )


def _has_smaller(extent: Extent) -> bool:
    """Whether an extent follows from the smaller of two."""
    return isinstance(extent, Size) and any(
        isinstance(f, Derived) and (f.operation == "min" or any(map(_has_smaller, f.operands)))
        for f in extent.factors
    )
