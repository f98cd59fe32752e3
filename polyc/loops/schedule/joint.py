"""Joint tiles: neighbours that walk one matrix do so together, some rows at a time.

    for i: for j: t[i] += A[i, j] * x[j]             for I:
    for j: for i: y[j] += A[i, j] * t[i]       ->      for i in I: for j: t[i] += A[i, j] * x[j]
                                                       for j: for i in I: y[j] += A[i, j] * t[i]

What is too large for the caches then comes from memory once, and not twice. isl keeps such loops
apart, because one of them is free along i, and the other is free along j; inside of a joint tile
each still is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import islpy as isl

from polyc.loops.schedule.band import Band, as_map, falls, has_band, joined
from polyc.loops.schedule.direction import direction, rows_of, stride_along
from polyc.poly.tree import BAND, MARK, NESTED, make_atomic
from polyc.scop.scop import Statement

ROWS = 32
"""Of a joint tile: 512 KiB of rows of 2048 doubles."""

JOINT = "joint"
"""The mark of joint tiles until they are shaped."""


def join_tiles(
    tree: isl.Schedule, statements: Mapping[str, Statement], validity: isl.UnionMap
) -> isl.Schedule:
    """The tree with joint tiles, below a mark each, of neighbours that may share them.

    sequence { S: band i, j, T: band j, i }  ->  band floor(i / 32) over sequence { S: …, T: … }
    """

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        depth = node.get_tree_depth()
        if node.get_type() in NESTED:
            node = _join(node, statements, validity)
        node = node.ancestor(node.get_tree_depth() - depth)
        if node.get_type() == MARK:
            return node  # all that is below shares tiles
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        return node

    return visit(tree.get_root()).get_schedule()


def _join(
    node: isl.ScheduleNode, statements: Mapping[str, Statement], validity: isl.UnionMap
) -> isl.ScheduleNode:
    """The first two neighbours below a node that read one matrix, in joint tiles, if they may be.

    Gives the node of their mark; else the node as it is.
    """
    for k in range(node.n_children() - 1):
        found = _find(node, k, statements, validity)
        if found is not None:
            tiles = found.function.scale_down_val(isl.Val(ROWS)).floor()
            band = alone(node, k).insert_partial_schedule(joined([tiles]))
            if found.later is not None:
                others = band.child(0).order_before(found.later)
                band = others.ancestor(others.get_tree_depth() - band.get_tree_depth())
            return make_atomic(band.band_set_permutable(1)).insert_mark(isl.Id(JOINT))
    return node


def alone(node: isl.ScheduleNode, first: int) -> isl.ScheduleNode:
    """The subtree of two neighbours, after what precedes them and before what follows."""
    filters = [node.child(k).filter_get_filter() for k in range(node.n_children())]
    before, pair = filters[:first], filters[first : first + 2]
    if before:
        node = node.order_before(_union(before))  # isl gives the node of the others
    if len(filters) > first + 2:
        node = node.order_before(_union(pair)).parent().previous_sibling().child(0)
    return node


def _union(sets: list[isl.UnionSet]) -> isl.UnionSet:
    whole = sets[0]
    for one in sets[1:]:
        whole = whole.union(one)
    return whole


@dataclass(frozen=True)
class Joint:
    """What two neighbours share: a function along which both walk one matrix.

    later: the instances of the second of them, if they had better be first. Who is first reads from
    memory, and should read whole rows; that is who is free along the function.
    """

    function: isl.UnionPwAff
    later: isl.UnionSet | None


def _find(
    node: isl.ScheduleNode,
    first: int,
    statements: Mapping[str, Statement],
    validity: isl.UnionMap,
) -> Joint | None:
    """What two neighbours share, if they do."""
    places = [node.child(k).child(0) for k in (first, first + 1)]
    if any(not is_innermost(place) for place in places):
        return None
    one, other = (Band.of(place, validity) for place in places)
    if not (one.is_permutable and other.is_permutable):
        return None
    if len(one.order) != 2 or len(other.order) != 2:
        return None  # loops in which a matrix is used once for each of its elements
    domains = [place.get_domain() for place in places]
    pairs = validity.intersect_domain(domains[0]).intersect_range(domains[1])
    for a, b in product(one.order, other.order):
        f, g = one.functions[a], other.functions[b]
        for met in _meeting(one, a, other, statements):
            ahead = distance(f, met, g)
            if ahead is None:
                continue
            function = f.union_add(g.sub(constant(g, ahead)))
            if not falls(function, pairs):
                swap = pairs.is_empty() and other.coincident[b] and not one.coincident[a]
                return Joint(function, domains[1].universe() if swap else None)
    return None


def distance(f: isl.UnionPwAff, met: isl.UnionMap, g: isl.UnionPwAff) -> int | None:
    """g - f, where that is the same for all pairs of instances; None if it is not."""
    values = as_map([f]).reverse().apply_range(met).apply_range(as_map([g]))
    if values.is_empty():
        return None
    apart = isl.Set.from_union_set(values.deltas())
    some = apart.sample_point().get_coordinate_val(isl.dim_type.set, 0)
    return int(some.to_python()) if apart.is_subset(isl.Set(f"{{ [{some}] }}")) else None


def constant(function: isl.UnionPwAff, value: int) -> isl.UnionPwAff:
    """A constant on the domain of a function."""
    return isl.UnionPwAff.val_on_domain(function.domain(), isl.Val(value))


def is_innermost(node: isl.ScheduleNode) -> bool:
    """Whether a node is a band with no other below it."""
    return node.get_type() == BAND and not has_band(node.child(0))


def _meeting(
    one: Band, member: int, other: Band, statements: Mapping[str, Statement]
) -> Iterator[isl.UnionMap]:
    """# S -> T: instances that touch the same elements of a matrix, for each pair of accesses, of
    which the first goes from row to row along a member."""
    for s in map(statements.__getitem__, one.names):
        own = [row for k in one.order for row in rows_of(one.member(k), s)]
        moves = direction(own, member)
        for t in map(statements.__getitem__, other.names):
            for (array, index), (name, again) in product(_matrices(s), _matrices(t)):
                if array == name and moves and any(moves) and stride_along(index, moves) is None:
                    touched, other_touched = (
                        access.as_map().intersect_domain(each.domain)
                        for access, each in ((index, s), (again, t))
                    )
                    yield isl.UnionMap.from_map(touched.apply_range(other_touched.reverse()))


def _matrices(statement: Statement) -> Iterator[tuple[str, isl.PwMultiAff]]:
    """The accesses of a statement to arrays of two dimensions or more, where no data says where."""
    accesses = [(statement.array, statement.write)]
    accesses += [(load.array, load.index) for load in statement.loads if not load.dynamic]
    return ((array, index) for array, index in accesses if index.dim(isl.dim_type.out) > 1)
