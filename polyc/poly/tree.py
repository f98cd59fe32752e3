"""Schedule trees: the kinds of nodes, and edits of bands."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

BAND = isl.schedule_node_type.band
MARK = isl.schedule_node_type.mark
LEAF = isl.schedule_node_type.leaf
NESTED = (isl.schedule_node_type.sequence, isl.schedule_node_type.set)


def make_atomic(band: isl.ScheduleNode) -> isl.ScheduleNode:
    """The band with each member printed as one loop, whatever its statements' domains are."""
    for member in range(band.band_n_member()):
        band = band.band_member_set_ast_loop_type(member, isl.ast_loop_type.atomic)
    return band


def make_unrolled(band: isl.ScheduleNode) -> isl.ScheduleNode:
    """The band with each iteration of its members printed by itself; each takes few values."""
    for member in range(band.band_n_member()):
        band = band.band_member_set_ast_loop_type(member, isl.ast_loop_type.unroll)
    return band


def is_unrolled(node: isl.ScheduleNode) -> bool:
    """Whether a node is a band of loops that isl writes out."""
    if node.get_type() != BAND:
        return False
    return bool(node.band_member_get_ast_loop_type(0) == isl.ast_loop_type.unroll)


def mark_members(band: isl.ScheduleNode, marks: Sequence[str]) -> isl.ScheduleNode:
    """band [i, j] with marks ("parallel", "") -> mark parallel (band [i]) over band [j].

    Returns the outermost node of the result.
    """
    node, down = band, 0
    for position, name in enumerate(marks):
        if position < len(marks) - 1:
            node = node.band_split(1)
        if name:
            node = node.insert_mark(isl.Id(name)).child(0)
            down += 1
        node = node.child(0)
        down += 1
    return node.ancestor(down)


def count_members(node: isl.ScheduleNode, above: int = 0) -> dict[str, frozenset[int]]:
    """Statement -> how many members of bands are around it, at each leaf where it is executed.

    above: members around the node.
    """
    if node.get_type() == LEAF:
        sets = node.get_domain().get_set_list()
        names = (sets.get_at(k).get_tuple_name() for k in range(sets.n_set()))
        return {name: frozenset({above}) for name in names}
    inside = above + (node.band_n_member() if node.get_type() == BAND else 0)
    found: dict[str, frozenset[int]] = {}
    for k in range(node.n_children()):
        for name, counts in count_members(node.child(k), inside).items():
            found[name] = found.get(name, frozenset()) | counts
    return found
