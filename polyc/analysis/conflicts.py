"""What the proof holds loops to: every pair of instances that touch one element, in order.

A schedule is made from the dependences of `dependences.py`, which know the last writer of each
element. The proof does not take these: it pairs all accesses anew, with no dataflow and no special
cases. So there are more pairs; those in addition follow from the others, and cost little.

    Z: A[i] = 0;  S: A[i] += x[i, k];  T: y[i] = A[i]     ->     Z -> S, S -> S, S -> T, and Z -> T
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyc.analysis.dependences import Dependences, find_reducing, union_of
from polyc.poly.coalesce import coalesce
from polyc.scop.accesses import read_map, write_map
from polyc.scop.order import before, may_precede
from polyc.scop.scop import Array, Scop, Statement


@dataclass(frozen=True)
class Touch:
    """One access of a statement; a reduction reads what it updates."""

    statement: Statement
    position: int  # of the statement in the text
    elements: isl.Map  # S -> A
    writes: bool


def touches_by_array(
    statements: Sequence[Statement], arrays: Mapping[str, Array]
) -> dict[str, list[Touch]]:
    """The accesses of statements to some arrays, in textual order, by array."""
    found: dict[str, list[Touch]] = {}
    for position, s in enumerate(statements):
        for load in s.loads:
            if load.array in arrays:
                elements = read_map(s, load, arrays[load.array])
                found.setdefault(load.array, []).append(Touch(s, position, elements, False))
        if s.array in arrays:
            written = write_map(s)
            if s.reduction:
                found.setdefault(s.array, []).append(Touch(s, position, written, False))
            found.setdefault(s.array, []).append(Touch(s, position, written, True))
    return found


def compute_conflicts(scop: Scop) -> Dependences:
    """All pairs of instances of which one writes what the other touches, the earlier one first.

    `uninitialised` are the reads of elements that nothing has written before.
    """
    flow: list[isl.Map] = []
    anti: list[isl.Map] = []
    output: list[isl.Map] = []
    unwritten: list[isl.Map] = []
    for array, touches in touches_by_array(scop.statements, scop.arrays).items():
        if not any(touch.writes for touch in touches):
            if scop.arrays[array].kind not in ("input", "constant"):
                unwritten += [touch.elements for touch in touches]
            continue
        met: dict[tuple[int, int], isl.Map] = {}
        for a, b in _later(touches):
            kind = flow if not b.writes else output if a.writes else anti
            key = id(a.elements), id(b.elements)
            if key not in met:
                met[key] = _meeting(a, b)
            kind.append(met[key])
        if scop.arrays[array].kind != "input":
            unwritten += [first_reads(touch, touches) for touch in touches if not touch.writes]
    return Dependences(
        flow=union_of(flow).coalesce(),
        anti=union_of(anti).coalesce(),
        output=union_of(output).coalesce(),
        reducing=find_reducing(scop),
        uninitialised=union_of(unwritten),
    )


def first_reads(read: Touch, touches: Sequence[Touch]) -> isl.Map:
    """# S -> A: the reads of elements that none of the accesses has written before.

    As a rule all of them are written by statements in front of this one: that needs no look at
    which instances of a statement come before which.
    """
    earlier_writes = [
        other
        for other in touches
        if other.writes and may_precede(other.statement, (other.position, read.position))
    ]
    if not earlier_writes:
        return read.elements
    nothing = isl.Map.empty(read.elements.space)
    in_front = [other for other in earlier_writes if _is_in_front(other, read)]
    there = reduce(isl.Set.union, (o.elements.range() for o in in_front), nothing.range())
    # isl answers whether it is all in little time; for some sizes a difference takes minutes.
    if read.elements.range().is_subset(there):
        return nothing
    written = read.elements.intersect_range(there)
    for other in earlier_writes:
        if not _is_in_front(other, read):
            places = other.position, read.position
            earlier = before(other.statement, read.statement, places).reverse()  # S -> S'
            written = written.union(earlier.apply_range(other.elements))
    return nothing if read.elements.is_subset(written) else read.elements.subtract(written)


def _is_in_front(one: Touch, other: Touch) -> bool:
    """Whether all instances of one statement come before those of another."""
    return one.statement.time is None and one.position < other.position


def _later(touches: Sequence[Touch]) -> Iterator[tuple[Touch, Touch]]:
    """Pairs of accesses of which one writes, the first in the text, or in an earlier instance."""
    for a in touches:
        for b in touches:
            places = a.position, b.position
            if (a.writes or b.writes) and may_precede(a.statement, places):
                yield a, b


def _meeting(a: Touch, b: Touch) -> isl.Map:
    """# S -> T: pairs that touch one element, the first of them earlier."""
    pairs = a.elements.apply_range(b.elements.reverse())
    return pairs.intersect(before(a.statement, b.statement, (a.position, b.position)))


def order_but_sums(scop: Scop, dependences: Dependences) -> isl.UnionMap:
    """# S -> T: what must stay in order if declared reductions may add up in any order.

    Whoever writes a sum's element before, or touches it afterwards, then waits for all of the sum:

        Z -> S[0] -> S[1] -> … -> T         becomes         Z -> S[k] -> T    for all k
    """
    summed = {s.array for s in scop.statements if s.name in dependences.reducing}
    arrays = {name: array for name, array in scop.arrays.items() if name in summed}
    found = [
        _meeting(a, b)
        for touches in touches_by_array(scop.statements, arrays).values()
        for a, b in _later(touches)
    ]
    around = dependences.without_reductions(union_of(found))
    return coalesce(dependences.coincidence.union(around))
