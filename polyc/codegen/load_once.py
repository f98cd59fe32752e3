"""Register tiles that load each vector once, and multiply it with an element of every row.

    acc_0_0 += x0 * w[0..8]               loaded_0 = rounded(w[0..8])
    acc_0_8 += x0 * w[8..16]              loaded_8 = rounded(w[8..16])
    acc_1_0 += x1 * w[0..8]         ->    acc_0_0 += x0 * loaded_0
    acc_1_8 += x1 * w[8..16]              acc_0_8 += x0 * loaded_8
    …                                     acc_1_0 += x1 * loaded_0; …

Left to itself, gcc reads a vector again for each of its products, as an operand in memory: it takes
a load for free. But two loads begin in a cycle, as two multiply-adds do, and elements are loaded as
well: 4 rows of 2 vectors run at 58 Gflop/s of 97 so, and at 85 with 8 loads in place of 12 (Zen 3,
8 lanes; 5 rows: 73 and 95; 6 rows: 89 and 95). A function that gcc does not see through, `rounded`,
holds it to one load.

The vectors of a row wait in registers for the next row. Where these are too few for that, the
elements of all rows wait instead, and vectors pass by, column by column: 3 rows of 4 vectors have
12 sums, 3 elements and a vector in 16 registers, and run at 94 in place of 70.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyc.codegen.spell import run_in
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
    extent_of,
    lanes_of,
    walk_expr,
)
from polyc.loopnest.rewrite import rewrite_reads
from polyc.scop.expr import Call
from polyc.target.vectors import Vectors


def fits_by_rows(height: int, width: int, registers: int) -> bool:
    """Whether the vectors of a row can wait beside the sums of so many rows and vectors."""
    return height * width + width + 1 <= registers


def fits_by_columns(height: int, width: int, registers: int) -> bool:
    """Whether the elements of all rows can wait beside the sums."""
    return height * width + height + 1 <= registers


def load_once(
    loop: For, runs: Sequence[Node], pieces: Sequence[For], vectors: Vectors
) -> Node | None:
    """The vectors of a vector loop over rows of one sum, if they share what they load.

    runs: what the loop executes; pieces: the vectors that it is cut into.
    """
    rows = [run for run in runs if isinstance(run, Assign) and run.reduction]
    height, width = len(rows), len(pieces)
    shared = _find_shared(loop, rows) if height == len(runs) > 1 else None
    if shared is None:
        return None
    tile = _Tile(loop, shared, vectors)
    if not any(map(tile.is_whole, pieces)):
        return None
    if fits_by_rows(height, width, vectors.registers):
        uses = [tile.use(piece, row) for row in rows for piece in pieces]
        body = (*(load for piece in pieces for load in tile.load(piece, rows[0])), *uses)
    elif fits_by_columns(height, width, vectors.registers):
        body = tuple(n for piece in pieces for n in tile.run_column(piece, rows))
    else:
        return None
    return Block(body, (tile.local,))


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


@dataclass(frozen=True)
class _Tile:
    """The rows of a vector loop, and the vectors that they share, which are loaded once.

    Those are whole ones, at places that are known.
    """

    loop: For
    shared: Read
    vectors: Vectors

    @property
    def local(self) -> Local:
        """Where the vectors wait."""
        extent = extent_of(self.loop) or lanes_of(self.loop)
        name, source = "loaded", self.shared.element.array
        return Local(name, self.shared.dtype, (extent,), source, is_operand=True)

    def load(self, piece: For, row: Assign) -> list[Node]:
        """The vector of a piece taken into its register, if it is a whole one."""
        if not self.is_whole(piece):
            return []
        held = Call[LoopExpr]("rounded", (self.shared,), self.shared.dtype)
        return [run_in(piece, Assign(row.statement, (), self._place, held, self.shared.dtype))]

    def use(self, piece: For, row: Assign) -> Node:
        """A row's update in a piece."""
        if not self.is_whole(piece):
            return run_in(piece, row)

        def once(element: Element) -> Element:
            return self._place if element == self.shared.element else element

        return run_in(piece, replace(row, value=rewrite_reads(row.value, once)))

    def run_column(self, piece: For, rows: Sequence[Assign]) -> list[Node]:
        """All rows in a piece."""
        return [*self.load(piece, rows[0]), *(self.use(piece, row) for row in rows)]

    @property
    def _place(self) -> Element:
        return Element("loaded", (var(self.loop.var) - self.loop.lower,))

    def is_whole(self, piece: For) -> bool:
        """Whether all lanes of a piece are used, from a place that is known."""
        lanes = self.vectors.lanes(self.shared.dtype.itemsize)
        is_full = lanes_of(piece) == lanes and not (piece.idle or piece.lanes)
        return is_full and piece.lower.is_constant and self.loop.lower.is_constant
