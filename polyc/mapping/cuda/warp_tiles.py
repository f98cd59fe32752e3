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

from dataclasses import dataclass

import numpy as np

from polyc.coordinates.cut_tiles import Digits, Tile
from polyc.element_types import BFLOAT16, FLOAT16, FLOAT32
from polyc.mapping.cuda.loops import Loop
from polyc.mapping.cuda.tiles import Shape
from polyc.target.cuda import CudaTarget

ROW_BYTES = 64
"""Of a factor's tile along the sum: two instructions, of 32 bytes each."""


@dataclass(frozen=True)
class Instruction:
    """A product of 16 rows and 8 columns: its name in PTX, the type of the factors, its depth.

    loads_columns: whether warps load fragments from tiles in which the sum is not innermost, by
    transposing loads; these are of 16 bits.
    """

    name: str
    dtype: np.dtype
    depth: int

    @property
    def loads_columns(self) -> bool:
        return self.dtype.itemsize == 2


TF32 = Instruction("mma.m16n8k8.tf32", FLOAT32, 8)
F16 = Instruction("mma.m16n8k16.f16", FLOAT16, 16)
BF16 = Instruction("mma.m16n8k16.bf16", BFLOAT16, 16)

OLDEST = 80
"""The first compute capability that has all of them."""


def choose_instruction(dtype: np.dtype, target: CudaTarget, tf32: bool) -> Instruction | None:
    """What multiplies factors of a type; None if tensor cores do not, or are not asked to."""
    known = (F16, BF16, TF32) if tf32 else (F16, BF16)
    if target.capability < OLDEST:
        return None
    return next((instruction for instruction in known if instruction.dtype == dtype), None)


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
    around = (
        Loop("thread", "wm", down, 32 * across),
        Loop("thread", "wn", across, 32),
        Loop("thread", "gm", 8, 4),
        Loop("thread", "tn", 4),
    )
    at_once = tuple(Loop("mma", digit) for digit in ("am", "im", "an", "jn", "kk"))
    return Shape(
        tile,
        around,
        ("am", "im", "an", "jn"),
        (Loop("sequential", "ks"), *at_once),
        # Shared memory feeds a warp's rows and columns; copies of a block's take as much again.
        1 + 16 / rows + 16 / columns + 8 / (down * rows) + 8 / (across * columns),
        f"{down}x{across} warps of {rows}x{columns}, {instruction.name}",
    )
