"""The innermost loop of a band: along which member, of which statements, and in lanes or not.

Where statements hand each other values from one iteration to the next, each may get a loop of its
own, if no dependence runs back from a later one to an earlier one while outer loops stand still:

    for j: B[j] = A[j - 1] + A[j + 1]; A'[j] = B[j]     ->     for j: B[j] = …;  for j: A'[j] = …

Such loops carry nothing, and have bounds of their own in place of conditions. Statements that hand
each other a local stay together: it would else be a row of memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from polyc.analysis.dependences import maps
from polyc.loops.schedule.band import Band, names_of
from polyc.loops.schedule.direction import (
    direction,
    equal_values,
    rows_of,
    score,
    stride_along,
)
from polyc.loops.schedule.hyperplane import cut_at_hyperplane
from polyc.loops.schedule.short import insert_short
from polyc.scop.expr import BOOL, Call, Cast, walk
from polyc.scop.picks import find_picks
from polyc.scop.scop import Statement

SUMS = ("add", "mul", "larger", "smaller")
"""Reductions that lanes share; the C compiler sees to the least and largest of whole numbers."""

IN_LANES = 6
"""What a statement in lanes is worth beside how well its accesses run (`direction.SCORES`)."""


SLOW = ("div", "sqrt")
SLOW_IN_LANES = 8
"""What it is worth to have a slow operation of floats in lanes. A core divides eight doubles in 8
to 16 cycles, and one in 4 to 5."""


@dataclass(frozen=True)
class Order:
    """What must stay in order, and `sums`, whose instances only may not run at the same time.

    Lanes share sums.
    """

    strict: isl.UnionMap  # S -> T
    sums: isl.UnionMap  # S -> S

    @cached_property
    def validity(self) -> isl.UnionMap:
        """# S -> T: what may not run at the same time."""
        return self.strict.union(self.sums)


@dataclass(frozen=True)
class Group:
    """Statements that share an innermost loop; whether it runs in lanes, and these share a sum.

    part: those of their instances that it executes, if not all (`hyperplane.py`).
    """

    names: tuple[str, ...]
    lanes: bool
    sums: bool = False
    part: isl.UnionSet | None = None

    def instances(self, domain: isl.UnionSet) -> isl.UnionSet:
        """What it executes of a domain, whose bounds are left out."""
        return _universe(domain, self.names) if self.part is None else self.part


@dataclass(frozen=True)
class Inner:
    """The members of a band, the innermost last, and the loops that it becomes, in order."""

    order: list[int]
    groups: tuple[Group, ...]


def choose_inner(
    node: isl.ScheduleNode,
    band: Band,
    statements: Mapping[str, Statement],
    order: Order,
    local: frozenset[str],
) -> Inner:
    """The best innermost member of a band with no band below it; `local` are names of locals."""
    return _best(node, band, statements, order, local, frozenset(band.names))


def choose_deepest(
    node: isl.ScheduleNode,
    band: Band,
    statements: Mapping[str, Statement],
    order: Order,
    local: frozenset[str],
) -> Inner:
    """The same for those statements alone that have the most loops around them."""
    return _best(node, band, statements, order, local, deepest(band.names, statements))


def deepest(names: Collection[str], statements: Mapping[str, Statement]) -> frozenset[str]:
    """Those of some statements that are inside of the most loops."""
    depth = max(len(statements[name].iterators) for name in names)
    return frozenset(name for name in names if len(statements[name].iterators) == depth)


def _best(
    node: isl.ScheduleNode,
    band: Band,
    statements: Mapping[str, Statement],
    order: Order,
    local: frozenset[str],
    names: frozenset[str],
) -> Inner:
    """The best innermost member for some statements, and those that have to be with them."""
    candidates = band.order if band.is_permutable else band.order[-1:]
    outer = node.get_prefix_schedule_union_map()
    free = passing(band, statements, local)
    plans = []
    for k in candidates:
        rows = _moving(local, [statements[n] for n in band.names], outer, band, k)
        bundles = bundles_of(leaf_order(node), statements, rows)
        chosen = [bundle for bundle in bundles if names & {*bundle}]
        plans.append(_plan(node, band, k, statements, order, chosen, free))
    # Lanes that share no sum have nothing to add up at the end of a short loop.
    apart = [not any(group.sums for group in inner.groups) for _, inner in plans]
    ranked = zip(plans, apart, strict=True)
    (_, best), _ = max(ranked, key=lambda each: (each[0][0], each[1], each[0][1].order[-1]))
    return best


def _moving(
    local: frozenset[str],
    statements: Sequence[Statement],
    outer: isl.UnionMap,
    band: Band,
    member: int,
) -> frozenset[str]:
    """The locals of which a loop over a member goes through several elements."""
    found = set()
    for s in statements:
        if not any(any(row) for row in rows_of(band.member(member), s)):
            continue  # it has one iteration there
        moves = moves_along(s, outer, band, member)
        for array, index in ((s.array, s.write), *((x.array, x.index) for x in s.loads)):
            if array in local and (moves is None or stride_along(index, moves) != 0):
                found.add(array)
    return frozenset(found)


def passing(
    band: Band, statements: Mapping[str, Statement], local: frozenset[str]
) -> frozenset[str]:
    """The locals that have an element for each iteration, and are touched in the band alone.

    They are registers, whichever member is innermost.
    """
    left = set(local)
    for name, s in statements.items():
        for array, index in ((s.array, s.write), *((x.array, x.index) for x in s.loads)):
            if name not in band.names or index.dim(isl.dim_type.out) < len(s.iterators):
                left.discard(array)
    return frozenset(left)


def _plan(
    node: isl.ScheduleNode,
    band: Band,
    member: int,
    statements: Mapping[str, Statement],
    order: Order,
    bundles: Sequence[tuple[str, ...]],
    free: frozenset[str],
) -> tuple[tuple[int, int], Inner]:
    """What it is worth to some statements to have a member innermost, and how.

    Worth to those inside of the most loops, which run by far the most often, and to all. free: the
    locals that cost nothing, as no iteration leaves them to another.
    """
    names = [name for bundle in bundles for name in bundle]
    domain = only(node.get_domain(), names)
    outer = node.get_prefix_schedule_union_map()
    held = outer.intersect_domain(domain)
    for k in band.order:
        if k != member:
            held = held.flat_range_product(band.member(k))
    inside = order.validity.intersect_domain(domain).intersect_range(domain)
    pairs = inside.intersect(equal_values(held))
    carried = pairs.subtract(equal_values(band.member(member)))
    bound = {s for s, t, _ in maps(carried.intersect(order.strict)) if s == t}
    moves = {name: moves_along(statements[name], outer, band, member) for name in names}
    scores = {name: score(statements[name], moves[name], free) for name in names}
    sums = (name for name in names if _is_sum(statements[name], moves[name]))
    summed = {name for name in sums if name not in bound}
    time = held.flat_range_product(band.member(member)).intersect_domain(domain)
    gains = {name: scores[name] + _arithmetic(statements[name]) for name in names}
    # Lanes would write at places that data picks, each at its own.
    barred = {name for name in names if find_picks(statements[name])}
    groups = _groups(bundles, time, pairs, carried, gains, summed, barred)
    if len(names) == 1 and not groups[0].lanes and scores[names[0]] > 0 and not barred:
        cut = cut_at_hyperplane(carried, moves[names[0]])
        groups = tuple(Group(groups[0].names, lanes, part=part) for part, lanes in cut) or groups
    in_lanes = {name for group in groups if group.lanes for name in group.names}
    worth = {name: scores[name] + IN_LANES * (name in in_lanes) for name in names}
    inmost = sum(worth[name] for name in deepest(names, statements))
    others = [k for k in band.order if k != member]
    return (inmost, sum(worth.values())), Inner([*others, member], groups)


def _arithmetic(statement: Statement) -> int:
    """What a statement computes, in units of what accesses are worth (`direction.SCORES`)."""
    worth = int(statement.reduction is not None)
    for e in walk(statement.value):
        if isinstance(e, Cast | Call):
            slow = isinstance(e, Call) and e.function in SLOW and e.dtype.kind == "f"
            worth += SLOW_IN_LANES if slow else 1
    return worth


def moves_along(
    statement: Statement, outer: isl.UnionMap, band: Band, member: int
) -> tuple[int, ...] | None:
    """How a statement's iterators move along a member."""
    rows = [row for row in rows_of(outer, statement) if None not in row]  # tiles stand still
    return direction([*rows, *band.rows(statement)], len(rows) + member)


def _is_sum(statement: Statement, moves: Sequence[int] | None) -> bool:
    """Whether a statement reduces to one element along a direction, as lanes can: each to its own
    partial result (`codegen/accumulate.py`)."""
    return (
        moves is not None
        and statement.reduction in SUMS
        and statement.value.dtype != BOOL
        and stride_along(statement.write, moves) == 0
    )


def leaf_order(node: isl.ScheduleNode) -> list[str]:
    """The statements below a node, in the order in which an iteration executes them."""
    if node.n_children() == 0:
        return list(names_of(node))
    found: list[str] = []
    for k in range(node.n_children()):
        found += leaf_order(node.child(k))
    return found


def bundles_of(
    names: Sequence[str], statements: Mapping[str, Statement], local: frozenset[str]
) -> list[tuple[str, ...]]:
    """The statements with those together that touch one local."""
    touched = {
        name: local & {statements[name].array, *(x.array for x in statements[name].loads)}
        for name in names
    }
    bundles: list[list[str]] = []
    for name in names:
        joined = [b for b in bundles if any(touched[name] & touched[other] for other in b)]
        bundles = [b for b in bundles if b not in joined]
        bundles.append([n for n in names if n == name or any(n in b for b in joined)])
    return [tuple(b) for b in bundles]


def _groups(
    bundles: Sequence[tuple[str, ...]],
    time: isl.UnionMap,
    pairs: isl.UnionMap,
    carried: isl.UnionMap,
    gains: Mapping[str, int],
    summed: Collection[str],
    barred: Collection[str],
) -> tuple[Group, ...]:
    """The loops of some bundles of statements, in order; one of them all if that is as good.

    gains: what lanes are to each statement, which is less than nothing if memory is walked so badly
    that loads one by one take longer than the arithmetic that lanes save. summed: the statements
    whose own dependences lanes can do without, if they are alone; barred: those that lanes cannot
    execute.
    """
    names = tuple(name for bundle in bundles for name in bundle)
    broken = {(s, t) for s, t, _ in maps(carried)}
    free = not broken or (len(names) == 1 and names[0] in summed)
    lanes = free and not barred and sum(gains.values()) > 0
    together = Group(names, lanes, lanes and bool(broken))
    if len(bundles) == 1 or (free and _run_together(time)):
        return (together,)
    home = {name: k for k, bundle in enumerate(bundles) for name in bundle}
    edges = {(home[s], home[t]) for s, t, _ in maps(pairs) if home[s] != home[t]}
    order = _topological(len(bundles), edges)
    if order is None:
        return (together,)
    alone = {bundle[0] for bundle in bundles if len(bundle) == 1 and bundle[0] in summed}
    bound = {home[s] for s, t in broken if home[s] == home[t] and s not in alone}
    groups = []
    for k in order:
        can = k not in bound and not any(n in barred for n in bundles[k])
        lanes = can and sum(gains[n] for n in bundles[k]) > 0
        groups.append(Group(bundles[k], lanes, lanes and bundles[k][0] in alone))
    return tuple(groups)


def _run_together(time: isl.UnionMap) -> bool:
    """Whether all statements have the same iterations: one loop for them needs no conditions."""
    ranges = [each.range() for _, _, each in maps(time)]
    return all(ranges[0].is_equal(other) for other in ranges[1:])


def _topological(count: int, edges: set[tuple[int, int]]) -> list[int] | None:
    """Numbers in an order in which all edges run forwards; None if there is none."""
    left, order = list(range(count)), []
    while left:
        ready = next((n for n in left if not any((m, n) in edges for m in left)), None)
        if ready is None:
            return None
        left.remove(ready)
        order.append(ready)
    return order


def insert_inner(
    node: isl.ScheduleNode, band: Band, inner: Inner
) -> tuple[isl.ScheduleNode, list[str]]:
    """The band at its node as chosen; gives the marks of the members that are left there.

    band [t, j] over { S, T }   ->   band [t] over sequence { S: band [j], T: band [j] }
    """
    node = band.insert(node, inner.order)
    count = len(inner.order)
    if len(inner.groups) == 1:
        return node, [*[""] * (count - 1), "simd" if inner.groups[0].lanes else ""]
    last = node.band_split(count - 1).child(0) if count > 1 else node
    last = last.cut()
    domain = last.get_domain()
    filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(inner.groups))
    for group in inner.groups:
        filters = filters.add(group.instances(domain))
    last = last.insert_sequence(filters)
    function = band.functions[inner.order[-1]]
    for k, group in enumerate(inner.groups):
        own = function.intersect_domain(_universe(domain, group.names))
        leaf = (
            last.child(k)
            .child(0)
            .insert_partial_schedule(isl.MultiUnionPwAff.from_union_pw_aff(own))
        )
        leaf = in_sequence(leaf.child(0), domain, group.names, band.short).parent()
        if group.lanes:
            leaf = leaf.insert_mark(isl.Id("simd"))
        last = leaf.ancestor(2)
    return (last.parent() if count > 1 else last), [""] * (count - 1)


def in_sequence(
    leaf: isl.ScheduleNode,
    domain: isl.UnionSet,
    names: Sequence[str],
    short: Sequence[isl.UnionPwAff] = (),
) -> isl.ScheduleNode:
    """A leaf with its statements one after another, inside of short loops if there are any."""
    if short:
        leaf = insert_short(leaf, short)
        return in_sequence(leaf.child(0), domain, names).parent()
    if len(names) == 1:
        return leaf
    filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(names))
    for name in names:
        filters = filters.add(_universe(domain, [name]))
    return leaf.insert_sequence(filters)


def only(domain: isl.UnionSet, names: Collection[str]) -> isl.UnionSet:
    """The instances of some statements."""
    return domain.intersect(_universe(domain, names))


def _universe(domain: isl.UnionSet, names: Collection[str]) -> isl.UnionSet:
    """All instances, real or not, of some statements."""
    sets = domain.get_set_list()
    whole = isl.UnionSet("{ }")
    for k in range(sets.n_set()):
        one = sets.get_at(k)
        if one.get_tuple_name() in names:
            whole = whole.union(isl.UnionSet.from_set(isl.Set.universe(one.get_space())))
    return whole
