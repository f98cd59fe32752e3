"""Register tiles with more vectors in a row than registers are left for: column by column.

    acc_0_0 += x0 * w[0..8]               b = rounded(w[0..8])
    acc_0_8 += x0 * w[8..16]              acc_0_0 += x0 * b
    …                               ->    acc_1_0 += x1 * b
    acc_1_0 += x1 * w[0..8]               b = rounded(w[8..16])
    acc_1_8 += x1 * w[8..16]              acc_0_8 += x0 * b
    …                                     …

Row by row, all vectors of a row wait in registers for the next row, and one element for its lanes.
Where registers are short of that, gcc reads a vector again for each of its products: 3 rows of 4
vectors take 15 loads for 12 multiply-adds, of which two begin in a cycle, as two loads do (Zen 3,
8 lanes: 70 Gflop/s of 97). Column by column the elements of all rows wait, and one vector: 94.

A function that gcc does not see through, `rounded`, holds it to one load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyc.codegen.spell import iteration
from polyc.loopnest.index import var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Local,
    LoopExpr,
    Node,
    Read,
    lanes_of,
    rewrite_reads,
    walk_expr,
)
from polyc.scop.expr import Call
from polyc.target.vectors import Vectors

SPARE = 1
"""Registers that gcc wants besides, before it lets operands wait in others."""


def fits_by_rows(height: int, width: int, registers: int) -> bool:
    """Whether the vectors of a row can wait beside the sums of so many rows and vectors."""
    return height * width + width + 1 + SPARE <= registers


def fits_by_columns(height: int, width: int, registers: int) -> bool:
    """Whether the elements of all rows can wait beside the sums."""
    return height * width + height + 1 <= registers


def run_by_columns(
    loop: For, runs: Sequence[Node], pieces: Sequence[For], vectors: Vectors
) -> Node | None:
    """The vectors of a vector loop over rows of one sum, if they are best written so.

    runs: what the loop executes; pieces: the vectors that it is cut into.
    """
    rows = [run for run in runs if isinstance(run, Assign) and run.reduction]
    height, width = len(rows), len(pieces)
    if height < len(runs) or height < 2 or fits_by_rows(height, width, vectors.registers):
        return None
    shared = _find_shared(loop, rows)
    if shared is None or not fits_by_columns(height, width, vectors.registers):
        return None
    return Block(tuple(_column(piece, rows, shared, vectors) for piece in pieces))


def _find_shared(loop: For, rows: Sequence[Assign]) -> Read | None:
    """What all rows read in lanes, if there is one such vector and no other."""
    found = {read for row in rows for read in _moving(loop, row.value)}
    if len(found) != 1 or any(read.dynamic or read.guarded for read in found):
        return None
    (read,) = found
    return read if all(read.dtype == row.dtype and row.dtype.kind == "f" for row in rows) else None


def _moving(loop: For, value: LoopExpr) -> Iterator[Read]:
    """The elements of a value that move with the lanes."""
    for e in walk_expr(value):
        if isinstance(e, Read) and any(loop.var in variables(i) for i in e.element.index):
            yield e


def _column(piece: For, rows: Sequence[Assign], shared: Read, vectors: Vectors) -> Node:
    """One vector of all rows, read once if it is a whole one."""
    lanes = vectors.lanes(shared.dtype.itemsize)
    if piece.idle or piece.lanes or lanes_of(piece) != lanes or not piece.lower.is_constant:
        return Block(tuple(run_in(piece, row) for row in rows))
    local = Local(f"column_{piece.lower.constant}", shared.dtype, (lanes,), shared.element.array)
    place = Element(local.name, (var(piece.var) - piece.lower,))
    held = Call[LoopExpr]("rounded", (shared,), shared.dtype)
    load = Assign(rows[0].statement, (), place, held, shared.dtype)

    def once(element: Element) -> Element:
        return place if element == shared.element else element

    uses = (replace(row, value=rewrite_reads(row.value, once)) for row in rows)
    return Block(tuple(run_in(piece, each) for each in (load, *uses)), (local,))


def run_in(vector: For, run: Node) -> Node:
    """What a vector loop executes alone in one of its vectors, or in its only lane."""
    alone = replace(vector, body=Block((run,)))
    return alone if lanes_of(vector) > 1 else iteration(alone, vector.lower)
