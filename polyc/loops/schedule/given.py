"""A schedule that a user gives for a kernel, in the language of all schedules.

    for i: for j: A[i, j] = A[i-1, j] + A[i, j-1]

    skew j i 1 | order j i | parallel i        j ─ i ─ S0, j of which is i + j

It starts from the loops as they were written (`schedule/text.py` lists what may be said of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import islpy as isl

from polyc.analysis.dependences import Dependences
from polyc.errors import IllegalSchedule
from polyc.loops.lower.lower import Lowered
from polyc.loops.lower.order import LoopNode, OrderNode, StatementLeaf, counter_of
from polyc.loops.schedule.schedule import LoopSchedule
from polyc.loops.schedule.tile import declare_scopes
from polyc.schedule.keeping import KeepInPlace, Pack
from polyc.schedule.legality import check_cpu_directives, check_cpu_kinds, check_given
from polyc.schedule.loops import Instances, Kept, Loop, LoopTree, lower_tree, rewrite, walk
from polyc.schedule.loops import Sequence as Parts
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell


def schedule_as_given(
    lowered: Lowered, dependences: Dependences, schedule: Schedule
) -> LoopSchedule:
    """The loops as they were written, after all directives.

    Raises IllegalSchedule, with two instances, if a dependence is broken for some of the sizes that
    the kernel is compiled for.
    """
    name = lowered.scop.name
    for directive in schedule.directives:
        if isinstance(directive, KeepInPlace | Pack):
            raise IllegalSchedule(
                f"kernel {name!r}: {spell(directive)}: the arrays of loops that people write "
                "lie as they are given; say keep … in registers, or leave it out"
            )
    # The bare scop has simple domains; what holds of sizes is said once, of the dependences.
    domains = {s.name: s.domain for s in lowered.bare.statements}
    start = make_loop_tree(lowered.order, domains)
    within = _within(dependences, lowered.sizes)
    check_cpu_directives(schedule, name)
    check_given(schedule, start, domains, within, name, partial(check_cpu_kinds, may_wait=True))
    tree = rewrite(schedule.apply(start), _in_lanes)
    made = lower_tree(tree, domains)
    if not any(isinstance(node, Kept) for node in walk(tree)):
        made = declare_scopes(made)
    return LoopSchedule(made, "as it was given", (f"given: {schedule}",))


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
