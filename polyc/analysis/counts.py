"""How much a scop computes and touches: scalar operations and bytes."""

from __future__ import annotations

from math import prod

import islpy as isl

from polyc.analysis.footprints import compute_footprints
from polyc.poly.context import is_exhausted, operation_budget
from polyc.poly.parameters import at_sizes
from polyc.scop.expr import arithmetic
from polyc.scop.scop import Scop
from polyc.types.estimate import hinted

SET = isl.dim_type.set

ENUMERABLE = 1_000_000
"""Points in the bounding box up to which isl may count by enumeration: about 1 ms per 10^6."""

ENOUGH = 100_000
"""Operations of isl up to which it may count: at most two seconds where each point is a search."""


def count_flops(scop: Scop) -> int | None:
    """Scalar operations of one run, the update of a reduction included, conversions not; None: not
    counted.

    sum over statements of  operations per instance * instances.
    """
    total = 0
    for statement in scop.statements:
        each = arithmetic(statement.value) + (statement.reduction is not None)
        points = count_points(statement.domain) if each else 0
        if points is None:
            return None
        total += each * points
    return total


def count_bytes(scop: Scop) -> int:
    """Distinct bytes touched of arrays that outlive the scop (all but its temporaries).

    A footprint too large or too intricate to be counted exactly counts as its bounding box.
    """
    footprints = compute_footprints(scop)
    total = 0
    for name, array in scop.arrays.items():
        touched = [f[name] for f in (footprints.reads, footprints.writes) if name in f]
        if array.kind == "temporary" or not touched:
            continue
        elements = at_sizes(touched[0].union(touched[-1]).coalesce(), hinted)
        points = count_points(elements)
        total += array.dtype.itemsize * (_volume(elements) if points is None else points)
    return total


def count_points(points: isl.Set) -> int | None:
    """The number of points of a bounded set; None where it is neither a box nor easy to enumerate.

    An image under more divisions than it has dimensions is not: each point is a search. Nor is what
    takes too long for other reasons. Sizes known only at run time are as hinted.
    """
    points = at_sizes(points, hinted)
    if points.is_empty():
        return 0
    volume = _volume(points)
    if points.is_box():
        return volume
    intricate = any(part.dim(isl.dim_type.div) > part.dim(SET) for part in points.get_basic_sets())
    return None if intricate or volume > ENUMERABLE else _enumerate(points)


def _enumerate(points: isl.Set) -> int | None:
    with operation_budget(ENOUGH):
        count = points.count_val()
        if is_exhausted():  # isl says so of the count by no exception
            return None
    found: int = count.to_python()
    return found


def _volume(points: isl.Set) -> int:
    """Points of the bounding box."""
    return prod(
        points.dim_max_val(k).to_python() - points.dim_min_val(k).to_python() + 1
        for k in range(points.dim(SET))
    )
