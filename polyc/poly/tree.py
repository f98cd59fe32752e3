"""Schedule trees: navigation, and the few checked edits that strategies are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import islpy as isl

from polyc.errors import IllegalSchedule

BAND = isl.schedule_node_type.band
FILTER = isl.schedule_node_type.filter
MARK = isl.schedule_node_type.mark
SEQUENCE = isl.schedule_node_type.sequence
LEAF = isl.schedule_node_type.leaf


def tile(band: isl.ScheduleNode, sizes: Sequence[int]) -> isl.ScheduleNode:
    """band [i, j] -> band [T*floor(i/T), …] over band [i mod T, …]; the band must be permutable."""
    if not band.band_get_permutable():
        raise IllegalSchedule(f"cannot tile a band that is not permutable: {band}")
    space = band.band_get_space()
    values = isl.MultiVal.zero(space)
    for k, size in enumerate(sizes):
        values = values.set_val(k, isl.Val.int_from_si(isl.DEFAULT_CONTEXT, size))
    return band.band_tile(values)


def make_atomic(band: isl.ScheduleNode) -> isl.ScheduleNode:
    """The band with each member printed as one loop, whatever its statements' domains are."""
    for member in range(band.band_n_member()):
        band = band.band_member_set_ast_loop_type(member, isl.ast_loop_type.atomic)
    return band


def single_statement(node: isl.ScheduleNode) -> str | None:
    """The name of the statement below a node, if there is only one."""
    sets = node.get_domain().get_set_list()
    return sets.get_at(0).get_tuple_name() if sets.n_set() == 1 else None


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


def edit_leaf_bands(
    schedule: isl.Schedule, edit: Callable[[isl.ScheduleNode], isl.ScheduleNode]
) -> isl.Schedule:
    """The schedule with `edit` applied to each innermost band; `edit` keeps the band's depth."""

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if node.get_type() == BAND and node.child(0).get_type() == LEAF:
            return edit(node)
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        return node

    return visit(schedule.get_root()).get_schedule()
