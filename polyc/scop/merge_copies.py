"""Let a producer write where a copy would have put its result.

    X[i] = …      Y[h(i)] = X[i]  (all of X)      Z = … X[g] …
    ->
    Y[h(i)] = …                                   Z = … Y[h(g)] …

This is how a concatenation is written in place, and how a convolution's output lands inside the
halo that the next one reads: X becomes a view of Y, and the copy disappears.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyc.budget import UNLIMITED, Budget
from polyc.poly.affine import outputs, simplify, single_aff
from polyc.poly.boxes import box
from polyc.poly.context import operation_budget
from polyc.poly.parameters import among_own_sizes
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses
from polyc.types.found import found_in

LARGEST_EFFORT = 100_000
"""Operations of isl for one copy, about 0.5 s. Through two reshapes whose sizes have no common
divisor, inverting takes minutes, and what comes out is no place to write to."""


def merge_copies(scop: Scop, budget: Budget = UNLIMITED) -> Scop:
    """The scop with each copy removed whose source can live inside its target."""
    uses = find_uses(scop.statements)
    placed: dict[str, tuple[str, isl.PwMultiAff]] = {}  # X -> (Y, { X -> Y })
    order = _Order(scop)
    for statement in budget.over(scop.statements, "fuse"):
        source = _copied_array(statement, scop, uses)
        if source is None or source in placed or _ends_in(statement.array, source, placed):
            continue
        if not order.is_sized_before(statement.array, source):
            continue
        where = _find_place(statement, scop.arrays[source])
        if where is not None:
            placed[source] = (statement.array, where)
            order.move(source, statement.array)
    if not placed:
        return scop
    moved = [_move(s, placed) for s in scop.statements if not _is_done(s, placed)]
    return drop_dead(replace(scop, statements=tuple(moved)))


class _Order:
    """When arrays are first written, and when the sizes are found that a call finds."""

    def __init__(self, scop: Scop) -> None:
        self._scop = scop
        self._first: dict[str, int] = {}
        last: dict[str, int] = {}
        for position, statement in enumerate(scop.statements):
            self._first.setdefault(statement.array, position)
            last[statement.array] = position
        self._found = {size: last.get(array, -1) for size, array in scop.found.items()}

    def is_sized_before(self, target: str, source: str) -> bool:
        """Whether all that `target` has for sizes is found before `source` is first written.

        y = Concat(a, b), where it is found how many b has behind a:   a is no part of y
        """
        sizes = found_in(self._scop.arrays[target].shape)
        return all(self._found[size] < self._first[source] for size in sizes)

    def move(self, source: str, target: str) -> None:
        """What is written to one array from now on goes to the other."""
        self._first[target] = min(self._first[target], self._first[source])


def _copied_array(statement: Statement, scop: Scop, uses: Uses) -> str | None:
    """The array X if the statement is a copy of it, and X may be stored elsewhere."""
    load = statement.value
    if statement.reduction or not isinstance(load, Load) or load.dynamic:
        return None
    source, target = scop.arrays[load.array], scop.arrays[statement.array]
    if source.kind != "temporary" or uses.is_accumulator(source.name):
        return None
    if any(r.dynamic for _, r in uses.reads(source.name)):
        return None
    if uses.is_accumulator(target.name) or not uses.writes(source.name):
        return None
    touching = [*uses.writes(source.name), *(reader for reader, _ in uses.reads(source.name))]
    if statement.step and any(s.step != statement.step for s in touching):
        return None  # it is copied to another place in each step
    if statement.branches and any(s.branches != statement.branches for s in touching):
        return None  # where it is not copied, something else may be in its place
    return source.name


def _find_place(copy: Statement, source: Array) -> isl.PwMultiAff | None:
    """# X -> Y: where the copy puts each element, if it copies all of X, each once.

    None for a place in pieces: windows that are put together to an image would have a condition
    for each piece at each access, thousands of letters long.
    """
    load = copy.value
    assert isinstance(load, Load)
    try:
        with operation_budget(LARGEST_EFFORT):
            read = load.index.as_map().intersect_domain(copy.domain)  # S -> X
            whole = among_own_sizes(box(source.name, source.shape), copy.domain)
            if not whole.is_subset(read.range()) or not read.is_injective():
                return None
            if not copy.write.as_map().intersect_domain(copy.domain).is_injective():
                return None
            back = isl.PwMultiAff.from_map(read.reverse())  # X -> S
            place = simplify(copy.write.pullback_pw_multi_aff(back), whole)
            return None if any(single_aff(f) is None for f in outputs(place)) else place
    except isl.Error:
        return None


def _ends_in(array: str, source: str, placed: dict[str, tuple[str, isl.PwMultiAff]]) -> bool:
    """Whether `array` already lives, directly or not, inside `source`."""
    while array != source and array in placed:
        array = placed[array][0]
    return array == source


def _is_done(s: Statement, placed: dict[str, tuple[str, isl.PwMultiAff]]) -> bool:
    """Whether the statement is one of the copies that moved their source."""
    load = s.value
    if not isinstance(load, Load) or s.reduction or load.array not in placed:
        return False
    target, where = placed[load.array]
    goes = where.pullback_pw_multi_aff(load.index).intersect_domain(s.domain)
    return target == s.array and goes.is_equal(s.write.intersect_domain(s.domain))


def _move(s: Statement, placed: dict[str, tuple[str, isl.PwMultiAff]]) -> Statement:
    """The statement with its accesses to moved arrays sent to where they live now."""

    def send(array: str, index: isl.PwMultiAff) -> tuple[str, isl.PwMultiAff]:
        while array in placed:
            array, where = placed[array]
            index = where.pullback_pw_multi_aff(index)
        return array, index

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.array not in placed:
            return e
        array, index = send(e.array, e.index)
        return replace(e, array=array, index=index)

    array, write = send(s.array, s.write)
    value = simplify_indices(rebuild(s.value, leaf), s.domain)
    return replace(s, array=array, write=simplify(write, s.domain), value=value)
