"""Dependences of a scop: which instances must stay in order, and why.

Two instances depend on each other when they touch the same element and one of them writes it:

    flow    write -> the reads that see its value     (Feautrier's array dataflow, by isl)
    anti    read  -> every later write
    output  write -> every later write

"Later" is the original order of the scop (`scop/order.py`). A reduction  A[w] op= v  reads and
writes A[w]; the dependences that this alone causes among its own instances are reduction
dependences: they keep their order in a schedule (`validity`), but vector lanes may share them
(`coincidence` is without them). Where v reads A as well, as in  x[i] -= L[i, j] * x[j],  instances
of which one reads what the other updates are not of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from polyc.scop.accesses import read_map, write_map
from polyc.scop.order import before, may_precede, original_order
from polyc.scop.scop import Array, Scop, Statement

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class Dependences:
    """Dependence relations between statement instances, source -> sink.

    `reducing` has the statements with declared reductions, each with the pairs of its instances
    that meet in more than what both update. `uninitialised` holds the reads of elements that
    nothing has written before, leaving out arrays that exist beforehand (inputs and constants).
    """

    flow: isl.UnionMap  # S -> T
    anti: isl.UnionMap  # S -> T
    output: isl.UnionMap  # S -> T
    reducing: Mapping[str, isl.Map]  # S -> S
    uninitialised: isl.UnionMap  # S -> A

    @cached_property
    def validity(self) -> isl.UnionMap:
        """# S -> T: every dependence; a legal schedule keeps all of them in order."""
        return self.flow.union(self.anti).union(self.output).coalesce()

    @cached_property
    def reductions(self) -> isl.UnionMap:
        """# S -> S: the dependences of declared reductions on themselves."""
        own = ((s, m) for s, t, m in maps(self.validity) if s == t and s in self.reducing)
        return union_of(_without(m, self.reducing[s]) for s, m in own)

    @cached_property
    def coincidence(self) -> isl.UnionMap:
        """# S -> T: `validity` without the reductions."""
        return self.without_reductions(self.validity)

    def without_reductions(self, relation: isl.UnionMap) -> isl.UnionMap:
        """Any of the relations (`flow`, `anti`, …) without the self-dependences of reductions."""
        left = (
            m.intersect(self.reducing[s]) if s == t and s in self.reducing else m
            for s, t, m in maps(relation)
        )
        return union_of(m for m in left if not m.is_empty())


def _without(relation: isl.Map, other: isl.Map) -> isl.Map:
    return relation if other.is_empty() else relation.subtract(other)


def compute_dependences(scop: Scop) -> Dependences:
    """The dependences of the scop's original order; exact where no coordinate is data."""
    reads = [(s, a, m) for s in scop.statements for a, m in _reads(s, scop) if _changes(a)]
    writes = [(s, scop.arrays[s.array], write_map(s)) for s in scop.statements]
    flow, uninitialised = _flow(scop, reads, writes)
    return Dependences(
        flow=flow,
        anti=_ordered_pairs(scop, reads, writes),
        output=_ordered_pairs(scop, writes, writes),
        reducing=find_reducing(scop),
        uninitialised=uninitialised,
    )


def find_reducing(scop: Scop) -> Mapping[str, isl.Map]:
    """Statement -> # S -> S: pairs of a declared reduction of which one reads what one updates."""
    found = {}
    for s in scop.statements:
        if s.reduction is None:
            continue
        meeting = isl.Map.empty(s.domain.space.map_from_set())
        for load in s.loads:
            if load.array == s.array:
                read = read_map(s, load, scop.arrays[load.array])
                pairs = read.apply_range(write_map(s).reverse())
                meeting = meeting.union(pairs).union(pairs.reverse())
        found[s.name] = meeting
    return found


def maps(relation: isl.UnionMap) -> Iterator[tuple[str, str, isl.Map]]:
    """The maps of a union, each with the names of its domain and range."""
    found: list[isl.Map] = []
    relation.foreach_map(found.append)
    for each in found:
        yield each.get_tuple_name(IN), each.get_tuple_name(OUT), each


def union_of(relations: Iterable[isl.Map]) -> isl.UnionMap:
    unions = map(isl.UnionMap.from_map, relations)
    return reduce(isl.UnionMap.union, unions, isl.UnionMap("{ }"))


Accesses = list[tuple[Statement, Array, isl.Map]]


def _changes(array: Array) -> bool:
    return array.kind not in ("input", "constant")


def _reads(statement: Statement, scop: Scop) -> Iterator[tuple[Array, isl.Map]]:
    """What a statement reads: its loads, and what a reduction updates."""
    for load in statement.loads:
        array = scop.arrays[load.array]
        yield array, read_map(statement, load, array)
    if statement.reduction:
        yield scop.arrays[statement.array], write_map(statement)


def _flow(scop: Scop, reads: Accesses, writes: Accesses) -> tuple[isl.UnionMap, isl.UnionMap]:
    """Last write before each read, # S -> T, and the reads without one, # T -> A.

    Where no element is written twice there is no last write to look for: that is fifty times
    faster, and of the arrays of a kernel usually only accumulators are different.
    """
    names = {array.name for _, array, _ in reads}
    single = {n for n in names if union_of(m for _, a, m in writes if a.name == n).is_injective()}

    def part(accesses: Accesses, chosen: set[str]) -> Accesses:
        return [access for access in accesses if access[1].name in chosen]

    direct = _direct_flow(scop, part(reads, single), part(writes, single))
    general = _dataflow(scop, part(reads, names - single), part(writes, names - single))
    return direct[0].union(general[0]).coalesce(), direct[1].union(general[1])


def _direct_flow(
    scop: Scop, reads: Accesses, writes: Accesses
) -> tuple[isl.UnionMap, isl.UnionMap]:
    """`_flow` of elements that are written once: who reads one later depends on that write."""
    pairs = _ordered_pairs(scop, writes, reads)
    written = pairs.reverse().apply_range(union_of(m for _, _, m in writes))
    return pairs, union_of(m for _, _, m in reads).subtract(written)


def _dataflow(scop: Scop, reads: Accesses, writes: Accesses) -> tuple[isl.UnionMap, isl.UnionMap]:
    """`_flow` in general: Feautrier's array dataflow analysis."""
    if not reads:
        return isl.UnionMap("{ }"), isl.UnionMap("{ }")
    flow = (
        isl.UnionAccessInfo.from_sink(union_of(m for _, _, m in reads))
        .set_must_source(union_of(m for _, _, m in writes))
        .set_schedule_map(original_order(scop.statements))
        .compute_flow()
    )
    return flow.get_may_dependence(), flow.get_may_no_source()


def _ordered_pairs(scop: Scop, first: Accesses, second: Accesses) -> isl.UnionMap:
    """# S -> T: pairs that touch the same element, the first earlier in the original order."""
    position = {s.name: k for k, s in enumerate(scop.statements)}
    pairs = []
    for s, array, touch in first:
        for t, other, again in second:
            places = position[s.name], position[t.name]
            if array.name != other.name or not may_precede(s, places):
                continue
            pairs.append(touch.apply_range(again.reverse()).intersect(before(s, t, places)))
    return union_of(pairs).coalesce()
