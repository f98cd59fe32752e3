"""How a block shares a product out: its tile, who has which results, and who multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from polyc.mapping.cuda.coordinates.cut_tiles import Tile
from polyc.target.cuda import BUSY, CudaTarget
from polyc.target.instructions.tiles import Instruction


@dataclass(frozen=True)
class Shape:
    """A block's tile and its loops.

    warps, lanes: the digits that count them; own: those of a thread's results, the last that of
    neighbours in a row. steps: of the sum, one after the other; inner: the loops around a
    multiply-add inside of these, which an instruction runs at once if there is one, and are else
    written out. slots: of an instruction unit, for each result and step of the sum.
    """

    tile: Tile
    warps: tuple[str, ...]
    lanes: tuple[str, ...]
    own: tuple[str, ...]
    steps: tuple[str, ...]
    inner: tuple[str, ...]
    instruction: Instruction | None
    slots: float

    @property
    def by_groups(self) -> bool:
        """Whether warpgroups multiply, out of shared memory."""
        return self.instruction is not None and self.instruction.kind == "wgmma"

    @property
    def threads(self) -> int:
        counts = self.tile.counts
        return prod(counts[digit] for digit in (*self.warps, *self.lanes))


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
