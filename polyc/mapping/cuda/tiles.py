"""How a block shares a product out: its tile, who has which results, and who multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from polyc.codegen.loopnest import LoopKind
from polyc.coordinates.cut_tiles import Tile
from polyc.mapping.cuda.loops import Loop
from polyc.target.cuda import CudaTarget


@dataclass(frozen=True)
class Shape:
    """A block's tile and its loops.

    around: over the threads that have results; own: the digits of a thread's results, the last
    that of neighbours in a row; product: loops inside those over threads, around a multiply-add.
    slots: of an instruction unit, for each result and step of the sum. shown: who multiplies what.
    """

    tile: Tile
    around: tuple[Loop, ...]
    own: tuple[str, ...]
    product: tuple[Loop, ...]
    slots: float
    shown: str

    @property
    def by_groups(self) -> bool:
        """Whether warpgroups multiply, out of shared memory."""
        return any(loop.kind == "wgmma" for loop in self.product)

    @property
    def threads(self) -> int:
        return prod(loop.width for loop in self.around)

    def over_results(self, last: LoopKind) -> list[Loop]:
        """Loops over a thread's results, the innermost of a kind."""
        *outer, neighbours = self.own
        return [*self.around, *(Loop("unroll", d) for d in outer), Loop(last, neighbours)]

    @property
    def over_products(self) -> list[Loop]:
        return [*self.around, *self.product]


BUSY = 256
"""Threads that keep a multiprocessor busy, given some work of their own: two warps a scheduler."""


def estimate(shape: Shape, extents: tuple[int, int, int, int], target: CudaTarget) -> float:
    """Relative time by a model of waves: what a multiprocessor gets of the blocks, by their work.

    Fewer than BUSY threads leave the multiprocessor waiting.
    """
    batch, rows, columns, depth = extents
    tile = shape.tile
    blocks = batch * ceil(rows / tile.rows.count) * ceil(columns / tile.columns.count)
    each = ceil(blocks / target.multiprocessors)
    steps = ceil(depth / tile.depth.count) * tile.depth.count
    work = tile.rows.count * tile.columns.count * steps * shape.slots
    waiting = max(1.0, BUSY / (shape.threads * min(each, target.blocks_per_multiprocessor)))
    return each * work * waiting
