"""Groups of channels, as group norms take them: sums by channel, and statistics for each channel.

    acc[g]  add= X[8 g + c, y, x]    over c, y, x
    ->
    part[m] add= X[m, y, x]          over y, x          m in 0 .. 8 G
    acc[g]  add= part[8 g + c]       over c

What a sum runs along last is next to each other in memory where channels are first. Convolutions
have them last, and there the sum of a group would take its elements one by one, for floats are
added in the order in which they are written; those of channels are lanes. A declared reduction may
be taken apart so; sums round differently, and less.

    y[m, i] = (x[m, i] - mean[floor(m / 8)]) w[m]
    ->
    each[m] = mean[floor(m / 8)]
    y[m, i] = (x[m, i] - each[m]) w[m]

Where channels are lanes, what lies there once for eight of them would be loaded lane by lane, for
every pixel again. There are few channels, and many pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyc.names import fresh
from polyc.poly.affine import (
    columns_of,
    divides,
    moves,
    output,
    simplify,
    tuple_id,
    unit_dimension,
)
from polyc.poly.injective import is_injective
from polyc.scop.expr import Const, Expr, Load, pull_back, rebuild
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Scop, Statement, identity
from polyc.scop.split_reductions import put_in_place
from polyc.scop.uses import find_uses

LONG = 1 << 14
"""Elements from which on a sum is worth two more statements."""

MANY = 64
"""Reads of each element that is written, from which on it is worth a statement."""

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
        moving = {p: column for p, column in enumerate(where) if s.exact_extents[p] != 1}
        steps = {p: column[d] for p, column in moving.items() if p != c and column[d] != 0}
        group = moving.get(g)  # None where there is one group
        if steps != ({} if group is None else {g: size}):
            return False
        if group is not None and any(step != 0 for k, step in enumerate(group) if k != d):
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


def spread_groups(scop: Scop) -> Scop:
    """The scop with a copy for each member of what large statements read once for a group."""
    arrays = dict(scop.arrays)
    titles = {s.name for s in scop.statements}
    origins = {s.array: s.origin for s in scop.statements}
    statements: list[Statement] = []
    for s in scop.statements:
        table: dict[Load, Load] = {}
        for load in dict.fromkeys(s.loads):
            members = _find_members(s, load, arrays)
            if members is not None:
                copy, table[load] = _copy(s, load, members, arrays, titles)
                statements.append(replace(copy, origin=origins.get(load.array, s.origin)))
        statements.append(_reading(s, table) if table else s)
    return replace(scop, statements=tuple(statements), arrays=arrays)


def _find_members(s: Statement, load: Load, arrays: Mapping[str, Array]) -> tuple[int, ...] | None:
    """The few iterators that a load divides to find its group; None if there is nothing to gain."""
    is_free = arrays[load.array].kind == "temporary" and load.array != s.array
    if not is_free or load.dynamic or not divides(load.index):
        return None
    if s.reduction or s.group or s.time or not s.domain.is_box():
        return None
    if not s.domain.is_subset(load.index.domain()):
        return None  # what is read in places alone has nothing to copy in others
    moving = tuple(p for p, column in enumerate(columns_of(load.index)) if moves(column))
    members = [n for p in moving if (n := s.exact_extents[p]) is not None]
    if len(members) < len(moving) or prod(s.estimated_extents) < MANY * prod(members):
        return None
    return moving


def _copy(
    s: Statement,
    load: Load,
    members: Sequence[int],
    arrays: dict[str, Array],
    titles: set[str],
) -> tuple[Statement, Load]:
    """(the statement that copies for each member, the load of that); titles: of statements."""
    shape = tuple(s.exact_extents[p] or 0 for p in members)
    name = fresh(f"{load.array}_each", arrays)
    arrays[name] = Array(name, load.dtype, shape, "temporary")
    titles.add(title := fresh(f"S_{name}", titles))
    inside = [s.iterators[p] for p in members]
    kept = ", ".join(inside)
    # T[c] -> S[c, 0, 0]:  whatever the others are, the same is read
    outside = ", ".join(i if i in inside else "0" for i in s.iterators)
    onto = isl.PwMultiAff(f"{{ {title}[{kept}] -> {s.name}[{outside}] }}")
    domain = s.domain.preimage_pw_multi_aff(onto)
    copy = replace(
        s,
        name=title,
        domain=domain,
        iterators=tuple(inside),
        array=name,
        write=isl.PwMultiAff(f"{{ {title}[{kept}] -> {name}[{kept}] }}"),
        value=simplify_indices(pull_back(load, onto), domain),
    )
    read = isl.PwMultiAff(f"{{ {s.name}[{', '.join(s.iterators)}] -> {name}[{kept}] }}")
    return copy, replace(load, array=name, index=read)


def _reading(s: Statement, table: Mapping[Load, Load]) -> Statement:
    """The statement with other loads."""

    def leaf(e: Expr) -> Expr:
        return table.get(e, e) if isinstance(e, Load) else e

    return replace(s, value=rebuild(s.value, leaf))
