"""A product in the tiles that a schedule says: its form, checked, and cut (`cut_tiles.py`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.coordinates.cut_tiles import OUTER, Digits, Tiled, cut_tiles
from polyc.mapping.cuda.coordinates.cut_tiles import Tile as Places
from polyc.mapping.cuda.coordinates.gemm_form import (
    GemmForm,
    find_gemm_form,
    in_stored_types,
    share_out,
)
from polyc.names import show
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import Side, Tile
from polyc.schedule.initial import Key
from polyc.scop.scop import Array

LARGEST_TILE = 1 << 16
"""Places of a tile, along each side."""


def tile_product(
    cluster: Cluster,
    directive: Tile,
    loops: Sequence[Sequence[Key]],
    private: Collection[str],
    arrays: Mapping[str, Array],
) -> tuple[Tiled, str]:
    """(the product in tiles, the array of its sums).

    loops: rows, columns, those of the sum, and those of the batch.
    """
    tile = _read_places(directive)
    form = find_gemm_form(cluster, private)
    if form is None:
        raise IllegalSchedule(
            "these loops are not of a sum of products of two factors, or one has under 8 rows or "
            "columns; leave the tile out"
        )
    rows, columns, batch = (_shared(side, cluster) for side in (*loops[:2], loops[3]))
    sums = [position for name, position in loops[2] if name == form.update.name]
    chosen = _choose(form, cluster, batch, rows, columns)
    whole = sorted((*rows, *columns, *batch)) == [*range(len(cluster.shared))]
    if chosen is None or not whole or sorted(sums) != sorted(form.sums):
        raise IllegalSchedule(
            "rows are loops that move one factor alone, columns the other, what else is shared is "
            f"said behind `at`, and all loops are said once; here rows and columns are "
            f"{_spell(form, cluster, form.rows)} and {_spell(form, cluster, form.columns)}, and "
            f"the sum is over {', '.join(show(form.update.iterators[p]) for p in form.sums)}"
        )
    form = in_stored_types(replace(chosen, sums=tuple(sums)))
    return cut_tiles(form, cluster, tile, arrays), form.update.array


def _read_places(directive: Tile) -> Places:
    """The digits of a tile; IllegalSchedule if they count no places."""
    sides = (directive.rows, directive.columns, directive.sums)
    names = [name for side in sides for name, _ in side.digits]
    reserved = {*OUTER, "kt"}
    if len(set(names)) < len(names) or reserved & {*names}:
        raise IllegalSchedule(
            f"digits have names of their own, which are none of {', '.join(sorted(reserved))}"
        )
    for side in sides:
        count = prod(size for _, size in side.digits)
        if any(size < 1 for _, size in side.digits) or count > LARGEST_TILE:
            raise IllegalSchedule(
                f"digits are from 1 on, and a tile has up to {LARGEST_TILE} places"
            )
    places = {name for side in sides[:2] for name, _ in side.digits}
    if sorted(directive.results) != sorted(places):
        raise IllegalSchedule("behind `into` stand all digits of rows and of columns, once each")
    rows, columns, depth = map(_digits, sides)
    for digits in (rows, columns) if directive.run else ():
        if directive.run not in [prod(digits.extents[k:]) for k in range(len(digits.extents))]:
            raise IllegalSchedule(f"a run of {directive.run} is that of the last digits of a side")
    return Places(rows, columns, depth, directive.results, directive.run)


def _digits(side: Side) -> Digits:
    return Digits(tuple(name for name, _ in side.digits), tuple(size for _, size in side.digits))


def _shared(side: Sequence[Key], cluster: Cluster) -> tuple[int, ...]:
    """The shared loops among those of a side."""
    where = [{*loop.items()} for loop in cluster.shared]
    return tuple(d for key in side for d, items in enumerate(where) if key in items)


def _choose(
    form: GemmForm,
    cluster: Cluster,
    batch: Sequence[int],
    rows: Sequence[int],
    columns: Sequence[int],
) -> GemmForm | None:
    """The form with these rows and columns; None if a factor moves otherwise."""
    if sorted(rows) == sorted(form.columns) and sorted(columns) == sorted(form.rows):
        count, height, width, depth = form.extents
        form = replace(
            form,
            rows=form.columns,
            columns=form.rows,
            left=form.right,
            right=form.left,
            extents=(count, width, height, depth),
        )
    elif not (sorted(rows) == sorted(form.rows) and sorted(columns) == sorted(form.columns)):
        found = share_out(form, cluster, batch, rows[0]) if len(rows) == 1 else None
        if found is None or sorted(found.columns) != sorted(columns):
            return None
        form = found
    return replace(form, batch=tuple(batch), rows=tuple(rows), columns=tuple(columns))


def _spell(form: GemmForm, cluster: Cluster, loops: Sequence[int]) -> str:
    extents = form.update.estimated_extents
    where = [cluster.shared[d][form.update.name] for d in loops]
    return ", ".join(show(form.update.iterators[p]) for p in where if extents[p] > 0)
