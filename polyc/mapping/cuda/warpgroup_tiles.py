"""Products by the tensor cores of Hopper: four warps multiply at once, out of shared memory.

The instruction has 64 rows, of which warp ww has 16, and as many columns as the block's tile:

    row  =  64 am + 16 ww + 8 im + gm          (wg: the warpgroup, if there are several)
    column  =  64 nr + 8 an + 2 tn + jn

Lanes and registers have the sums as with `warp_tiles.py`. Both factors are read where they lie: in
rows of 128 bytes that are swizzled, 64 steps of the sum, or 64 rows or columns of one step.
"""

from __future__ import annotations

from polyc.mapping.cuda.coordinates.cut_tiles import Digits, Tile
from polyc.mapping.cuda.tiles import Shape
from polyc.target.instructions.tiles import GROUP_BF16, GROUP_F16, Instruction

RUN = 64
"""Elements in a row of 128 bytes, and rows of an instruction."""

WGMMA = {one.dtype: one for one in (GROUP_F16, GROUP_BF16)}

# Warpgroups; rows, in 64s, of each; columns.
_SIZES = ((2, 1, 256), (2, 2, 128), (2, 1, 128), (1, 1, 128), (2, 1, 64), (1, 1, 64))


def list_warpgroup_shapes(instruction: Instruction) -> list[Shape]:
    """The tiles to choose from."""
    return [_shape(instruction, *sizes) for sizes in _SIZES]


def _shape(instruction: Instruction, groups: int, below: int, columns: int) -> Shape:
    step, rows = instruction.depth, groups * below * RUN
    tile = Tile(
        Digits(("wg", "am", "ww", "im", "gm"), (groups, below, 4, 2, 8)),
        Digits(("nr", "an", "tn", "jn"), (columns // RUN, RUN // 8, 4, 2)),
        Digits(("ks", "kk"), (RUN // step, step)),
        ("wg", "ww", "gm", "tn", "am", "nr", "an", "im", "jn"),
        RUN,
    )
    return Shape(
        tile,
        ("wg", "ww"),
        ("gm", "tn"),
        ("am", "nr", "an", "im", "jn"),
        (),
        ("ks", "am", "im", "nr", "an", "jn", "kk"),
        instruction,
        # Twice the rate of a warp's products; what is copied for a block, and the wait for its end.
        0.5 + 16 / rows + 16 / columns,
    )
