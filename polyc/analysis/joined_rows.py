"""Rows that a kernel counts as one loop, where only a call knows how many each loop has.

    y[n, i, j, o] += w[o, c] * x[n, i, j, c]        0 <= n < N, 0 <= i < H, 0 <= j < W
    y[0, 0, r, o] += w[o, c] * x[0, 0, r, c]        0 <= r < N H W,    in the same memory

No set says that r = (n H + i) W + j: that multiplies sizes. Nothing has to. An array that is
contiguous along n, i and j has the element at

    ((n H + i) W + j) s + …  =  r s + …

and r takes each value from 0 to N H W - 1 once. So both lines do the same, provided that

* every statement goes through the whole box of rows, whatever else it iterates over;
* each access moves along these iterators as they are, in dimensions of N, H and W elements that lie
  directly inside one another, or does not move with any of them;
* no value and no condition depends on them otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

import islpy as isl

from polyc.analysis.witness import illegal
from polyc.errors import NotFixed
from polyc.loopnest.nodes import Products
from polyc.memory.storage import Storage
from polyc.poly.affine import outputs, plain_iterator
from polyc.poly.conditions import spell
from polyc.poly.parameters import among_own_sizes, read
from polyc.scop.expr import Index, Load, Within, walk
from polyc.scop.scop import Array, Scop, Statement
from polyc.types.parameters import named
from polyc.types.sizes import Extent, Size

SET = isl.dim_type.set


@dataclass(frozen=True)
class JoinedRows:
    """Loops that run as one, outermost first.

    where: by statement the positions of their iterators; extents: how many iterations each has;
    size: the name of the size that is their product.
    """

    where: Mapping[str, tuple[int, ...]]
    extents: tuple[Extent, ...]
    size: str


def check_joined_rows(
    kernel: str,
    stated: Scop,
    storages: Mapping[str, Storage],
    joined: Scop,
    joined_storages: Mapping[str, Storage],
    rows: JoinedRows,
) -> None:
    """Raises IllegalSchedule unless the joined scop does in memory what was stated."""
    where = f"kernel {kernel}"
    reason = find_uneven(stated.statements, stated.arrays, storages, rows)
    if reason:
        raise illegal(where, f"its rows are no single loop: {reason}")
    for before, now in zip(stated.statements, joined.statements, strict=True):
        if now != replace(before, domain=now.domain):
            raise illegal(where, f"with its rows as one {now.name} computes something else")
        if not _is_joined(before, now, rows):
            raise illegal(where, f"{now.name} does not go through all of its rows as one")
    walked = find_walked(stated.statements, rows) or {}
    for name, array in stated.arrays.items():
        dimensions = walked.get(name, ())
        if joined.arrays[name].shape != join_extents(array.shape, dimensions, rows):
            raise illegal(where, f"{name} has another shape than its rows as one")
        if name in storages:
            wanted, found = join_storage(storages[name], dimensions, rows), joined_storages[name]
            if not found.map.plain_is_equal(wanted.map) or found.shape != wanted.shape:
                raise illegal(where, f"{name} lies elsewhere with its rows as one")


def check_products(kernel: str, products: Products, rows: JoinedRows) -> None:
    """Raises IllegalSchedule unless a kernel computes the number of its rows, and nothing else."""
    if products != ((rows.size, prod(map(named, rows.extents))),):
        raise illegal(f"kernel {kernel}", "it does not multiply what its loops have for its rows")


def find_uneven(
    statements: Sequence[Statement],
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    rows: JoinedRows,
) -> str:
    """Why rows cannot be counted as one; empty if they can. Arrays without a storage may lie so."""
    for s in statements:
        if s.name not in rows.where:
            return f"{s.name} does not go through them"
        if not _goes_through_all(s, rows):
            return f"{s.name} does not go through all of them"
    walked = find_walked(statements, rows)
    if walked is None:
        return "an access or a value moves with them in another way"
    for name, dimensions in walked.items():
        if not dimensions:
            continue
        if any(arrays[name].shape[d] != n for d, n in zip(dimensions, rows.extents, strict=True)):
            return f"{name} has other extents"
        if name in storages:
            places = _find_places(storages[name], dimensions)
            if places is None:
                return f"{name} is not contiguous along them"
            stored = [storages[name].shape[k] for k in places]
            if any(n != extent for n, extent in zip(stored[1:], rows.extents[1:], strict=True)):
                return f"{name} has gaps between them"
    return ""


def join_extents(
    extents: Sequence[Extent], dimensions: Sequence[int], rows: JoinedRows
) -> tuple[int, ...]:
    """The extents of an array whose rows are along the last of these dimensions.

    [N, C, H, W], rows along 0, 2, 3   ->   [1, C, 1, N H W]
    """
    found = list(extents)
    for d in dimensions[:-1]:
        found[d] = 1
    for d in dimensions[-1:]:
        found[d] = Size.of(rows.size)
    return cast("tuple[int, ...]", tuple(found))


def join_storage(storage: Storage, dimensions: Sequence[int], rows: JoinedRows) -> Storage:
    """How the same memory is seen as that of an array whose rows are one dimension."""
    places = _find_places(storage, dimensions)
    assert places is not None, "rows that are not contiguous are not joined"
    return replace(storage, shape=join_extents(storage.shape, places, rows))


def _goes_through_all(s: Statement, rows: JoinedRows) -> bool:
    """Whether a domain is that of the other iterators, times the box of rows."""
    box = _box(s, rows)
    if box is None:
        return False
    domain = among_own_sizes(s.domain, box)
    return bool(domain.is_equal(any_rows(domain, rows.where[s.name]).intersect(box)))


def _is_joined(before: Statement, now: Statement, rows: JoinedRows) -> bool:
    """Whether the rows of a domain are counted by the last iterator, and the others are 0.

    Where some loop has no iteration there is no row, whatever else the domain says.
    """
    positions = rows.where[before.name]
    conditions = [f"{size} >= 1" for size in (*map(spell, rows.extents), rows.size)]
    some = read(isl.Set, f"{{ : {' and '.join(conditions)} }}")
    there, here = (among_own_sizes(s.domain, some) for s in (before, now))
    one, other = (any_rows(d.intersect_params(some), positions) for d in (there, here))
    whole = here.is_equal(any_rows(here, positions).intersect(count_rows(now, rows)))
    return bool(whole and one.is_equal(other))


def count_rows(s: Statement, rows: JoinedRows) -> isl.Set:
    """All instances with the number of a row for its last iterator, and 0 for the others."""
    *outer, last = rows.where[s.name]
    conditions = [f"i{p} = 0" for p in outer] + [f"0 <= i{last} < {rows.size}"]
    return read(isl.Set, f"{{ [{_names(s)}] : {' and '.join(conditions)} }}").set_tuple_name(s.name)


def any_rows(domain: isl.Set, positions: Sequence[int]) -> isl.Set:
    """The domain with any rows."""
    for p in positions:
        domain = domain.eliminate(SET, p, 1)
    return domain


def _box(s: Statement, rows: JoinedRows) -> isl.Set | None:
    """All rows, whatever the other iterators are; None if no set can say how many there are."""
    try:
        ends = [spell(extent) for extent in rows.extents]
    except NotFixed:
        return None
    bounds = zip(rows.where[s.name], ends, strict=True)
    conditions = " and ".join(f"0 <= i{p} < {end}" for p, end in bounds)
    return read(isl.Set, f"{{ [{_names(s)}] : {conditions} }}").set_tuple_name(s.name)


def _names(s: Statement) -> str:
    return ", ".join(f"i{p}" for p in range(len(s.iterators)))


def find_walked(
    statements: Sequence[Statement], rows: JoinedRows
) -> dict[str, tuple[int, ...]] | None:
    """By array the dimensions that rows are along; None if something moves in another way."""
    found: dict[str, tuple[int, ...]] = {}
    for s in statements:
        positions = rows.where[s.name]
        for e in walk(s.value):
            if isinstance(e, Index) and _moves(e.value, positions):
                return None
            if isinstance(e, Within) and _involves(e.domain, positions):
                return None
        for array, index, by_data in _accesses(s):
            dimensions = _dimensions(index, positions)
            if dimensions is None or by_data.intersection(dimensions):
                return None
            if found.setdefault(array, dimensions) != dimensions:
                return None
    return found


def _accesses(s: Statement) -> Iterator[tuple[str, isl.PwMultiAff, frozenset[int]]]:
    """(array, S -> A, the dimensions in which data decides as well) of the write and each load."""
    yield s.array, s.write, frozenset()
    for e in walk(s.value):
        if isinstance(e, Load):
            yield e.array, e.index, frozenset(d for d, _ in e.dynamic)


def _dimensions(index: isl.PwMultiAff, positions: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions that iterators walk as they are: () if they do not move the access."""
    if _involves(index.domain(), positions):
        return None
    found: dict[int, int] = {}
    for d, function in enumerate(outputs(index)):
        if not _moves(function, positions):
            continue
        plain = plain_iterator(function)
        if plain is None or plain[1] or plain[0] in found:
            return None
        found[plain[0]] = d
    if not found:
        return ()
    return tuple(found[p] for p in positions) if found.keys() == set(positions) else None


def _moves(function: isl.PwAff, positions: Sequence[int]) -> bool:
    return any(function.involves_dims(isl.dim_type.in_, p, 1) for p in positions)


def _involves(domain: isl.Set, positions: Sequence[int]) -> bool:
    return any(domain.involves_dims(SET, p, 1) for p in positions)


def _find_places(storage: Storage, dimensions: Sequence[int]) -> tuple[int, ...] | None:
    """The coordinates in memory that are these dimensions, directly inside one another.

    None if they lie otherwise.
    """
    if not dimensions:
        return ()
    places = _dimensions(isl.PwMultiAff.from_multi_aff(storage.map), dimensions)
    if not places or places != tuple(range(places[0], places[0] + len(places))):
        return None
    return places
