"""Completeness and order of generated loops.

Both are decided on the *counter spaces* of executions (see `timemap`): a dependence  S -> T  is
pulled back to  L_a -> L_b  for each pair of executions of S and T, by substitution, and then walked
down the loops that both share:

    for each shared loop, outermost first:
        the dependence must not run backwards in its counter
        nor forwards, if the iterations of the loop run at the same time
        go on with the pairs whose counters are equal
    what is left must be in textual order, and not in two nodes of a concurrent block

Every step is one emptiness test; a strictly ordered outer loop ends the walk. Dependences through
an array that is private to an iteration need no exception: `locality` proves that the values in it
stay inside, hence that nothing is carried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.timemap import Execution, Loop, are_concurrent, shared_loops
from polyc.analysis.witness import illegal, show_first, show_first_pair
from polyc.scop.scop import Scop, Statement

IN, OUT = isl.dim_type.in_, isl.dim_type.out

COMBINING = ("combine", "mma", "wgmma")
"""Kinds of loops in which threads add up what each of them has."""

AT_ONCE = ("vector", "simd", "instruction", "copy", "box", *COMBINING)
"""Kinds of loops whose iterations run at once, and carry nothing but reductions."""

Executions = Mapping[str, Sequence[Execution]]  # statement -> its executions


def check_completeness(kernel: str, scop: Scop, executions: Executions) -> int:
    """Every instance of every statement is executed exactly once, and nothing else.

    Gives the number of statements. The executions of a statement must map their points one to one
    into its domain, to images that do not overlap and that together fill it.
    """
    for statement in scop.statements:
        runs = executions.get(statement.name, ())
        for run in runs:
            _check_inside(kernel, statement, run)
            _check_once(kernel, run)
        images = [_executed(run).range() for run in runs]
        for a, b in combinations(images, 2):
            if not a.is_disjoint(b):
                twice = show_first(a.intersect(b))
                raise illegal(f"kernel {kernel}", "an instance is executed by two copies", twice)
        done = reduce(isl.Set.union, images, isl.Set.empty(statement.domain.space))
        if not statement.domain.is_subset(done):
            missing = show_first(statement.domain.subtract(done))
            raise illegal(f"kernel {kernel}", "an instance is not executed", missing)
    return len(scop.statements)


def check_order(
    kernel: str,
    executions: Executions,
    dependences: Dependences,
    orderless: Collection[str] = (),
    any_order: bool = False,
) -> int:
    """No dependence runs backwards in time, is simultaneous, or is carried by a concurrent loop.

    Sums in `any_order` may run backwards, and so may the reductions of statements that are
    `orderless`. Gives the number of dependence relations. A loop that is
    parallel, or over blocks, carries
    nothing; one over lanes only the reductions, and so does one over threads that combine sums.
    """
    checked = 0
    for relation, is_reduction in (
        (dependences.coincidence, False),
        (dependences.reductions, True),
    ):
        for source, sink, dependence in maps(relation):
            for a, b, pairs in instances(dependence, executions[source], executions[sink]):
                either_way = is_reduction and (any_order or source in orderless)
                _check_pairs(kernel, pairs, a, b, is_reduction, either_way)
            checked += 1
    return checked


def instances(
    dependence: isl.Map, sources: Sequence[Execution], sinks: Sequence[Execution]
) -> Iterator[tuple[Execution, Execution, isl.Map]]:
    """A dependence  S -> T  as relations  L_a -> L_b  between the executions of S and of T."""
    for a in sources:
        ahead = dependence.preimage_domain_pw_multi_aff(a.instance).intersect_domain(a.points)
        for b in sinks:
            pairs = ahead.preimage_range_pw_multi_aff(b.instance).intersect_range(b.points)
            if not pairs.is_empty():
                yield a, b, pairs


def show_instances(pairs: isl.Map, a: Execution, b: Execution) -> str:
    """A pair of counters, shown as the instances executed there: "S[4, 4] -> T[5, 3]"."""
    executed = pairs.apply_domain(a.instance.as_map()).apply_range(b.instance.as_map())
    return show_first_pair(executed)


def _check_pairs(
    kernel: str, pairs: isl.Map, a: Execution, b: Execution, is_reduction: bool, either_way: bool
) -> None:
    """pairs  # L_a -> L_b: must go forwards in time, or either way, but not meet."""
    place = f"kernel {kernel}"
    shared = shared_loops(a, b)
    combined = any(loop.kind in COMBINING for loop in shared)
    for k, loop in enumerate(shared):
        backwards = pairs.order_gt(IN, k, OUT, k)
        if not (backwards.is_empty() or either_way):
            rule = f"loop {loop.var} runs a dependence backwards"
            raise illegal(place, rule, show_instances(backwards, a, b))
        if _is_concurrent(loop, is_reduction, is_reduction and combined):
            carried = pairs.order_lt(IN, k, OUT, k).union(backwards)
            if not carried.is_empty():
                rule = f"{loop.kind} loop {loop.var} carries a dependence"
                raise illegal(place, rule, show_instances(carried, a, b))
        pairs = pairs.equate(IN, k, OUT, k)
        if pairs.is_empty():
            return
    if a is b:
        rule = "a dependence has no time between its ends"
        raise illegal(place, rule, show_instances(pairs, a, b))
    if a.position > b.position and not either_way:
        rule = "a dependence runs against the order of the text"
        raise illegal(place, rule, show_instances(pairs, a, b))
    if are_concurrent(a, b):
        rule = "a dependence joins what runs at the same time"
        raise illegal(place, rule, show_instances(pairs, a, b))


def _is_concurrent(loop: Loop, is_reduction: bool, combined: bool) -> bool:
    """Whether a loop may carry nothing; combined: threads add up their sums."""
    return (
        loop.kind in ("parallel", "block")
        or (loop.kind == "thread" and not combined)
        or (loop.kind in AT_ONCE and not is_reduction)
    )


def _executed(run: Execution) -> isl.Map:
    """# L -> S"""
    return run.instance.as_map().intersect_domain(run.points)


def _check_inside(kernel: str, statement: Statement, run: Execution) -> None:
    if run.points.is_subset(statement.domain.preimage_pw_multi_aff(run.instance)):
        return
    outside = _executed(run).range().subtract(statement.domain)
    rule = f"an instance outside of the domain of {statement.name} is executed"
    raise illegal(f"kernel {kernel}", rule, show_first(outside))


def _check_once(kernel: str, run: Execution) -> None:
    executed = _executed(run)
    if executed.is_injective():
        return
    same = executed.apply_range(executed.reverse())
    repeated = same.subtract(isl.Map.identity(same.space)).domain().apply(run.instance.as_map())
    raise illegal(f"kernel {kernel}", "an instance is executed twice", show_first(repeated))
