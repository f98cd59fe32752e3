"""Scheduling a cluster: isl's scheduler over its shared loops, then each statement's inner loops.

Statements are first *contracted* to the iterators that they share, so that the scheduler sees a
small problem whose dependences are what fusion has to respect; its band is then expanded again:

    domain { S0[i, j], S1[i, j, k], S2[i, j] }
    -> band { S0 -> [i, j]; S1 -> [i, j]; S2 -> [i, j] }          coincident, permutable
       sequence
       ├ filter S0
       ├ filter S1 ─ band { S1 -> [k] }
       └ filter S2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.errors import IllegalSchedule
from polyc.poly.affine import plain_iterator
from polyc.poly.context import isl_options, operation_budget
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Statement

MOST_LOOPS = 10
"""Loops that isl is asked to order: its linear programs grow with them, and what one operation of
isl takes as well, so that a budget of operations does not help. With 11 it took seconds, with 13 it
was stopped after half a minute.
"""


@dataclass(frozen=True)
class OuterBand:
    """The order of a cluster's shared loops, outermost first, and which of them are coincident.

    `loops` and `coincident` speak of positions in `Cluster.shared`. `fallback` says why the textual
    order is used instead of the scheduler's, if it is.
    """

    loops: tuple[int, ...]
    coincident: frozenset[int]
    fallback: str | None = None


def schedule_outer(cluster: Cluster, dependences: Dependences, max_operations: int) -> OuterBand:
    """Let isl's scheduler order the shared loops of a cluster; textual order if it cannot."""
    if all(extent == 1 for extent in cluster.extents):
        return _textual(cluster)  # nothing to order
    if len(cluster.shared) > MOST_LOOPS:
        return _textual(cluster, f"isl does not order more than {MOST_LOOPS} loops in little time")
    contraction = _contraction(cluster)
    try:
        with (
            operation_budget(max_operations),
            isl_options(schedule_maximize_band_depth=1, schedule_maximize_coincidence=1),
        ):
            schedule = _contracted_constraints(cluster, dependences, contraction).compute_schedule()
            band = _read_band(cluster, schedule.get_root())
    except isl.Error as error:
        return _textual(cluster, f"isl stopped: {str(error).splitlines()[0]}")
    if band is None:
        return _textual(cluster, "isl's schedule does not keep the shared loops as one outer band")
    return band


def build_tree(
    cluster: Cluster,
    band: OuterBand,
    order: Sequence[int],
    innermost: Mapping[str, Sequence[str]],
) -> isl.Schedule:
    """The schedule tree of a cluster, its outer band in the given order of shared loops.

    `innermost` lists, for a statement, the iterators that its own inner band ends with. Each
    prelude statement is a nest of its own before the others.
    """
    statements = (*cluster.prelude, *cluster.statements)
    node = isl.Schedule.from_domain(union_domain(statements)).get_root().child(0)
    if cluster.prelude:
        groups = [[s] for s in cluster.prelude] + [list(cluster.statements)]
        node = node.insert_sequence(filters(groups))
        for k, s in enumerate(cluster.prelude):
            inner = _insert_inner(node.child(k).child(0), s, [], innermost.get(s.name, ()))
            node = inner.ancestor(2)
        node = node.child(len(cluster.prelude)).child(0)
    node = _insert_outer(node, cluster, band, order)
    several = len(cluster.statements) > 1
    if several:
        node = node.insert_sequence(filters([[s] for s in cluster.statements]))
    for k, s in enumerate(cluster.statements):
        used = [cluster.shared[d][s.name] for d in order]
        leaf = node.child(k).child(0) if several else node
        inner = _insert_inner(leaf, s, used, innermost.get(s.name, ()))
        node = inner.ancestor(2) if several else inner
    return node.get_schedule()


def outer_band(schedule: isl.Schedule, cluster: Cluster) -> isl.ScheduleNode:
    """The node where `build_tree` put the outer band (or the leaf or sequence, if it is empty)."""
    node = schedule.get_root().child(0)
    return node.child(len(cluster.prelude)).child(0) if cluster.prelude else node


def union_domain(statements: Sequence[Statement]) -> isl.UnionSet:
    """The instances of all statements."""
    domain = isl.UnionSet.from_set(statements[0].domain)
    for s in statements[1:]:
        domain = domain.union(isl.UnionSet.from_set(s.domain))
    return domain


def _contraction(cluster: Cluster) -> isl.UnionMap:
    """# S -> S': keep the shared iterators only."""
    parts = []
    for s in cluster.statements:
        kept = ", ".join(s.iterators[loop[s.name]] for loop in cluster.shared)
        parts.append(f"{s.name}[{', '.join(s.iterators)}] -> {s.name}[{kept}]")
    return isl.UnionMap(f"{{ {'; '.join(parts)} }}")


def _contracted_constraints(
    cluster: Cluster, dependences: Dependences, contraction: isl.UnionMap
) -> isl.ScheduleConstraints:
    """Domain, validity, coincidence and proximity over the contracted statements."""
    domain = union_domain(cluster.statements)

    def contract(relation: isl.UnionMap) -> isl.UnionMap:
        inside = relation.intersect_domain(domain).intersect_range(domain)
        return inside.apply_domain(contraction).apply_range(contraction)

    return (
        isl.ScheduleConstraints.on_domain(domain.apply(contraction))
        .set_validity(contract(dependences.validity))
        .set_coincidence(contract(dependences.coincidence))
        .set_proximity(contract(dependences.flow))
    )


def _read_band(cluster: Cluster, root: isl.ScheduleNode) -> OuterBand | None:
    """The scheduler's outermost band in shared loops, or None if it is not of that form."""
    node = root.child(0)
    if node.get_type() != isl.schedule_node_type.band:
        return None
    partial, domain = node.band_get_partial_schedule(), root.get_domain()
    loops: list[int] = []
    coincident: set[int] = set()
    for member in range(node.band_n_member()):
        walked = _walked_by_all(partial.get_union_pw_aff(member), domain) - set(loops)
        if not walked:
            return None
        loop = min(walked)
        loops.append(loop)
        if node.band_member_get_coincident(member):
            coincident.add(loop)
    missing = [d for d in range(len(cluster.shared)) if d not in loops]
    if any(cluster.extents[d] > 1 for d in missing) or not node.band_get_permutable():
        return None
    return OuterBand((*missing, *loops), frozenset(coincident) | frozenset(missing))


def _walked_by_all(member: isl.UnionPwAff, domain: isl.UnionSet) -> set[int]:
    """The shared loops that a band member walks for every contracted statement: one, or none.

    There are several if all of them have one iteration.
    """
    functions = member.get_pw_aff_list()
    each = [functions.get_at(k) for k in range(functions.n_pw_aff())]
    found = [_walked(f, domain.extract_set(f.get_domain_space())) for f in each]
    return set.intersection(*found)


def _walked(function: isl.PwAff, domain: isl.Set) -> set[int]:
    """The iterators that a function of them equals on a domain.

    Of a statement that has part in one iteration of a loop only, isl may give that as a constant.
    """
    plain = plain_iterator(function)
    if plain is not None:
        return {plain[0]} if plain[1] == 0 else set()
    space = isl.LocalSpace.from_space(domain.get_space())
    iterators = [
        isl.PwAff.var_on_domain(space, isl.dim_type.set, d)
        for d in range(domain.dim(isl.dim_type.set))
    ]
    return {d for d, i in enumerate(iterators) if domain.is_subset(function.eq_set(i))}


def _textual(cluster: Cluster, reason: str | None = None) -> OuterBand:
    """The shared loops as they stand: legal, since aligned iterators carry no dependence."""
    loops = range(len(cluster.shared))
    return OuterBand(tuple(loops), frozenset(loops), reason)


def filters(groups: Sequence[Sequence[Statement]]) -> isl.UnionSetList:
    """The filters of a sequence: the statements of each group, all their instances."""
    found = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(groups))
    for group in groups:
        universe = "; ".join(f"{s.name}[{', '.join(s.iterators)}]" for s in group)
        found = found.add(isl.UnionSet(f"{{ {universe} }}"))
    return found


def _insert_outer(
    node: isl.ScheduleNode, cluster: Cluster, band: OuterBand, order: Sequence[int]
) -> isl.ScheduleNode:
    """Insert the outer band; returns the node below it."""
    if not order:
        return node
    rows = []
    for d in order:
        parts = [
            f"{s.name}[{', '.join(s.iterators)}] -> [({s.iterators[cluster.shared[d][s.name]]})]"
            for s in cluster.statements
        ]
        rows.append(f"{{ {'; '.join(parts)} }}")
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(f"[{', '.join(rows)}]"))
    node = node.band_set_permutable(1)
    for member, d in enumerate(order):
        node = node.band_member_set_coincident(member, int(d in band.coincident))
    return node.child(0)


def _insert_inner(
    node: isl.ScheduleNode, s: Statement, used: Sequence[int], last: Sequence[str]
) -> isl.ScheduleNode:
    """Insert a band over the remaining iterators of a statement, `last` innermost."""
    rest = [i for p, i in enumerate(s.iterators) if p not in used and i not in last]
    members = [*rest, *last]
    if not members:
        return node
    space = f"{s.name}[{', '.join(s.iterators)}]"
    rows = ", ".join(f"{{ {space} -> [({i})] }}" for i in members)
    return node.insert_partial_schedule(isl.MultiUnionPwAff(f"[{rows}]"))


def check_legal(schedule: isl.Schedule, dependences: Dependences, kernel: str) -> None:
    """Raise IllegalSchedule, with a pair of instances, if a dependence does not run forwards."""
    broken = find_broken(schedule, dependences.validity)
    if broken is not None:
        raise IllegalSchedule(
            f"kernel {kernel}: the schedule breaks a dependence: {broken.sample()}; this is a "
            "defect of polyc, not of the model: no code was run"
        )


def find_broken(schedule: isl.Schedule, relation: isl.UnionMap) -> isl.UnionMap | None:
    """Pairs of a relation that a schedule does not execute in order, if there are any.

    # relation: S -> T, time: S -> [t]; time . relation . time^-1 must be lex-positive
    """
    time = schedule.get_map()
    moved = relation.apply_domain(time).apply_range(time)  # [t] -> [t']
    for _, _, each in maps(moved):
        backwards = each.intersect(isl.Map.lex_ge(each.get_space().domain()))
        if not backwards.is_empty():
            guilty = time.apply_range(isl.UnionMap.from_map(backwards)).apply_range(time.reverse())
            return guilty.intersect(relation)
    return None
