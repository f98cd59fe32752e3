"""Schedule trees: navigation, and the few checked edits that strategies are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

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


def drop_idle_loops(schedule: isl.Schedule, marks: Collection[str]) -> isl.Schedule:
    """The schedule without loops of one iteration, nor those of `marks`, which speak of a loop.

    mark parallel (band [n]) over band [i, i - i mod 64] : n = 0, i < 64   ->   band [i]

    They change no order, but whoever reads the tree afterwards has one dimension more to deal with.
    """
    domain = schedule.get_domain()

    def is_loop_mark(node: isl.ScheduleNode) -> bool:
        return node.get_type() == MARK and node.mark_get_id().get_name() in marks

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if is_loop_mark(node):
            band = node.child(0)
            return band.delete().parent().delete() if _is_idle(band, 0, domain) else node
        if node.get_type() != BAND or is_loop_mark(node.parent()):
            return node
        return _drop_members(node, domain)

    return schedule.get_root().map_descendant_bottom_up(visit).get_schedule()


def _drop_members(band: isl.ScheduleNode, domain: isl.UnionSet) -> isl.ScheduleNode:
    """The band without members of one iteration."""
    members = range(band.band_n_member())
    idle = [_is_idle(band, k, domain) for k in members]
    if not any(idle):
        return band
    node, down = band, 0
    for k in members:
        if k < members[-1]:
            node = node.band_split(1)
        if idle[k]:
            node = node.delete()
        else:
            node, down = node.child(0), down + 1
    return node.ancestor(down)


def _is_idle(band: isl.ScheduleNode, member: int, domain: isl.UnionSet) -> bool:
    """Whether a member has one value for all instances of all statements."""
    functions = band.band_get_partial_schedule().get_union_pw_aff(member).get_pw_aff_list()
    value: isl.Val | None = None
    for k in range(functions.n_pw_aff()):
        function = functions.get_at(k)
        function = function.gist(domain.extract_set(function.get_domain_space()))
        if not function.is_cst() or (value is not None and not value.eq(function.max_val())):
            return False
        value = function.max_val()
    return True
