"""Loops over places of which data picks one go inside of all others; loops that data ends stay.

    for i: for p: h[p] add= index(x[i]) == p ? 1 : 0

Nothing is carried along p, so that isl would have it outermost, and in parallel: each place would
look at all of x. With p inside, one iteration is left of it (`codegen/bound_by_data.py`). So
schedules are made of instances without p, of which each stands for those with all its values. A
loop of which data says where it begins and ends stays where it is, with all that is inside of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import islpy as isl

from polyc.loops.lower.lowered import Lowered
from polyc.loops.schedule.band import as_map, names_of
from polyc.loops.schedule.direction import rows_of
from polyc.loops.schedule.inner import in_sequence
from polyc.poly.tree import LEAF
from polyc.scop.expr import Load
from polyc.scop.picks import find_left, find_picks, find_walks
from polyc.scop.scop import Statement

SET = isl.dim_type.set


def at_first_places(statements: Sequence[Statement]) -> isl.UnionPwMultiAff | None:
    """# S -> S: each instance to the one at the first places; None if data picks none.

    S[i, p] -> S[i, 0]
    """
    if not any(map(find_picks, statements)):
        return None
    whole = isl.UnionPwMultiAff("{ }")
    for s in statements:
        space = s.domain.get_space()
        function = isl.MultiAff.identity(space.map_from_set())
        for k in find_picks(s):
            zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
            function = function.set_aff(k, zero)
        whole = whole.union_add(isl.UnionPwMultiAff.from_multi_aff(function))
    return whole


def insert_places(tree: isl.Schedule, statements: Mapping[str, Statement]) -> isl.Schedule:
    """The tree with the loops over places inside of all others."""
    picks = {name: found for name, s in statements.items() if (found := find_picks(s))}
    if not picks:
        return tree

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        if node.get_type() == LEAF:
            names = names_of(node)
            open_ = [n for n in names if n in picks and not _is_ordered(node, statements[n])]
            if open_ and len(names) > 1:  # in no order: any will do
                return visit(in_sequence(node, node.get_domain(), names))
            for name in open_:
                node = _insert(node, statements[name], [*picks[name]])
        return node

    return visit(tree.get_root()).get_schedule()


def _is_ordered(node: isl.ScheduleNode, s: Statement) -> bool:
    """Whether the loops around tell all instances of a statement from each other."""
    around = node.get_prefix_schedule_union_map()
    return bool(around.intersect_domain(isl.UnionSet.from_set(s.domain)).is_injective())


def _insert(node: isl.ScheduleNode, s: Statement, picked: Sequence[int]) -> isl.ScheduleNode:
    """The loops of one statement at a leaf, which is then their own; gives the node there."""
    space = s.domain.get_space()
    for k in picked:
        here = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), SET, k)
        loop = isl.UnionPwAff.from_pw_aff(isl.PwAff.from_aff(here))
        node = node.insert_partial_schedule(isl.MultiUnionPwAff.from_union_pw_aff(loop)).child(0)
    return node.ancestor(len(picked))


def ends_by_data(lowered: Lowered) -> bool:
    """Whether data ends some loop of a kernel."""
    return bool(lowered.left) or any(map(find_walks, lowered.bare.statements))


def asks_data(
    names: Iterable[str], statements: Mapping[str, Statement], left: Collection[str]
) -> bool:
    """Whether data says of a loop around some statements which of its iterations there are."""
    return any(
        find_picks(s) or find_walks(s) or any(x.array in left for x in find_left(s))
        for s in (statements[name] for name in names)
    )


def is_ended(
    node: isl.ScheduleNode, statements: Mapping[str, Statement], left: Collection[str]
) -> bool:
    """Whether a band is a loop of which data says where it begins and ends, or when it is left."""
    partial = node.band_get_partial_schedule()
    if partial.dim(SET) != 1:
        return False
    function = as_map([partial.get_union_pw_aff(0)])

    def ends(s: Statement) -> bool:
        rows = rows_of(function, s)
        flags = [load for load in find_left(s) if load.array in left]
        moved = {k for row in rows for k, step in enumerate(row) if step}
        stays = any(not any(_moves(f, k) for k in moved) for f in flags) and bool(moved)
        return stays or not moved.isdisjoint(find_walks(s))

    return any(ends(statements[name]) for name in names_of(node))


def _moves(load: Load, iterator: int) -> bool:
    return bool(load.index.involves_dims(isl.dim_type.in_, iterator, 1))
