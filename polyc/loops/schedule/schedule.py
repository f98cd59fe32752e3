"""In which order a kernel's instances are executed: as a schedule tree, and how it came about.

isl's scheduler decides: its bands, with shifts and skews, are taken as they come (Verdoolaege and
Janssens 2017, "Scheduling for PPCG"; after Bondhugula et al. 2008, "A practical automatic
polyhedral parallelizer and locality optimizer", section 3). It is asked about the bare scop, whose
relations are simple. Where it fails, or runs out of operations, the loops stay as they were
written, and the reason is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyc.analysis.dependences import Dependences
from polyc.loops.lower.lower import Lowered
from polyc.loops.lower.order import original_tree
from polyc.loops.schedule.inner import Order
from polyc.loops.schedule.tile import Shaping, declare_scopes
from polyc.poly.context import isl_options, operation_budget
from polyc.schedule.legality import find_broken, union_domain
from polyc.target.machine import Target


@dataclass(frozen=True)
class LoopSchedule:
    """A schedule tree; who it is by, and what a reader should know of it.

    boxed: the statements that keep boxes of results in registers.
    """

    tree: isl.Schedule
    origin: str
    notes: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()


def keep_order(
    lowered: Lowered, dependences: Dependences, target: Target, reason: str
) -> LoopSchedule:
    """The loops as they were written, with those in parallel and in lanes that carry nothing."""
    domains = {s.name: s.domain for s in lowered.bare.statements}
    why = f"isl's schedule is not used: {reason}"
    tree = original_tree(lowered.order, domains)
    return _shaped(lowered, dependences, target, tree, "the original order", (why,))


def schedule_by_isl(
    lowered: Lowered, dependences: Dependences, target: Target, most: int
) -> LoopSchedule:
    """The bands of isl's scheduler, found within so many operations if any, tiled and shared out.

    The loops as they were written, if it finds none.
    """
    found = _ask_isl(lowered, dependences, most) if most else "it is for sizes that are not usual"
    if isinstance(found, str):
        return keep_order(lowered, dependences, target, found)
    return _shaped(lowered, dependences, target, found, "isl's scheduler", ())


def _shaped(
    lowered: Lowered,
    dependences: Dependences,
    target: Target,
    tree: isl.Schedule,
    origin: str,
    notes: tuple[str, ...],
) -> LoopSchedule:
    order = Order(
        dependences.validity.intersect_params(lowered.sizes),
        dependences.coincidence.intersect_params(lowered.sizes),
    )
    arrays = lowered.bare.arrays.values()
    local = frozenset(a.name for a in arrays if a.kind == "temporary")
    wide = frozenset(a.name for a in arrays if a.name in local and len(a.shape) > 1)
    shaping = Shaping({s.name: s for s in lowered.bare.statements}, order, target, local, wide)
    shaped = declare_scopes(shaping.shape(tree))
    told = tuple(f"in parallel: {how}" for how in shaping.parallel) or ("on one thread",)
    if shaping.boxed:
        told = (*told, f"boxes in registers: {', '.join(shaping.boxed)}")
    return LoopSchedule(shaped, origin, (*notes, *told), tuple(shaping.boxed))


def _ask_isl(lowered: Lowered, dependences: Dependences, most: int) -> isl.Schedule | str:
    """isl's schedule; or why there is none."""
    domain = union_domain(lowered.bare.statements)

    def simple(relation: isl.UnionMap) -> isl.UnionMap:
        return relation.gist_params(lowered.sizes).coalesce().drop_unused_params()

    constraints = (
        isl.ScheduleConstraints.on_domain(domain.drop_unused_params())
        .set_validity(simple(dependences.validity))
        .set_coincidence(simple(dependences.validity))
        .set_proximity(simple(dependences.flow))
    )
    options = {"schedule_maximize_band_depth": 1, "schedule_maximize_coincidence": 1}
    try:
        with operation_budget(most), isl_options(**options):
            tree = constraints.compute_schedule()
    except isl.Error as error:
        return f"isl stopped ({str(error).splitlines()[0]})"
    if find_broken(tree, dependences.validity.intersect_params(lowered.sizes)) is not None:
        return "it breaks a dependence"
    return tree
