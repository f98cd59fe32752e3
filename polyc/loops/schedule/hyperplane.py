"""A loop whose iterations wait for one of them is cut there, and both parts run in lanes.

    for j in 0 .. n: A[i, j] = min(A[i, j], A[i, k] + A[k, j])        j = k writes what others read

    ->   for j in 0 .. k: …;    j = k: …;    for j in k + 1 .. n: …

That is index-set splitting at a hyperplane (Griebl, Feautrier and Lengauer 2000, "Index set
splitting"): the instances that others hand values to, or wait for, keep to an equation, and no two
of the rest on one side of it depend on each other. The parts run in the order that they had.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

IN = isl.dim_type.in_

Cut = tuple[tuple[isl.UnionSet, bool], ...]
"""Parts of the instances of a statement, in order, and whether each runs in lanes."""


def cut_at_hyperplane(carried: isl.UnionMap, moves: Sequence[int] | None) -> Cut:
    """The instances of a statement in front of a hyperplane, on it, and behind; () if that is no
    help.

    carried: what a loop over it carries, all else being equal; moves: how iterators move along it.
    """
    middle = carried.domain().intersect(carried.range())
    if moves is None or middle.is_empty():
        return ()
    equation = _equation(isl.Set.from_union_set(middle).affine_hull(), moves)
    if equation is None:
        return ()
    zero = isl.PwAff.from_aff(equation)
    nothing = zero.sub(zero)
    sides = (zero.lt_set(nothing), zero.eq_set(nothing), zero.gt_set(nothing))
    front, on, behind = (isl.UnionSet.from_set(side) for side in sides)
    for side in (front, behind):
        if not carried.intersect_domain(side).intersect_range(side).is_empty():
            return ()
    return (front, True), (on, False), (behind, True)


def _equation(middle: isl.BasicSet, moves: Sequence[int]) -> isl.Aff | None:
    """What is 0 in the middle, and grows along a direction; None if there are several such."""
    found: list[isl.Aff] = []
    for constraint in middle.get_constraints():
        if not constraint.is_equality() or constraint.dim(isl.dim_type.div):
            continue
        aff = constraint.get_aff()
        slopes = (aff.get_coefficient_val(IN, k).to_python() for k in range(len(moves)))
        step = sum(slope * move for slope, move in zip(slopes, moves, strict=True))
        if step:
            found.append(aff if step > 0 else aff.neg())
    return found[0] if len(found) == 1 else None
