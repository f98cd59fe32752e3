"""Tiles of a contraction for an instruction that multiplies matrices, where that is faster.

    acc[i, j] add= i32(a[i, k]) * i32(b[k, j])      rows i, columns j, words of four k

The operand that moves with the lanes gives the columns, and lies as for an instruction that takes
four terms in each lane (`grouping.py`); the other one gives the rows, one loop of which is chosen.
A tile is priced by the products that it is cut into (`codegen/tile_groups.py`): one takes as many
cycles as it has rows, but never less than some, however many columns and words it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, prod

from polyc.codegen.remainder import MATRIX_ROWS
from polyc.codegen.tile_groups import group_parts
from polyc.loopnest.instructions import unify_all
from polyc.mapping.cpu.contraction.register_tile import least_price
from polyc.mapping.cpu.contraction.rows_as_one import Rows
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.reading import Grouped, Tile
from polyc.memory.strides import Strides, has_known_step
from polyc.scop.expr import Load
from polyc.scop.scop import Statement
from polyc.target.costs import (
    FMA_UNITS,
    LINES_A_CYCLE,
    MATRIX_LEAST,
    MATRIX_STORED,
    MATRIX_WAITS,
    price,
)
from polyc.target.instructions.matrices import MOST, MatrixInstruction
from polyc.target.machine import Target

MOST_PARTS = 4
"""Registers' worth of rows, and of columns, that a tile has at most."""

WIDTHS = tuple(range(MOST, MOST_PARTS * MOST + 1, MOST))


def list_matrix_tiles(
    one: OpenCluster, vector: int, grouped: Grouped, target: Target, runs: Sequence[Rows] = ()
) -> Iterator[tuple[Tile, Grouped, Rows]]:
    """(a tile, the words of a sum that it takes together, the loops that run as one for its rows).

    For each loop that may give the rows, or each of the `runs` that may run as one for them, the
    cheapest tile, and of these the cheapest first; none that does not beat vectors.
    """
    cluster = one.cluster
    update = next(s for s in cluster.statements if s.name == grouped.statement)
    row = _find_row(update, one, vector, target)
    sizes = update.exact_extents
    lane = cluster.shared[vector][update.name]
    depth, columns = sizes[grouped.position], sizes[lane]
    if row is None or cluster.summed or depth is None or columns is None or depth % row.terms:
        return
    words = _divide(depth // row.terms)
    accesses = one.strides[update.name]
    lying = [one.storages.get(access.array) for access in accesses]
    # Of those that cost the same, with near rows.
    priced: list[tuple[float, int, Tile, Rows]] = []
    for run in (*runs, *((d,) for d in range(len(cluster.shared)))):
        positions = [cluster.shared[d][update.name] for d in run]
        gives = all(_gives_rows(accesses[1:], lane, p) for p in positions)
        if vector in run or not gives or prod(cluster.extents[d] for d in run) == 1:
            continue
        p = positions[-1]
        touched = zip(update.columns, lying, strict=True)
        if all(has_known_step(column[p], storage) for column, storage in touched):
            cycles, height, width = _price_rows(update, positions, lane, row.terms, words)
            apart = max(access.steps[p] or 0 for access in accesses[1:])
            joined = run if len(run) > 1 else ()
            priced.append((cycles, apart, (run[0], height, width), joined))
    most = _price_vectors(one, vector, update, grouped, target) if priced else 0.0
    for cycles, _, tile, joined in sorted(priced, key=lambda each: each[:2]):
        if cycles < most:
            yield tile, replace(grouped, instruction=row.name, words=words), joined


def _price_rows(
    update: Statement, positions: Sequence[int], lane: int, terms: int, words: int
) -> tuple[float, int, int]:
    """(cycles, rows, columns) of the cheapest tile whose rows are iterations of these iterators."""
    extents = update.estimated_extents
    rows, columns = prod(extents[p] for p in positions), extents[lane]
    taken = {*positions, lane}
    # A statement writes each sum once: what its result does not move with is summed up.
    added = {q for q, moves in enumerate(update.columns[0]) if not any(moves)}
    sums = prod(n for q, n in enumerate(extents) if q not in taken | added)
    steps = prod(n for q, n in enumerate(extents) if q in added) // (terms * words)
    is_open = any(update.exact_extents[p] is None for p in positions)
    found: list[tuple[float, int, int]] = []
    for height in dict.fromkeys((*_heights(rows), *(WIDTHS if is_open else ()))):
        heights = _cut_open(rows, height) if is_open else _cut(rows, height)
        for width in (min(w, columns) for w in WIDTHS if w < columns + MOST):
            cycles = sums * sum(
                m * n * _price_part(h, w, words, steps)
                for h, m in heights
                for w, n in _cut(columns, width)
            )
            found.append((cycles, height, width))
    return min(found, key=lambda each: each[0])


def _find_row(
    update: Statement, one: OpenCluster, vector: int, target: Target
) -> MatrixInstruction | None:
    """The row that computes what a statement does, with the columns of its result in lanes."""
    lane = one.cluster.shared[vector][update.name]
    moves = {
        id(load): access.steps[lane] != 0
        for load, access in zip(update.loads, one.strides[update.name][1:], strict=True)
    }
    for row in filter(target.vectors.has, target.vectors.matrices):
        for bound in unify_all(row, update.reduction, update.value):
            match bound:
                case {"a": Load(dynamic=()) as a, "b": Load(dynamic=()) as b}:
                    if (moves[id(a)], moves[id(b)]) == (False, True):
                        return row
    return None


def _gives_rows(loads: Sequence[Strides], lane: int, position: int) -> bool:
    """Whether a loop moves the operand that is the same in all lanes, and that alone."""
    return all((a.steps[lane] == 0) == (a.steps[position] != 0) for a in loads)


def _divide(words: int) -> int:
    """The words that a product takes at once: as many as divide all of them, if these are many."""
    whole = next(n for n in range(min(MOST, words), 0, -1) if words % n == 0)
    return whole if 2 * whole >= min(MOST, words) else min(MOST, words)


def _heights(rows: int) -> Iterator[int]:
    """28 rows  ->  14 and 28: as many as fill registers, in tiles that are alike."""
    seen = (ceil(rows / ceil(rows / (parts * MOST))) for parts in range(1, MOST_PARTS + 1))
    yield from dict.fromkeys(seen)


def _cut(extent: int, size: int) -> list[tuple[int, int]]:
    """(size, how many) of the tiles of a loop, the last of which may be smaller."""
    whole, rest = divmod(extent, size)
    return [(n, times) for n, times in ((size, whole), (rest, 1)) if n and times]


def _cut_open(extent: int, size: int) -> list[tuple[int, int]]:
    """The same of a loop whose extent a call decides: what is left is cut into lower tiles."""
    tiles = [(size, extent // size)]
    left = extent % size
    for n in (n for n in MATRIX_ROWS if n < size):
        tiles.append((n, left // n))
        left %= n
    return [(n, times) for n, times in tiles if times]


def _price_part(height: int, width: int, words: int, steps: int) -> float:
    """Cycles of a tile, over all steps of its sum."""
    total = 0.0
    for group in group_parts(1, height, width, words):
        products = sum(max(MATRIX_LEAST, rows[1]) for rows, _ in group.sums)
        each = max(products, MATRIX_WAITS, group.loads / LINES_A_CYCLE)
        total += steps * each + MATRIX_STORED * len(group.sums)
    return total


def _price_vectors(
    one: OpenCluster, vector: int, update: Statement, grouped: Grouped, target: Target
) -> float:
    """Cycles of the same by an instruction that takes a word in each lane."""
    lanes = target.lanes(one.arrays[update.array].dtype)
    each = least_price(one.cluster, vector, one.strides, one.arrays, target)
    each *= price(target).sums.get(grouped.instruction, 1.0)
    return prod(update.estimated_extents) / (lanes * grouped.size) / FMA_UNITS * each
