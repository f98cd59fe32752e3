"""A schedule that a user gives for a kernel, in the language of all schedules.

    for i: for j: A[i, j] = A[i-1, j] + A[i, j-1]

    skew j i 1 | order j i | parallel i        j ─ i ─ S0, j of which is i + j

It starts from the loops as they were written (`schedule/text.py` lists what may be said of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

import islpy as isl

from polyc.analysis.dependences import Dependences
from polyc.errors import IllegalSchedule
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.order import LoopNode, OrderNode, StatementLeaf, counter_of
from polyc.loops.schedule.blocks import declare_stacks
from polyc.loops.schedule.schedule import LoopSchedule
from polyc.loops.schedule.tile import declare_scopes
from polyc.promote.keep_in_block import list_kept, shared_by_name
from polyc.schedule.coordinates import COORDINATES
from polyc.schedule.keeping import KeepInPlace, Pack, Prefetch
from polyc.schedule.legal_threads import check_threads
from polyc.schedule.legality import (
    check_cpu_directives,
    check_cpu_kinds,
    check_given,
    check_held_loops,
)
from polyc.schedule.loops import (
    Instances,
    Kept,
    Loop,
    LoopTree,
    lower_tree,
    rewrite,
    statements_in,
    walk,
)
from polyc.schedule.loops import Sequence as Parts
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell
from polyc.schedule.threads import Lay, Pipeline, Swizzled, Use

TENSORS = (*COORDINATES, Lay, Swizzled, Pipeline, Use)
"""Directives that rewrite the statements of tensors, or how what they make lies in memory."""


def schedule_as_given(
    lowered: Lowered, dependences: Dependences, schedule: Schedule
) -> LoopSchedule:
    """The loops as they were written, after all directives.

    Raises IllegalSchedule, with two instances, if a dependence is broken for some of the sizes that
    the kernel is compiled for.
    """
    name = lowered.scop.name
    _check_arrays(schedule, name)
    # The bare scop has simple domains; what holds of sizes is said once, of the dependences.
    domains = {s.name: s.domain for s in lowered.bare.statements}
    start = make_loop_tree(lowered.order, domains)
    within = _within(dependences, lowered.sizes)
    check_cpu_directives(schedule, name)
    check_given(schedule, start, domains, within, name, partial(check_cpu_kinds, may_wait=True))
    applied = schedule.apply(start)
    check_held_loops(applied, lowered.bare.statements, name)
    tree = rewrite(applied, _in_lanes)
    made = lower_tree(tree, domains)
    if not any(isinstance(node, Kept) for node in walk(tree)):
        made = declare_scopes(made)
    return LoopSchedule(made, "as it was given", (f"given: {schedule}",))


def schedule_as_given_for_gpu(
    lowered: Lowered, dependences: Dependences, schedule: Schedule
) -> LoopSchedule:
    """The same for a GPU: loops run over blocks and threads, and others may be around the blocks.

    Each iteration of these is a launch, or several. Without a word on locals each thread keeps its
    own, at every loop inside of those over threads.
    """
    name = lowered.scop.name
    _check_arrays(schedule, name)
    foreign = next((d for d in schedule.directives if isinstance(d, TENSORS)), None)
    if foreign is not None:
        raise IllegalSchedule(
            f"kernel {name!r}: {spell(foreign)}: statements of loops that people write stay as "
            "they are; say order, split, skew, block, thread, or keep"
        )
    domains = {s.name: s.domain for s in lowered.bare.statements}
    start = rewrite(make_loop_tree(lowered.order, domains), partial(_with_extent, domains))
    check = partial(check_threads, may_launch=True)
    check_given(schedule, start, domains, dependences, name, check)
    loops = schedule.apply(start)
    tree = lower_tree(loops, domains, counted=True)
    if not any(isinstance(node, Kept) for node in walk(loops)):
        tree = declare_stacks(tree)
    kept, shared = list_kept(loops), shared_by_name(schedule)
    return LoopSchedule(tree, "as it was given", (f"given: {schedule}",), kept=kept, shared=shared)


def _with_extent(domains: Mapping[str, isl.Set], node: LoopTree) -> LoopTree:
    """A loop with its extent, where sizes are known and it counts from 0 or more."""
    if not isinstance(node, Loop):
        return node
    inside = reduce(
        isl.UnionSet.union, (isl.UnionSet.from_set(domains[n]) for n in statements_in(node))
    )
    counted = node.function.intersect_domain(inside)
    low, high = counted.min_val(), counted.max_val()
    known = low.is_int() and high.is_int() and low.to_python() >= 0
    return replace(node, extent=int(high.to_python()) + 1) if known else node


def _check_arrays(schedule: Schedule, name: str) -> None:
    """Raise IllegalSchedule for a directive about how arrays lie in memory."""
    for directive in schedule.directives:
        if isinstance(directive, KeepInPlace | Pack | Prefetch):
            raise IllegalSchedule(
                f"kernel {name!r}: {spell(directive)}: the arrays of loops that people write "
                "lie as they are given, in no panels; say keep … in registers, or leave it out"
            )


def make_loop_tree(order: Sequence[OrderNode], domains: Mapping[str, isl.Set]) -> LoopTree:
    """The loops of a kernel as they were written."""
    parts = tuple(_make(node, domains) for node in order)
    return parts[0] if len(parts) == 1 else Parts(parts)


def _make(node: OrderNode, domains: Mapping[str, isl.Set]) -> LoopTree:
    match node:
        case StatementLeaf(name):
            return Instances(name)
        case LoopNode(iterator, _, _, body):
            return Loop(iterator, counter_of(node, domains), make_loop_tree(body, domains))


def _in_lanes(node: LoopTree) -> LoopTree:
    """Loops in lanes stay loops here: the C compiler cuts them into vectors."""
    if isinstance(node, Loop) and node.kind == "vector":
        return replace(node, kind="simd")
    return node


def _within(dependences: Dependences, sizes: isl.Set) -> Dependences:
    """The dependences where sizes are what a kernel is compiled for."""
    return replace(
        dependences,
        flow=dependences.flow.intersect_params(sizes),
        anti=dependences.anti.intersect_params(sizes),
        output=dependences.output.intersect_params(sizes),
    )
