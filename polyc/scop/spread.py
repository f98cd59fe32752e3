"""What groups have in common, written once for each member: statistics of group norms.

    y[c, i] = (x[c, i] - mean[floor(c / 8)]) w[c]
    ->
    each[c] = mean[floor(c / 8)]
    y[c, i] = (x[c, i] - each[c]) w[c]

Where channels are lanes, elements that lie in pieces of eight would be loaded one by one, for every
pixel again. There are few channels, and many pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import islpy as isl

from polyc.names import fresh
from polyc.poly.affine import columns_of, divides, moves
from polyc.scop.expr import Expr, Load, pull_back, rebuild
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Scop, Statement

MANY = 64
"""Reads of each element that is written, from which on it is worth a statement."""


def spread_groups(scop: Scop) -> Scop:
    """The scop with a copy for each member of what large statements read once for a group."""
    arrays = dict(scop.arrays)
    origins = {s.array: s.origin for s in scop.statements}
    statements: list[Statement] = []
    for s in scop.statements:
        table: dict[Load, Load] = {}
        for load in dict.fromkeys(s.loads):
            members = _find_members(s, load, arrays)
            if members is not None:
                copy, table[load] = _copy(s, load, members, arrays)
                statements.append(replace(copy, origin=origins[load.array]))
        statements.append(_reading(s, table) if table else s)
    return replace(scop, statements=tuple(statements), arrays=arrays)


def _find_members(s: Statement, load: Load, arrays: Mapping[str, Array]) -> tuple[int, ...] | None:
    """The few iterators that a load divides to find its group; None if there is nothing to gain."""
    is_free = arrays[load.array].kind == "temporary" and load.array != s.array
    if not is_free or load.dynamic or not divides(load.index):
        return None
    if s.reduction or s.group or s.time or not s.domain.is_box():
        return None
    moving = tuple(p for p, column in enumerate(columns_of(load.index)) if moves(column))
    members = [n for p in moving if (n := s.exact_extents[p]) is not None]
    if len(members) < len(moving) or prod(s.estimated_extents) < MANY * prod(members):
        return None
    return moving


def _copy(
    s: Statement, load: Load, members: Sequence[int], arrays: dict[str, Array]
) -> tuple[Statement, Load]:
    """(the statement that copies for each member, the load of that)."""
    shape = tuple(s.exact_extents[p] or 0 for p in members)
    name = fresh(f"{load.array}_each", arrays)
    arrays[name] = Array(name, load.dtype, shape, "temporary")
    title, inside = f"S_{name}", [s.iterators[p] for p in members]
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
