"""A kernel may keep values elsewhere than its statements say: each read must get the same value.

    P[j] = e(j);  s += P[j];  Y[j] = P[j] * s     ->     Y[j] = e(j);  s += Y[j];  Y[j] = Y[j] * s

The statements are the same but for where they read and write, and for copies of elements on their
way to who reads them. They compute the same if every single
read gets its value from the same instance as before, or from outside, from the same element; and if
the last write of every element that is there afterwards is that of the same instance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from polyc.analysis.dependences import maps, union_of
from polyc.analysis.same import Renaming, compare, same_dynamic, same_tree
from polyc.analysis.witness import illegal, show_sizes
from polyc.poly.parameters import parameters_of, told_of
from polyc.scop.accesses import read_map, write_map
from polyc.scop.expr import Expr, Load, loads
from polyc.scop.order import original_order
from polyc.scop.scop import Scop, Statement
from polyc.scop.sizes import list_sizes

OUT = isl.dim_type.out

Source = tuple[isl.UnionMap, isl.UnionMap]
"""For one read:  S -> T,  from who wrote the value, and  T -> A  where nobody did."""


def check_same_values(kernel: str, stated: Scop, kept: Scop) -> None:
    """Raises IllegalSchedule unless the scop that a kernel executes computes what was stated.

    `kept` has the statements of `stated`, by name and in order; arrays that nobody else sees may
    have become others. It may have temporary ones of its own, and statements that copy to these.
    """
    where = f"kernel {kernel}"
    names = {s.name for s in stated.statements}
    copies = [s for s in kept.statements if s.name not in names]
    for copy in copies:
        if not _is_copy(copy, stated, kept):
            raise illegal(where, f"{copy.name} is no copy to an array of its own")
    there = [s for s in kept.statements if s.name in names]
    if [s.name for s in stated.statements] != [s.name for s in there]:
        raise illegal(where, "it does not execute the statements that it is there for")
    pairs = list(zip(stated.statements, there, strict=True))
    copied = {copy.name: next(_find_sources(kept, copy)) for copy in copies}
    if all(before is now for before, now in pairs):
        return
    for before, now in pairs:
        if not _same_but_for_places(before, now):
            raise illegal(where, f"{now.name} does not compute what it is there for")
        sources = zip(_find_sources(stated, before), _find_sources(kept, now), strict=True)
        for one, found in sources:
            other = _through(found, copied)
            if not (one[0].is_equal(other[0]) and one[1].is_equal(other[1])):
                raise illegal(where, f"{now.name} reads another value than it is there for")
    _check_results(where, stated, kept)


def check_own_sizes(kernel: str, stated: Scop, own: Sequence[Statement], known: isl.Set) -> None:
    """Raises IllegalSchedule unless a kernel by its own sizes does what it does by all of them.

    S[i] : 0 <= i < r and h >= 3 and 2r <= h <= 2r + 1    =    S[i] : 0 <= i < r    for such h, r

    `known` is what the kernel takes for granted of its sizes; it must hold in every call. For all
    sizes that a call may have, each statement must have the same instances, and do the same there.
    """
    where = f"kernel {kernel}"
    check_granted(kernel, known)
    if len(own) != len(stated.statements):
        raise illegal(where, "it does not execute the statements that it is there for")
    for before, now in zip(stated.statements, own, strict=True):
        if now is before:
            continue
        told = told_of(frozenset((*list_sizes(before), *list_sizes(now))))
        there, here = (replace(s, domain=s.domain.intersect_params(told)) for s in (before, now))
        names = {name: name for name in (now.array, *(load.array for load in now.loads))}
        difference = compare(there, here, Renaming(arrays=names))
        if difference or now.name != before.name:
            rule = f"by its own sizes {now.name} differs from {before.name} in "
            raise illegal(where, rule + (difference or "its name"))


def check_granted(kernel: str, known: isl.Set) -> None:
    """Raises IllegalSchedule unless what is taken for granted of sizes holds in every call."""
    every = told_of(frozenset(parameters_of(known)))
    if not every.is_subset(known):
        rule = "it takes for granted of sizes what does not hold in every call"
        raise illegal(f"kernel {kernel}", rule, show_sizes(every.subtract(known)))


def _is_copy(statement: Statement, stated: Scop, kept: Scop) -> bool:
    """Whether a statement copies elements, as they are, to a temporary array that is not stated."""
    value, array = statement.value, kept.arrays[statement.array]
    return (
        isinstance(value, Load)
        and not value.dynamic
        and statement.reduction is None
        and array.kind == "temporary"
        and array.name not in stated.arrays
        and array.dtype == value.dtype == kept.arrays[value.array].dtype
    )


def _through(source: Source, copied: Mapping[str, Source]) -> Source:
    """Where values come from that come by copies: from where the copies have them."""
    written, outside = source
    for name, _, each in maps(source[0]):
        if name in copied:
            part = isl.UnionMap.from_map(each)
            written = written.subtract(part).union(copied[name][0].apply_range(part))
            outside = outside.union(part.reverse().apply_range(copied[name][1]))
    return written, outside


def _same_but_for_places(before: Statement, now: Statement) -> bool:
    """Whether two statements compute the same of what they read."""
    domain = before.domain

    def leaf(a: Expr, b: Expr) -> bool:
        if isinstance(a, Load) and isinstance(b, Load):
            return same_dynamic(a, b, leaf)
        return Renaming().same_leaf(a, b, (domain, domain))

    return (
        bool(domain.is_equal(now.domain))
        and (before.reduction, before.step) == (now.reduction, now.step)
        and same_tree(before.value, now.value, leaf)
    )


def _find_sources(scop: Scop, s: Statement) -> Iterator[Source]:
    """Where each read of a statement gets its value from, one after another."""
    reads = [read_map(s, load, scop.arrays[load.array]) for load in loads(s.value)]
    order = original_order(scop.statements)
    for read in [*reads, *([write_map(s)] if s.reduction else [])]:
        yield _last_writes(scop.statements, isl.UnionMap.from_map(read), order)


def _last_writes(
    statements: Sequence[Statement], read: isl.UnionMap, order: isl.UnionMap
) -> Source:
    """Feautrier's dataflow for one read."""
    flow = (
        isl.UnionAccessInfo.from_sink(read)
        .set_must_source(union_of(write_map(s) for s in statements))
        .set_schedule_map(order)
        .compute_flow()
    )
    return flow.get_may_dependence(), flow.get_may_no_source()


def _check_results(where: str, stated: Scop, kept: Scop) -> None:
    """What is there afterwards was written by the same instances, or by none of them."""
    written = [{s.array for s in of.statements} for of in (kept, stated)]
    own = {n for n, a in kept.arrays.items() if a.kind == "temporary" and n not in stated.arrays}
    if set(stated.outputs) != set(kept.outputs) or not written[0] - own <= written[1]:
        raise illegal(where, "it writes other arrays than it is there for")
    writes = [write_map(s) for s in (*stated.statements, *kept.statements)]
    for name in stated.outputs:
        touched = [w.range() for w in writes if w.get_tuple_name(OUT) == name]
        elements = reduce(isl.Set.union, touched).coalesce()
        one, other = (_final_writes(of, elements) for of in (stated, kept))
        if not (one[0].is_equal(other[0]) and one[1].is_equal(other[1])):
            raise illegal(where, f"it leaves other values in {name} than it is there for")


def _final_writes(scop: Scop, elements: isl.Set) -> Source:
    """The last write of each element: what somebody would read who comes after all statements."""
    order = original_order(scop.statements)
    first = scop.statements[0].time
    deepest = max(len(s.iterators) for s in scop.statements)
    depth = deepest if first is None else first.dim(OUT) - 1
    indices = ", ".join(f"i{k}" for k in range(elements.dim(isl.dim_type.set)))
    time = ", ".join([str(len(scop.statements)), *["0"] * depth])
    after = isl.UnionMap(f"{{ [{indices}] -> [{time}] }}")
    read = isl.Map(f"{{ [{indices}] -> {elements.get_tuple_name()}[{indices}] }}")
    read = read.intersect_range(elements)
    return _last_writes(scop.statements, isl.UnionMap.from_map(read), order.union(after))
