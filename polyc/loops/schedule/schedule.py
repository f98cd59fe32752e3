"""In which order a kernel's instances are executed: as a schedule tree, and how it came about.

isl's scheduler decides: its bands, with shifts and skews, are taken as they come (Verdoolaege and
Janssens 2017, "Scheduling for PPCG"; after Bondhugula et al. 2008, "A practical automatic
polyhedral parallelizer and locality optimizer", section 3). It is asked about the bare scop, whose
relations are simple. Where it fails, or runs out of operations, the loops stay as they were
written, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

import islpy as isl

from polyc.analysis.conflicts import order_but_sums
from polyc.analysis.dependences import Dependences, compute_dependences, maps
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.order import innermost_bodies, original_tree
from polyc.loops.schedule.at_sizes import at_sizes
from polyc.loops.schedule.attach import attach_beginnings
from polyc.loops.schedule.blocks import Sharing
from polyc.loops.schedule.inner import Order, deepest
from polyc.loops.schedule.places import at_first_places, ends_by_data, insert_places
from polyc.loops.schedule.strips import cut_at_functions
from polyc.loops.schedule.tile import Shaping, declare_scopes
from polyc.poly.coalesce import coalesce
from polyc.poly.context import isl_options, operation_budget
from polyc.schedule.legality import find_broken, union_domain
from polyc.target.machine import Target


@dataclass(frozen=True)
class LoopSchedule:
    """A schedule tree; who it is by, and what a reader should know of it.

    boxed: the statements that keep boxes of results in registers. strip: the most iterations that a
    loop around others runs in lanes at a time, if any does; the last ones are fewer. alone: the
    statements inside of the most loops that run in no lanes. kept: by mark of the tree, the only
    locals that may live there. shared: those that the threads of a GPU's block share.
    """

    tree: isl.Schedule
    origin: str
    notes: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()
    strip: int = 0
    alone: tuple[str, ...] = ()
    kept: Mapping[str, Collection[str] | None] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()


MOST_PIECES = 48
"""Of the dependences between two statements. All those of a kernel of PolyBench have up to 123; of
100 between two, as clipped and periodic subscripts of three loops have, isl thinks for minutes, and
the operations that it may use do not stop it.
"""

NO_SCHEDULE = "it is for sizes that are not usual"
ENDED_BY_DATA = "data says where a loop ends"


def keep_order(
    lowered: Lowered, dependences: Dependences, target: Target, reason: str
) -> LoopSchedule:
    """The loops as they were written, with those in parallel and in lanes that carry nothing."""
    tree, why = _original(lowered, reason)
    strips = reason != NO_SCHEDULE
    return _shaped(lowered, dependences, target, tree, "the original order", why, strips)


def _original(lowered: Lowered, reason: str) -> tuple[isl.Schedule, tuple[str, ...]]:
    """The loops as they were written, and why."""
    domains = {s.name: s.domain for s in lowered.bare.statements}
    why = f"isl's schedule is not used: {reason}"
    return original_tree(lowered.order, domains), (why,)


def schedule_by_isl(
    lowered: Lowered, dependences: Dependences, target: Target, most: int
) -> LoopSchedule:
    """The bands of isl's scheduler, found within so many operations if any, tiled and shared out.

    The loops as they were written, if it finds none.
    """
    if ends_by_data(lowered):
        return keep_order(lowered, dependences, target, ENDED_BY_DATA)
    order = order_but_sums(lowered.bare, dependences)
    firsts = at_first_places(lowered.bare.statements)
    found = _ask_isl(lowered, dependences, order, most, firsts) if most else NO_SCHEDULE
    if isinstance(found, str):
        return keep_order(lowered, dependences, target, found)
    found = attach_beginnings(found, order.intersect_params(lowered.sizes))
    return _shaped(lowered, dependences, target, found, "isl's scheduler", ())


def keep_order_on_gpu(lowered: Lowered, dependences: Dependences, reason: str) -> LoopSchedule:
    """The loops as they were written; those that carry nothing over blocks and threads."""
    tree, why = _original(lowered, reason)
    return _shared(lowered, dependences, tree, "the original order", why)


@dataclass(frozen=True)
class Found:
    """What isl has found for a kernel and any sizes: a tree, or why there is none."""

    tree: isl.Schedule | str

    def at(
        self, lowered: Lowered, dependences: Dependences, values: Mapping[str, int]
    ) -> isl.Schedule | None:
        """The tree for sizes of which these are the values; None if it is of no use there."""
        if isinstance(self.tree, str):
            return None
        domains = {s.name: s.domain for s in lowered.bare.statements}
        tree = at_sizes(self.tree, domains, values)
        broken = tree is not None and find_broken(tree, dependences.validity) is not None
        return None if broken else tree


def find_for_gpu(lowered: Lowered, most: int) -> Found:
    """isl's tree for any sizes, within so many operations.

    It is asked for outer loops that carry nothing, and where there are none for one that carries as
    much as it can, so that those inside are free (PPCG; Verdoolaege et al. 2013, section 5). Loops
    over places that data picks carry nothing: threads have places, and look at all that is written.
    """
    wishes = {"schedule_outer_coincidence": 1}
    dependences = compute_dependences(lowered.bare)
    return Found(_ask_isl(lowered, dependences, dependences.validity, most, wishes=wishes))


def schedule_for_gpu(
    lowered: Lowered, dependences: Dependences, found: Found, values: Mapping[str, int]
) -> LoopSchedule:
    """The bands that isl has found, shared out among blocks and threads; values: of the sizes."""
    tree = found.at(lowered, dependences, values)
    if tree is None:
        reason = found.tree if isinstance(found.tree, str) else "it does not fit these sizes"
        return keep_order_on_gpu(lowered, dependences, reason)
    return _shared(lowered, dependences, tree, "isl's scheduler", ())


def _shared(
    lowered: Lowered,
    dependences: Dependences,
    tree: isl.Schedule,
    origin: str,
    notes: tuple[str, ...],
) -> LoopSchedule:
    sharing = Sharing({s.name: s for s in lowered.bare.statements}, dependences.validity)
    shaped = insert_places(sharing.shape(tree), sharing.statements)
    return LoopSchedule(shaped, origin, (*notes, *(sharing.shared or ("by one thread",))))


def _shaped(
    lowered: Lowered,
    dependences: Dependences,
    target: Target,
    tree: isl.Schedule,
    origin: str,
    notes: tuple[str, ...],
    in_strips: bool = False,
) -> LoopSchedule:
    strict = order_but_sums(lowered.bare, dependences).intersect_params(lowered.sizes)
    sums = dependences.reductions.intersect_params(lowered.sizes)
    order = Order(strict, sums)
    arrays = lowered.bare.arrays.values()
    local = frozenset(a.name for a in arrays if a.kind == "temporary")
    wide = frozenset(a.name for a in arrays if a.name in local and len(a.shape) > 1)
    statements = {s.name: s for s in lowered.bare.statements}
    shaping = Shaping(statements, order, target, local, wide, in_strips, lowered.left)
    shaped, width = cut_at_functions(shaping.shape(tree), statements, target)
    shaped = insert_places(declare_scopes(shaped), statements)
    told = tuple(f"in parallel: {how}" for how in shaping.parallel) or ("on one thread",)
    if shaping.strips:
        told = (*told, f"in strips: {', '.join(shaping.strips)}")
    if shaping.boxed:
        told = (*told, f"boxes in registers: {', '.join(shaping.boxed)}")
    inmost = deepest([*statements], statements)
    alone = tuple(name for name in shaping.alone if name in inmost)
    boxed = tuple(shaping.boxed)
    strip = max([width, *shaping.strips.values()])
    return LoopSchedule(shaped, origin, (*notes, *told), boxed, strip, alone)


def _side_by_side(lowered: Lowered, order: isl.UnionMap) -> isl.UnionMap:
    """# S -> T: equal iterations of statements of a loop that read one array and wait for none.

    isl keeps loops together where one hands values to the other. It would take these apart, and
    what they both read would come from memory twice.
    """
    waiting = {name for source, target, _ in maps(order) for name in (source, target)}
    statements = {s.name: s for s in lowered.bare.statements}
    arrays = {name for name, array in lowered.bare.arrays.items() if array.shape}
    found = isl.UnionMap("{ }")
    for names in innermost_bodies(lowered.order):
        free = [statements[name] for name in names if name not in waiting]
        for one, other in pairwise(s for s in free if s.reduction is None):
            if arrays & {x.array for x in one.loads} & {x.array for x in other.loads}:
                points = one.domain.set_tuple_name(other.name).intersect(other.domain)
                same = points.set_tuple_name(one.name).identity()
                found = found.union(same.set_tuple_name(isl.dim_type.out, other.name))
    return found


def _ask_isl(
    lowered: Lowered,
    dependences: Dependences,
    order: isl.UnionMap,
    most: int,
    firsts: isl.UnionPwMultiAff | None = None,
    wishes: Mapping[str, int] = MappingProxyType({}),
) -> isl.Schedule | str:
    """isl's schedule; or why there is none.

    order  # S -> T: what it keeps; what else depends on each other is not in parallel. firsts
    # S -> S: to the instances that stand for others, whose order is left open (`places.py`).
    wishes: options of isl besides the usual ones.
    """
    whole = domain = union_domain(lowered.bare.statements)
    if max((each.n_basic_map() for _, _, each in maps(order)), default=0) > MOST_PIECES:
        return "the dependences are too many cases"

    def simple(relation: isl.UnionMap) -> isl.UnionMap:
        if firsts is not None:
            same = isl.UnionMap.from_union_pw_multi_aff(firsts)
            relation = relation.apply_domain(same).apply_range(same)
        return coalesce(relation.gist_params(lowered.sizes)).drop_unused_params()

    close = dependences.without_reductions(dependences.flow).union(_side_by_side(lowered, order))
    if firsts is not None:
        domain = domain.apply(isl.UnionMap.from_union_pw_multi_aff(firsts))
    constraints = (
        isl.ScheduleConstraints.on_domain(domain.drop_unused_params())
        .set_validity(simple(order))
        .set_coincidence(simple(order.union(dependences.reductions)))
        .set_proximity(simple(close))
    )
    options = {"schedule_maximize_band_depth": 1, "schedule_maximize_coincidence": 1}
    try:
        with operation_budget(most), isl_options(**options, **wishes):
            tree = constraints.compute_schedule()
    except isl.Error as error:
        return f"isl stopped ({str(error).splitlines()[0]})"
    if firsts is not None:
        tree = tree.pullback_union_pw_multi_aff(firsts).intersect_domain(whole)
    in_order = insert_places(tree, {s.name: s for s in lowered.bare.statements})
    if find_broken(in_order, order.intersect_params(lowered.sizes)) is not None:
        return "it breaks a dependence"
    return tree
