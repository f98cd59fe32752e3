"""Sums over a group of channels, as group norms take them: those of each channel first.

    acc[g]  add= X[8 g + c, y, x]    over c, y, x
    ->
    part[m] add= X[m, y, x]          over y, x          m in 0 .. 8 G
    acc[g]  add= part[8 g + c]       over c

What a sum runs along last is next to each other in memory where channels are first. Convolutions
have them last, and there the sum of a group would take its elements one by one, for floats are
added in the order in which they are written; those of channels are lanes. A declared reduction may
be taken apart so; sums round differently, and less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyc.names import fresh
from polyc.poly.affine import (
    columns_of,
    moves,
    output,
    simplify,
    tuple_id,
    unit_dimension,
)
from polyc.poly.injective import is_injective
from polyc.scop.expr import Const, Load, pull_back
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Scop, Statement, identity
from polyc.scop.split_reductions import put_in_place
from polyc.scop.uses import find_uses

LONG = 1 << 14
"""Elements from which on a sum is worth two more statements."""

OUT, SET = isl.dim_type.out, isl.dim_type.set


def sum_members(scop: Scop) -> Scop:
    """The scop with sums over groups taken apart."""
    uses = find_uses(scop.statements)
    for s in scop.statements:
        found = _find_group(s, scop.arrays)
        if found is None or len(uses.writes(s.array)) != 2:
            continue
        (start,) = (w for w in uses.writes(s.array) if not w.reduction)
        scop = put_in_place(scop, s, start, *_Group(s, start, *found).rewrite(scop))
    return scop


def _find_group(s: Statement, arrays: Mapping[str, Array]) -> tuple[int, int] | None:
    """The iterators over groups, which are kept, and over the members of each, of a sum to take
    apart."""
    if s.reduction is None or s.group is not None or s.time is not None or not s.domain.is_box():
        return None
    extents = s.exact_extents
    if prod(s.estimated_extents) < LONG or any(load.dynamic for load in s.loads):
        return None
    summed = [p for p, column in enumerate(s.columns[0]) if not moves(column)]
    for c in summed[:-1]:  # what is summed up last is next to each other, or is as it is
        size, behind = extents[c], [extents[p] for p in summed if p > c]
        if size is None or size < 2 or all(n == 1 for n in behind):
            continue
        for g, column in enumerate(s.columns[0]):
            kept = unit_dimension(column) is not None and extents[g] is not None
            if kept and _are_members(s, g, c, size, arrays):
                return g, c
    return None


def _are_members(s: Statement, g: int, c: int, size: int, arrays: Mapping[str, Array]) -> bool:
    """Whether loads move with c only as in  size * g + c,  and one of them reads each element of
    what may lie in any order once."""
    found = False
    for load in s.loads:
        where = columns_of(load.index)
        if not moves(where[c]):
            continue
        d = unit_dimension(where[c])
        if d is None:
            return False
        only = s.exact_extents[g] == 1  # group: it moves nowhere
        steps = [column[d] for p, column in enumerate(where) if p != c and not (only and p == g)]
        wanted = [] if only else [size]
        if [step for step in steps if step != 0] != wanted or (not only and where[g][d] != size):
            return False
        free = arrays[load.array].kind == "temporary"
        found |= free and is_injective(load.index, s.domain)
    return found


@dataclass(frozen=True)
class _Group:
    """A sum, its initialisation, and its iterators over groups and over members."""

    update: Statement
    start: Statement
    group: int
    member: int

    @property
    def size(self) -> int:
        size = self.update.exact_extents[self.member]
        assert size is not None
        return size

    @property
    def dimension(self) -> int:
        """That of the total, along which groups are."""
        d = unit_dimension(self.update.columns[0][self.group])
        assert d is not None
        return d

    def rewrite(self, scop: Scop) -> tuple[tuple[Array, ...], tuple[Statement, ...]]:
        """The arrays of members' sums, and the statements that stand for the sum."""
        s, start = self.update, self.start
        assert s.reduction is not None
        total = scop.arrays[s.array]
        shape = tuple(
            n * self.size if k == self.dimension else n for k, n in enumerate(total.shape)
        )
        title = fresh(f"{total.name}_members", scop.arrays)
        sums = Array(title, total.dtype, shape, "temporary", None, True)
        running = Array(fresh(f"{title}_acc", scop.arrays), total.dtype, shape, "temporary")

        neutral = Const(identity(s.reduction, total.dtype), total.dtype)
        begin = self._of_members(f"{start.name}_members", start, running)
        begin = replace(begin, value=neutral)
        partial = self._of_members(f"{s.name}_members", s, running)
        end = self._of_members(f"{s.name}_member", start, sums)
        end = replace(end, value=Load(running.name, _renamed(end.write, running.name), sums.dtype))
        return (sums, running), (begin, partial, end, start, self._combine(sums))

    def _of_members(self, name: str, s: Statement, into: Array) -> Statement:
        """A statement that runs for each group, for each member: of the sum, or of where it begins.

        T[m, y, x] -> S[floor(m/8), m mod 8, y, x]
        """
        size, m, c = self.size, fresh("m", s.iterators), self.update.iterators[self.member]
        g = _over_groups(s, self.dimension)
        over = {g: f"floor({m}/{size})", c: f"{m} mod {size}"}
        inside = [m if i == g else i for i in s.iterators if i != c]
        outside = [f"({over.get(i, i)})" for i in s.iterators]
        onto = isl.PwMultiAff(
            f"{{ {name}[{', '.join(inside)}] -> {s.name}[{', '.join(outside)}] }}"
        )
        domain = s.domain.preimage_pw_multi_aff(onto)
        write = s.write.pullback_pw_multi_aff(onto)
        own = write.space.domain()
        variable = isl.Aff.var_on_domain(
            isl.LocalSpace.from_space(own), SET, own.find_dim_by_name(SET, m)
        )
        place = write.set_pw_aff(
            self.dimension, isl.PwAff.from_aff(variable).intersect_domain(write.domain())
        )
        return replace(
            s,
            name=name,
            domain=domain,
            iterators=tuple(inside),
            array=into.name,
            write=simplify(_renamed(place, into.name), domain),
            value=simplify_indices(pull_back(s.value, onto), domain),
        )

    def _combine(self, sums: Array) -> Statement:
        """acc[g] add= part[8 g + c]"""
        s, start = self.update, self.start
        c = fresh(s.iterators[self.member], start.iterators)
        inside = [*start.iterators, c]
        onto = isl.PwMultiAff(
            f"{{ {s.name}[{', '.join(inside)}] -> {start.name}[{', '.join(start.iterators)}] : "
            f"0 <= {c} < {self.size} }}"
        )
        write = start.write.pullback_pw_multi_aff(onto)
        own = write.space.domain()
        member = isl.PwAff.from_aff(
            isl.Aff.var_on_domain(isl.LocalSpace.from_space(own), SET, own.find_dim_by_name(SET, c))
        )
        groups = output(write, self.dimension).scale_val(isl.Val(self.size))
        place = _renamed(write.set_pw_aff(self.dimension, groups.add(member)), sums.name)
        return replace(
            start,
            name=s.name,
            domain=start.domain.preimage_pw_multi_aff(onto),
            iterators=tuple(inside),
            write=write,
            value=Load(sums.name, place, sums.dtype),
            reduction=s.reduction,
            origin=s.origin,
        )


def _over_groups(s: Statement, d: int) -> str:
    """The iterator of a statement along a dimension of what it writes."""
    return next(
        i
        for i, column in zip(s.iterators, s.columns[0], strict=True)
        if unit_dimension(column) == d
    )


def _renamed(write: isl.PwMultiAff, array: str) -> isl.PwMultiAff:
    """The same places of another array."""
    return write.set_tuple_id(OUT, tuple_id(array))
