"""Products: statements that update a box of results along a loop that moves none of them.

    for i: for j: for k:  C[i, j] += A[i, k] * B[k, j]         rows i, lanes j, summed k

Several results in registers at a time make it worth while: what is read along the lanes serves all
rows, and no result is loaded or stored in between (`register_tile.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.analysis.dependences import maps, union_of
from polyc.loops.schedule.band import Band
from polyc.loops.schedule.direction import Row, direction, is_carried, rows_of, steps_along
from polyc.mapping.cpu.contraction.tile_prices import price_product
from polyc.scop.expr import Load, walk
from polyc.scop.scop import Statement
from polyc.target.machine import Target

MOST_ROWS, MOST_VECTORS = 16, 4
"""Of a register tile."""

MOST_BOXES = 8
"""Register tiles above one another in a tile for the caches: so many rows use what the first-level
cache holds for the lanes often enough, and threads have tiles to share out of smaller matrices.
"""


@dataclass(frozen=True)
class Product:
    """A statement, and what the members of its band are to it.

    moves: for its rows and its lanes, how iterators move along them. height, width: of a tile.
    """

    statement: str
    rows: int
    lanes: int
    summed: tuple[int, ...]
    moves: tuple[tuple[int, ...], tuple[int, ...]]
    height: int
    width: int
    vector: int

    def step_of(self, member: int) -> int:
        """The iterations of a member that a box of results takes."""
        return {self.rows: self.height, self.lanes: self.width}.get(member, 1)


def find_products(
    outer: isl.UnionMap,
    band: Band,
    statements: Mapping[str, Statement],
    validity: isl.UnionMap,
    target: Target,
) -> list[Product]:
    """The products of a band that agree on its rows and its lanes.

    outer  # S -> [values of the loops around]
    """
    found: list[Product] = []
    if not band.is_permutable or len(band.order) < 3:
        return found
    for name in band.names:
        product = _product(statements[name], rows_of(outer, statements[name]), band, target)
        if product and (not found or _agree(found[0], product)):
            found.append(product)
    return [p for p in found if not _carried(p, outer, band, validity)]


def cache_sizes(product: Product, members: Sequence[int], target: Target) -> list[int]:
    """The extents of a tile for the caches, multiples of a register tile.

    What serves the lanes of a box stays in the first-level cache along what is summed; what all
    boxes of a tile read stays in the second-level cache.
    """
    item = target.vectors.bytes // product.vector
    summed = _power(target.l1d // 2 // (product.height * item))
    columns = target.l2 // 2 // (summed * item)
    rows = target.l2 // 4 // (summed * item)
    known = dict.fromkeys(product.summed, summed)
    rows = min(rows, MOST_BOXES * product.height)
    for member, size in ((product.rows, rows), (product.lanes, columns)):
        step = product.step_of(member)
        known[member] = max(1, size // step) * step
    return [known.get(k, 1) for k in members]


def _power(value: int) -> int:
    """The largest power of two that is no greater."""
    return 1 << max(0, value.bit_length() - 1)


def _agree(one: Product, other: Product) -> bool:
    return (one.rows, one.lanes, one.height, one.width) == (
        other.rows,
        other.lanes,
        other.height,
        other.width,
    )


def _product(
    statement: Statement, around: Sequence[Row], band: Band, target: Target
) -> Product | None:
    own = [row for k in band.order for row in rows_of(band.member(k), statement)]
    found = [direction([*around, *own], len(around) + k) for k in band.order]
    if any(load.dynamic for load in statement.loads) or None in found:
        return None
    moves = {k: m for k, m in zip(band.order, found, strict=True) if m is not None and any(m)}
    loads = [load for load in statement.loads if not _is_target(load, statement)]
    accesses = [statement.write, *(load.index for load in loads)]
    steps = {k: [steps_along(index, m) for index in accesses] for k, m in moves.items()}
    if any(None in of for of in steps.values()):
        return None
    summed = tuple(k for k, of in steps.items() if not any(of[0] or ()))
    for lanes in (k for k, of in steps.items() if _is_unit(of[0]) and all(map(_fits_lanes, of))):
        walking = [n for n, step in enumerate(steps[lanes]) if n and any(step or ())]
        for rows in (k for k in steps if k not in (*summed, lanes)):
            still = [n for n in walking if not any(steps[rows][n] or ())]
            if not (summed and still):
                continue
            vector = _vector(statement, target)
            height, vectors = _tile(len(walking), target.vectors.registers, target.vectors.bytes)
            both = moves[rows], moves[lanes]
            return Product(
                statement.name, rows, lanes, summed, both, height, vectors * vector, vector
            )
    return None


def _is_target(load: Load, statement: Statement) -> bool:
    return load.array == statement.array and bool(load.index.plain_is_equal(statement.write))


def _is_unit(step: tuple[int, ...] | None) -> bool:
    """Whether an access moves by one element of its innermost dimension."""
    return step is not None and step[-1:] == (1,) and not any(step[:-1])


def _fits_lanes(step: tuple[int, ...] | None) -> bool:
    return step is not None and (not any(step) or _is_unit(step))


def _vector(statement: Statement, target: Target) -> int:
    """The lanes of a vector of the widest elements that a statement computes with."""
    widest = max((e.dtype for e in walk(statement.value)), key=lambda dtype: dtype.itemsize)
    return target.lanes(widest)


def _tile(walking: int, registers: int, wide: int) -> tuple[int, int]:
    """The cheapest height, and width in vectors, of those that the registers hold."""
    fitting = [
        (price_product(True, wide, h, v), h, v)
        for h in range(2, MOST_ROWS + 1)
        for v in range(1, MOST_VECTORS + 1)
        if h * v + walking * v + 1 <= registers
    ]
    _, height, vectors = min(fitting)
    return height, vectors


def _carried(product: Product, outer: isl.UnionMap, band: Band, validity: isl.UnionMap) -> bool:
    """Whether lanes hand each other something, all else being equal."""
    held = outer
    for k in band.order:
        if k != product.lanes:
            held = held.flat_range_product(band.member(k))
    name = product.statement
    own = union_of(m for s, t, m in maps(validity) if s == t == name)
    return is_carried(own, held, band.member(product.lanes))
