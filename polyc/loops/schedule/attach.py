"""What begins a sum, at its first iteration: isl often leaves it in loops of its own.

    for i: s[i] = 0                                for i:
    for i: for k: s[i] += x[i, k]           ->       for k: if k == 0: s[i] = 0
                                                            s[i] += x[i, k]

isl puts statements of few loops into a band of more where it can shift the others behind them, but
not always. Apart, all of s is memory that is written and read again, and threads wait for each
other in between. Together, s is a tile's, and the parts of a tile have loops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.loops.schedule.band import Band, falls, joined
from polyc.loops.schedule.joint import alone, constant, distance, is_innermost
from polyc.poly.tree import NESTED


def attach_beginnings(tree: isl.Schedule, validity: isl.UnionMap) -> isl.Schedule:
    """The tree with loops before those of sums inside of these, where one leads to the other.

    sequence { S: band i, T: band i, k }   ->   band i, k over sequence { S, T }     S at (i, 0)
    """

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        depth = node.get_tree_depth()
        if node.get_type() in NESTED:
            for k in reversed(range(node.n_children() - 1)):
                found = _functions(node, k, validity)
                if found:
                    node = _attach(node, k, found)
                    node = node.ancestor(node.get_tree_depth() - depth)
                    return visit(node)
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        return node

    return visit(tree.get_root()).get_schedule()


def _attach(
    node: isl.ScheduleNode, first: int, members: Sequence[isl.UnionPwAff]
) -> isl.ScheduleNode:
    """Two neighbours below a node in one band; gives the node of it."""
    band = alone(node, first).insert_partial_schedule(joined(members)).band_set_permutable(1)
    for k in range(2):
        band = band.child(0).child(k).child(0).delete().ancestor(3)
    return band


def _functions(
    node: isl.ScheduleNode, first: int, validity: isl.UnionMap
) -> list[isl.UnionPwAff] | None:
    """The members of a band for two neighbours below a node; None if there had better be none."""
    places = [node.child(k).child(0) for k in (first, first + 1)]
    if not all(map(is_innermost, places)):
        return None
    one, other = (Band.of(place, validity) for place in places)
    if not one.is_permutable or not other.is_permutable or len(one.order) >= len(other.order):
        return None
    domains = [place.get_domain() for place in places]
    met = validity.intersect_domain(domains[0]).intersect_range(domains[1])
    if met.is_empty():
        return None
    left, members = {*one.order}, list[isl.UnionPwAff]()
    for b in other.order:
        g = other.functions[b]
        apart = {a: distance(one.functions[a], met, g) for a in sorted(left)}
        a = next((a for a, ahead in apart.items() if ahead is not None), None)
        if a is not None:
            left.remove(a)
            function = one.functions[a]
            own = function.add(constant(function, apart[a] or 0))
        else:
            begin = g.intersect_domain(met.range()).min_val()
            if other.coincident[b] or not begin.is_int():
                return None  # lanes and threads do without what comes once
            own = isl.UnionPwAff.val_on_domain(domains[0].universe(), begin)
        members.append(own.union_add(g))
    whole = domains[0].union(domains[1])
    inside = validity.intersect_domain(whole).intersect_range(whole)
    return None if left or any(falls(f, inside) for f in members) else members
