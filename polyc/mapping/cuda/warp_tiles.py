"""Products by tensor cores: the warps of a block share its tile, and a warp multiplies at once.

A warp's tile is made of the instruction's: 16 rows by 8 columns, of which lane l = 4 g + t has the
sums at rows g, g + 8 and columns 2 t, 2 t + 1. These are digits of a place in the block's tile,

    row  =  64 wm + 16 am + 8 im + gm           warp, which 16, which half, g
    column  =  64 wn + 8 an + 2 tn + jn         warp, which 8, t, which of two

so the loops over gm and tn, 4 threads and 1 apart, say which lane has what: {lane} <-> {gm, tn},
and {register} <-> {am, an, im, jn}. Those over the latter and over the instruction's part of the
sum are of kind "mma": the tensor cores run them at once.
"""

from __future__ import annotations

import numpy as np

from polyc.mapping.cuda.coordinates.cut_tiles import Digits, Tile
from polyc.mapping.cuda.tiles import Shape
from polyc.target.cuda import CudaTarget
from polyc.target.instructions.tiles import BF16, F16, TF32, Instruction

ROW_BYTES = 64
"""Of a factor's tile along the sum: two instructions, of 32 bytes each."""


def choose_instruction(dtype: np.dtype, target: CudaTarget, tf32: bool) -> Instruction | None:
    """What multiplies factors of a type; None if tensor cores do not, or are not asked to."""
    known = (F16, BF16, TF32) if tf32 else (F16, BF16)
    return next((i for i in known if i.dtype == dtype and target.capability >= i.oldest), None)


def list_warp_shapes(instruction: Instruction) -> list[Shape]:
    """The tiles to choose from."""
    return [_shape(instruction, *sizes) for sizes in _SIZES]


# Warps down and across, and the tile of each.
_SIZES = (
    (2, 4, 64, 64),
    (4, 2, 64, 64),
    (2, 2, 64, 64),
    (2, 2, 64, 32),
    (2, 2, 32, 64),
    (2, 2, 32, 32),
    (2, 2, 16, 32),
    (2, 2, 32, 16),
    (2, 2, 16, 16),
)


def _shape(instruction: Instruction, down: int, across: int, rows: int, columns: int) -> Shape:
    """down x across warps, each with a tile of rows x columns."""
    step = instruction.depth
    depth = ROW_BYTES // instruction.dtype.itemsize
    tile = Tile(
        Digits(("wm", "am", "im", "gm"), (down, rows // 16, 2, 8)),
        Digits(("wn", "an", "tn", "jn"), (across, columns // 8, 4, 2)),
        Digits(("ks", "kk"), (depth // step, step)),
        ("wm", "wn", "gm", "tn", "am", "an", "im", "jn"),
    )
    return Shape(
        tile,
        ("wm", "wn"),
        ("gm", "tn"),
        ("am", "im", "an", "jn"),
        ("ks",),
        ("am", "im", "an", "jn", "kk"),
        instruction,
        # Shared memory feeds a warp's rows and columns; copies of a block's take as much again.
        1 + 16 / rows + 16 / columns + 8 / (down * rows) + 8 / (across * columns),
    )
