"""Short loops of integer sums filled up with zeros, so that an instruction takes their terms.

    S: acc[o, y, x] add= x_whole[c, y + r, x + q] * W[o, c, r, q]        c in 0 .. 3
    ->
    F: x_whole[3, y, x] = 0
    S: the same for c in 0 .. 4                                          W[o, 3, r, q] = 0

An instruction takes four terms at a time (`narrow_factors.GROUP`). The loop is the one that this
lengthens least: of a window of 7 by 7 over 3 channels, a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import columns_of, is_affine, unit_dimension
from polyc.poly.boxes import box
from polyc.poly.parameters import among_own_sizes
from polyc.scop.expr import Const, Load
from polyc.scop.factors.narrow_factors import GROUP, Types, find_group
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import find_factors, find_uses

LEAST = 3
"""Terms of a group from which on it is worth to be filled: work grows by a third at most."""


@dataclass(frozen=True)
class Filled:
    """A sum with a longer loop, and its factors; all that they hold besides is 0."""

    statement: Statement
    data: Array
    weights: Array


def fill_groups(scop: Scop, types: Types) -> Scop:
    """The scop with loops of sums filled up to whole groups where there is none."""
    if not types:
        return scop
    uses = find_uses(scop.statements)
    for s in scop.statements:
        factors = find_factors(s)
        if factors is None or find_group(s, factors, scop.arrays) is not None:
            continue
        filled = find_filled(s, factors, scop.arrays)
        if filled is None:
            continue
        touched = (filled.data.name, filled.weights.name)
        alone = all({r.name for r, _ in uses.reads(n)} == {s.name} for n in touched)
        writers = uses.writes(filled.data.name)
        (load,) = (factor for factor in factors if factor.array == filled.data.name)
        reached = load.index.as_map().intersect_domain(filled.statement.domain).range()
        if alone and is_written(reached, scop.arrays[filled.data.name], writers):
            scop = _fill(scop, s, filled, writers[0])
    return scop


def is_written(reached: isl.Set, array: Array, writers: Sequence[Statement]) -> bool:
    """Whether elements are written by plain statements, or not in the array yet.

    reached: # A
    """
    if not writers or any(w.time is not None or w.reduction for w in writers):
        return False
    domains = [w.domain for w in writers]
    old = among_own_sizes(reached.intersect(box(array.name, array.shape)), *domains)
    for w in writers:
        old = old.subtract(w.write.as_map().intersect_domain(w.domain).range())
    return bool(old.is_empty())


def find_filled(
    s: Statement, factors: tuple[Load, Load], arrays: Mapping[str, Array]
) -> Filled | None:
    """The sum with the loop filled up that grows least; None if there is none."""
    constant = [arrays[load.array].value is not None for load in factors]
    affine = all(is_affine(f) for f in (s.write, *(load.index for load in factors)))
    if constant not in ([True, False], [False, True]) or not affine:
        return None
    weights, data = factors if constant[0] else factors[::-1]
    if arrays[data.array].kind != "temporary":
        return None
    sizes = s.exact_extents
    short = [
        (-(-n // GROUP) * GROUP / n, p)
        for p, n in enumerate(sizes)
        if n is not None and n % GROUP >= LEAST and n < 2 * GROUP
    ]
    for _, p in sorted(short):
        filled = _lengthen(s, p, data, weights, arrays)
        if filled is not None:
            new = {**arrays, data.array: filled.data, weights.array: filled.weights}
            if find_group(filled.statement, factors, new) == p:
                return filled
    return None


def _lengthen(
    s: Statement, p: int, data: Load, weights: Load, arrays: Mapping[str, Array]
) -> Filled | None:
    """The sum with iterator p up to a whole group, if p is one of a sum, and the domain a box."""
    count = s.exact_extents[p]
    assert count is not None
    size = -(-count // GROUP) * GROUP
    d, w = (unit_dimension(columns_of(load.index)[p]) for load in (data, weights))
    if s.write.as_map().involves_dims(isl.dim_type.in_, p, 1) or d is None or w is None:
        return None
    if _bounded(s.domain, p, count) != s.domain:
        return None
    domain = _bounded(s.domain, p, size)
    of_data, of_weights = arrays[data.array], arrays[weights.array]
    assert of_weights.value is not None
    if of_weights.shape[w] != count:
        return None
    extent = of_data.shape[d]
    if isinstance(extent, int):
        reached = data.index.as_map().intersect_domain(domain).range()
        extent = max(extent, int(reached.dim_max_val(d).to_python()) + 1)
    else:  # the loop goes along it in single steps
        extent = extent + (size - count)
    rest = [(0, size - count if k == w else 0) for k in range(len(of_weights.shape))]
    value = np.pad(of_weights.value, rest)
    shape = tuple(extent if k == d else n for k, n in enumerate(of_data.shape))
    return Filled(
        replace(s, domain=domain),
        replace(of_data, shape=shape),
        replace(of_weights, shape=value.shape, value=value),
    )


def _bounded(domain: isl.Set, p: int, count: int) -> isl.Set:
    """A set with an iterator from 0 to count, whatever it was before."""
    kind = isl.dim_type.set
    name, label = domain.get_dim_name(kind, p), domain.get_tuple_name()
    free = domain.project_out(kind, p, 1).insert_dims(kind, p, 1).set_tuple_name(label)
    whole = free.lower_bound_val(kind, p, isl.Val(0)).upper_bound_val(kind, p, isl.Val(count - 1))
    return whole.set_dim_name(kind, p, name) if name else whole


def _fill(scop: Scop, s: Statement, filled: Filled, writer: Statement) -> Scop:
    """The scop with the longer sum, behind a statement that writes zeros where there was nothing.

    Those are written where the first of the others is.
    """
    scop = extend(scop, scop.arrays[filled.data.name], filled.data.shape, s, writer)
    statements = tuple(
        filled.statement if each.name == s.name else each for each in scop.statements
    )
    arrays = {**scop.arrays, filled.weights.name: filled.weights}
    return replace(scop, statements=statements, arrays=arrays)


def extend(scop: Scop, old: Array, shape: tuple[int, ...], s: Statement, writer: Statement) -> Scop:
    """The scop with an array of another shape, 0 where that holds more, for a statement `s`.

    The zeros are written before `writer`.
    """
    title = fresh(f"{s.name}_fill", {each.name for each in scop.statements})
    rest = box(old.name, shape).subtract(box(old.name, old.shape)).coalesce()
    domain = rest.set_tuple_name(title)
    place = isl.MultiAff.identity_on_domain_space(domain.get_space()).to_pw_multi_aff()
    fill = replace(
        writer,
        name=title,
        domain=domain,
        iterators=tuple(f"i{k}" for k in range(len(old.shape))),
        write=place.set_tuple_id(isl.dim_type.out, rest.get_tuple_id()),
        value=Const(0, old.dtype),
        origin=s.origin,
        group=None,
    )
    statements: list[Statement] = []
    for each in scop.statements:
        statements += [fill, each] if each.name == writer.name else [each]
    arrays = {**scop.arrays, old.name: replace(old, shape=shape)}
    return replace(scop, statements=tuple(statements), arrays=arrays)
