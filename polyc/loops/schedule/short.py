"""Short loops go inside of all others, and are written out.

    for i: for di in range(3): for dj in range(3): for j: s[i, j] += x[i + di, j + dj]

    ->   for i: for j: s[i, j] += x[i, j]; s[i, j] += x[i, j + 1]; …; s[i, j] += x[i + 2, j + 2]

A member of a band is short if it takes few values, by itself or relative to another member, as that
of a window which follows what it is around. isl unrolls such loops, and finds for each copy when it
is due. What the copies hand each other stays in registers, and lanes run along a long loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.loops.schedule.band import Band, as_map, joined
from polyc.poly.tree import make_unrolled

MOST_VALUES = 8
"""Iterations of a short loop."""

MOST_COPIES = 32
"""Iterations of all short loops of a band together."""


def move_short(node: isl.ScheduleNode, band: Band) -> isl.ScheduleNode:
    """A band, which holds no other, with its short members in a band inside of it.

    band i, di, dj, j   ->   band i, j ─ band di, dj (unroll)        the same, if none is short
    """
    if not band.is_permutable or band.short:
        return node
    domain = node.get_domain()
    long, short, copies = list(band.order), list[isl.UnionPwAff](), 1
    for k in reversed(band.order):
        others = [m for m in long if m != k]
        bases = [band.functions[k], *(band.functions[k].sub(band.functions[m]) for m in others)]
        found = ((base, _values(base, domain)) for base in bases)
        base, count = next(((b, n) for b, n in found if n), (None, 0))
        if base is not None and others and count > 1 and copies * count <= MOST_COPIES:
            long, short, copies = others, [base, *short], copies * count
    if not short:
        return node
    node = node.delete()
    node = node.insert_partial_schedule(joined([band.functions[k] for k in long]))
    node = node.band_set_permutable(1)
    for place, k in enumerate(long):
        node = node.band_member_set_coincident(place, int(band.coincident[k]))
    return insert_short(node.child(0), short).parent()


def insert_short(node: isl.ScheduleNode, functions: Sequence[isl.UnionPwAff]) -> isl.ScheduleNode:
    """A band of short members at a node, if there are any; gives the node at its place."""
    if not functions:
        return node
    domain = node.get_domain().universe()
    node = node.insert_partial_schedule(joined([f.intersect_domain(domain) for f in functions]))
    return make_unrolled(node)


def is_short(node: isl.ScheduleNode) -> bool:
    """Whether each member of a band takes few values, so that it may be unrolled."""
    partial, domain = node.band_get_partial_schedule(), node.get_domain()
    functions = (partial.get_union_pw_aff(k) for k in range(node.band_n_member()))
    return all(_values(function, domain) for function in functions)


def _values(function: isl.UnionPwAff, domain: isl.UnionSet) -> int:
    """How many values a function has whatever the sizes are; 0 if these are many."""
    values = as_map([function]).intersect_domain(domain).range()
    if values.is_empty():
        return 0
    line = isl.Set.from_union_set(values)
    least, most = line.dim_min(0).min_val(), line.dim_max(0).max_val()
    if not (least.is_int() and most.is_int()):
        return 0
    count = most.to_python() - least.to_python() + 1
    return count if count <= MOST_VALUES else 0
