"""Whether a function takes no value twice on a domain: in a box of few points, by its values.

    { S[i, j] -> x[64 i - 3132 floor(i/49) + 216 floor(i/98) - … + 54 floor(i/1568), j] }

isl compares all pairs of instances, with an unknown for each quotient of both: of this, the order
in which a hierarchical transformer has its 3,136 tokens, it takes eight seconds. Iterators of a box
that meet in no coordinate are independent, so that i and j are asked alone, and the values of 3,136
points say it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import islpy as isl
import numpy as np

from polyc.poly.affine import outputs, single_aff

DIV, IN, SET = isl.dim_type.div, isl.dim_type.in_, isl.dim_type.set
PARAM = isl.dim_type.param

FEW_DIVISIONS = 3
"""Up to so many, isl answers in milliseconds."""

MOST_POINTS = 1 << 20
"""Whose values are computed: some milliseconds, and 8 MiB."""

LARGEST = 1 << 62
"""That a value may be on its way, in integers of 64 bits."""


def is_injective(function: isl.PwMultiAff, domain: isl.Set) -> bool:
    """Whether no two points of `domain` have the same value."""
    found = _by_values(function, domain) if _divides_often(function) else None
    if found is not None:
        return found
    return bool(function.as_map().intersect_domain(domain).is_injective())


def _divides_often(function: isl.PwMultiAff) -> bool:
    affs = [single_aff(coordinate) for coordinate in outputs(function)]
    return any(aff is not None and aff.dim(DIV) > FEW_DIVISIONS for aff in affs)


def _by_values(function: isl.PwMultiAff, domain: isl.Set) -> bool | None:
    """The same by the values; None unless these are one formula's in a box, known and few."""
    whole = domain.is_subset(function.domain()) and domain.is_box() and not domain.is_empty()
    if not whole or domain.involves_dims(PARAM, 0, domain.dim(PARAM)):
        return None
    affs = []
    for aff in map(single_aff, outputs(function)):
        if aff is None or aff.involves_dims(PARAM, 0, aff.dim(PARAM)):
            return None
        affs.append(aff)
    dimensions = range(domain.dim(SET))
    if not domain.is_bounded():
        return None
    firsts = [int(domain.dim_min_val(p).to_python()) for p in dimensions]
    lasts = [int(domain.dim_max_val(p).to_python()) for p in dimensions]
    return _is_one_to_one(affs, firsts, [b - a + 1 for a, b in zip(firsts, lasts, strict=True)])


def _is_one_to_one(
    affs: Sequence[isl.Aff], firsts: Sequence[int], extents: Sequence[int]
) -> bool | None:
    """The same of formulas over the box from a point on; None where it has too many."""
    moving = [p for p, n in enumerate(extents) if n > 1]
    for group in _independent(affs, moving):
        among = [aff for aff in affs if any(aff.involves_dims(IN, p, 1) for p in group)]
        count = prod(extents[p] for p in group)
        if count * max(len(among), 1) > MOST_POINTS:
            return None
        points: list[np.ndarray | int] = list(firsts)
        for along, p in zip(np.ix_(*(range(extents[p]) for p in group)), group, strict=True):
            points[p] = along + firsts[p]
        values = []
        for aff in among:
            value = _value(aff, points)
            if value is None:
                return None
            values.append(value)
        if not among or _count_distinct(values, count) < count:
            return False
    return True


def _independent(affs: Sequence[isl.Aff], iterators: Sequence[int]) -> list[list[int]]:
    """Iterators in groups: those that meet in a coordinate, or in one with another, are in one."""
    groups = [[p] for p in iterators]
    for aff in affs:
        met = [g for g in groups if any(aff.involves_dims(IN, p, 1) for p in g)]
        if met:
            groups = [*(g for g in groups if g not in met), [p for g in met for p in g]]
    return groups


def _value(aff: isl.Aff, points: Sequence[np.ndarray | int]) -> np.ndarray | None:
    """The values of an affine function with quotients; None where they may overflow."""
    found = _numerator(aff, points)
    return None if found is None else found // int(aff.get_denominator_val().to_python())


def _numerator(aff: isl.Aff, points: Sequence[np.ndarray | int]) -> np.ndarray | None:
    """The values times the function's denominator: a sum of multiples of integers.

    A quotient is  floor(e / m),  of a function e/m that has a numerator of its own. isl lists with
    it all quotients of the function that it is found in: those that it is not made of have no step.
    """
    whole = aff.get_denominator_val()
    terms = [(aff.get_coefficient_val(IN, p), points[p]) for p in range(aff.dim(IN))]
    for k in range(aff.dim(DIV)):
        if aff.get_coefficient_val(DIV, k).is_zero():
            continue
        quotient = _value(aff.get_div(k), points)
        if quotient is None:
            return None
        terms.append((aff.get_coefficient_val(DIV, k), quotient))
    total = np.array(int(aff.get_constant_val().mul(whole).to_python()))
    bound = abs(int(total))
    for step, value in terms:
        factor = int(step.mul(whole).to_python())
        if factor:
            bound += abs(factor) * int(np.abs(value).max())
            if bound > LARGEST:
                return None
            total = total + factor * np.asarray(value)
    return total


def _count_distinct(values: Sequence[np.ndarray], count: int) -> int:
    """How many different rows they have, all against the same box of `count` points."""
    table = np.stack(np.broadcast_arrays(*values), axis=-1).reshape(count, len(values))
    return len(np.unique(table, axis=0))
