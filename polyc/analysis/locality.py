"""Locals: an array that lives in private storage behaves as if it had memory of its own.

A `Local` exists anew in every execution of its block, that is, for every value p of the counters of
the loops around it. It may hold an array A if

    every flow dependence through A has equal p at both ends        (no value is lost in between)
    for equal p:  equal elements of A  <=>  equal places            (no value is overwritten)

The second holds for all pairs of accesses to the local, reads and writes alike; it is evident where
all of them go to the element's own place, moved by an amount that p decides. A local in the
registers of a GPU's threads exists once a thread besides: then accesses that no thread makes both
of do not meet, and

    every thread that reads a value has written it          (it is in that thread's own copy)

In one that threads share, a place may change its element where the first one is dead:

    a write to the place of an element comes before the write of that element, or after its reads
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations_with_replacement, takewhile

import islpy as isl

from polyc.analysis.accesses import Access, Surroundings
from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.legality import Executions, instances, show_instances
from polyc.analysis.threads import executing_threads, holding_threads
from polyc.analysis.timemap import Execution, Private, shared_loops
from polyc.loopnest.nodes import Element
from polyc.loopnest.show import show_element

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def check_locals(
    around: Surroundings,
    executions: Executions,
    accesses: Sequence[Access],
    dependences: Dependences,
) -> int:
    """Every array in a local keeps its values; gives the number of locals in use."""
    holders: dict[tuple[str, int], Private] = {}
    groups: dict[tuple[int, str], list[Access]] = {}
    for access in accesses:
        if access.private:
            user = (access.array, access.execution.position)
            if holders.setdefault(user, access.private) != access.private:
                raise around.illegal(f"one assignment uses two locals for {access.array}")
            key = (access.private.number, access.private.local.name)
            groups.setdefault(key, []).append(access)
    _check_flow(around, executions, holders, dependences)
    shared = any(private.local.space == "shared" for private in holders.values())
    lives = _find_lives(executions, dependences) if shared else {}
    for group in groups.values():
        accesses = _distinct(group)
        if _are_moved(accesses):
            continue
        for a, b in combinations_with_replacement(accesses, 2):
            _check_places(around, a, b, lives)
    return len(groups)


def _distinct(group: Sequence[Access]) -> list[Access]:
    """The accesses that differ in place or meaning; equal ones once, at all of their points."""
    alike: dict[tuple[int, Element], list[Access]] = {}
    for access in group:
        same = alike.setdefault((id(access.execution), access.element), [])
        for k, other in enumerate(same):
            if access.index.plain_is_equal(other.index):
                if not access.points.is_subset(other.points):
                    same[k] = replace(other, points=other.points.union(access.points))
                break
        else:
            same.append(access)
    return [access for accesses in alike.values() for access in accesses]


def _are_moved(group: Sequence[Access]) -> bool:
    """Whether places are the elements themselves, moved by one and the same amount.

    place_j(t) = element_k(t) - corner_k(p)    for all accesses, with a j of its own for each k

    Where p is equal, then, equal elements are in equal places, and no others are: for each pair of
    accesses that need not be asked any more. The amount is a function of p alone, the counters of
    the loops around the block.
    """
    private = group[0].private
    assert private is not None
    rank = group[0].index.dim(OUT)
    corners: dict[tuple[int, int], isl.PwAff] = {}
    for access in group:
        if access.place.dim(OUT) != rank:
            return False
        if not (access.index.isa_multi_aff() and access.place.isa_multi_aff()):
            return False
        every = ((k, j) for k in range(rank) for j in range(rank))
        pairs = every if access is group[0] else corners
        found = {pair: _find_corner(access, pair, private.depth) for pair in pairs}
        corners = {
            pair: corner
            for pair, corner in found.items()
            if corner is not None and corner.plain_is_equal(corners.get(pair, corner))
        }
    return _can_pair(rank, corners.keys())


def _find_corner(access: Access, pair: tuple[int, int], depth: int) -> isl.PwAff | None:
    """# p -> Z: for (k, j), element_k - place_j; None where p alone does not decide it."""
    k, j = pair
    deeper = access.points.dim(isl.dim_type.set) - depth
    more = access.index.get_pw_aff(k).sub(access.place.get_pw_aff(j))
    return None if more.involves_dims(IN, depth, deeper) else more.drop_dims(IN, depth, deeper)


def _can_pair(rank: int, pairs: Set[tuple[int, int]], taken: frozenset[int] = frozenset()) -> bool:
    """Whether each dimension of the elements can be paired with one of the places."""
    k = len(taken)
    return k == rank or any(
        _can_pair(rank, pairs, taken | {j})
        for j in range(rank)
        if j not in taken and (k, j) in pairs
    )


def _check_flow(
    around: Surroundings,
    executions: Executions,
    holders: Mapping[tuple[str, int], Private],
    dependences: Dependences,
) -> None:
    """Values that go through a local stay in one execution of its block."""
    written = {s.name: s.array for s in around.scop.statements}
    for source, sink, dependence in maps(dependences.flow):
        array = written[source]
        if array in around.parameters:
            continue
        for a, b, pairs in instances(dependence, executions[source], executions[sink]):
            held, used = holders[array, a.position], holders[array, b.position]
            if held != used:
                rule = f"{array} is written to one local and read from another"
                raise around.illegal(rule, show_instances(pairs, a, b))
            if held.local.space == "register":
                _check_threads(around, held, a, b, pairs)
            for k in range(held.depth):
                leaving = pairs.order_lt(IN, k, OUT, k).union(pairs.order_gt(IN, k, OUT, k))
                if not leaving.is_empty():
                    name = a.place.loops[k].var
                    rule = f"a value leaves {held.local.name}, which is private to loop {name}"
                    raise around.illegal(rule, show_instances(leaving, a, b))


def _check_threads(
    around: Surroundings, held: Private, a: Execution, b: Execution, pairs: isl.Map
) -> None:
    """Each thread that executes b has executed what b needs of a; pairs  # L_a -> L_b."""
    wrote = pairs.domain_map().apply_range(executing_threads(a))  # [L_a -> L_b] -> t
    reads = pairs.range_map().apply_range(
        executing_threads(b, b.statement.array != held.local.source)
    )
    missing = reads.subtract(wrote)
    if not missing.is_empty():
        rule = f"a thread reads from its {held.local.name} what another has written"
        raise around.illegal(rule, show_instances(missing.domain().unwrap(), a, b))


Lives = Mapping[int, Sequence[tuple[Execution, isl.Map]]]
"""Position of a reader -> who writes what it reads, and when: L_a -> L_b."""


def _find_lives(executions: Executions, dependences: Dependences) -> Lives:
    found: dict[int, list[tuple[Execution, isl.Map]]] = {}
    for source, sink, dependence in maps(dependences.flow):
        for a, b, pairs in instances(dependence, executions[source], executions[sink]):
            found.setdefault(b.position, []).append((a, pairs))
    return found


def _check_places(around: Surroundings, a: Access, b: Access, lives: Lives) -> None:
    """Two accesses to a local meet in the same place if and only if they mean the same element.

    Or else, in shared memory, no element is written to a place while another is alive there.
    """
    assert a.private is not None
    same_element = _meeting(a.index, b.index, a, b)  # L_a -> L_b
    same_place = _meeting(a.place, b.place, a, b)  # L_a -> L_b
    if same_element.is_equal(same_place):
        return
    where = f"{show_element(a.element)} and {show_element(b.element)}"
    apart, clash = same_element.subtract(same_place), same_place.subtract(same_element)
    if a.private.local.space == "shared" and apart.is_empty():
        shared = ((a, b, clash), (b, a, clash.reverse()))
        if not any(_overwrites(one, other, met, lives) for one, other, met in shared):
            return
    rule, pairs = (
        (f"{where} are different places for one element of {a.array}", apart)
        if clash.is_empty()
        else (f"{where} are one place for different elements of {a.array}", clash)
    )
    raise around.illegal(rule, show_instances(pairs, a.execution, b.execution))


def _overwrites(a: Access, b: Access, clash: isl.Map, lives: Lives) -> bool:
    """Whether a writes to a place that b reads, between the write of what b reads and b.

    clash: # L_a -> L_b. Compared are the loops around the threads, and then the order of the text;
    who is in the same iteration, at the same place of the text, counts as between.
    """
    is_read = b.element is not b.execution.assign.target or b.execution.assign.reduction
    if a.element is not a.execution.assign.target or not is_read:
        return False
    late = clash.intersect(_not_after(a.execution, b.execution))
    for writer, pairs in lives.get(b.execution.position, ()):
        if writer.statement.array != b.array:
            continue
        # L_w -> L_b by way of a, where w wrote for b
        between = _not_after(writer, a.execution).apply_range(late)
        if not between.intersect(pairs).is_empty():
            return True
    return False


def _not_after(a: Execution, b: Execution) -> isl.Map:
    """# L_a -> L_b: a comes before b, or both are in one loop over threads, or one assignment."""
    shared = shared_loops(a, b)
    outside = list(takewhile(lambda loop: loop.kind not in ("thread", "combine"), shared))
    same = isl.Map.from_domain_and_range(a.points, b.points)
    found = isl.Map.empty(same.space)
    for k, loop in enumerate(outside):
        found = found.union(same.order_lt(IN, k, OUT, k))
        if loop.kind != "sequential":  # in no order
            found = found.union(same.order_gt(IN, k, OUT, k))
        same = same.equate(IN, k, OUT, k)
    together = len(outside) < len(shared)
    return found.union(same) if together or a.position <= b.position else found


def _meeting(f: isl.PwMultiAff, g: isl.PwMultiAff, a: Access, b: Access) -> isl.Map:
    """# L_a -> L_b: pairs with f(t) = g(t') in one execution of the block."""
    assert a.private is not None
    equal = isl.Map.identity(f.space.range().map_from_set())
    pairs = equal.preimage_domain_pw_multi_aff(f).preimage_range_pw_multi_aff(g)
    for k in range(a.private.depth):
        pairs = pairs.equate(IN, k, OUT, k)
    if a.private.local.space == "register":
        one, other = (holding_threads(access) for access in (a, b))
        pairs = pairs.intersect(one.apply_range(other.reverse()))
    return pairs.intersect_domain(a.points).intersect_range(b.points)
