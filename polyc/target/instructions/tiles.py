"""The instructions of a GPU that multiply tiles: a new one is a new row of the table.

A warp multiplies 16 rows by 8 columns, a warpgroup 64 rows by as many columns as there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyc.types.element_types import BFLOAT16, FLOAT16, FLOAT32


@dataclass(frozen=True)
class Instruction:
    """A product of tiles: its name in PTX, the type of the factors, and its depth.

    kind: of the loops that stand for it; oldest: the first compute capability that has it.
    """

    name: str
    dtype: np.dtype
    depth: int
    kind: Literal["mma", "wgmma"] = "mma"
    oldest: int = 80

    @property
    def loads_columns(self) -> bool:
        """Whether warps load fragments from tiles in which the sum is not innermost.

        Transposing loads do that; these are of 16 bits.
        """
        return self.dtype.itemsize == 2


TF32 = Instruction("mma.m16n8k8.tf32", FLOAT32, 8)
F16 = Instruction("mma.m16n8k16.f16", FLOAT16, 16)
BF16 = Instruction("mma.m16n8k16.bf16", BFLOAT16, 16)
GROUP_F16 = Instruction("wgmma.m64k16.f16", FLOAT16, 16, "wgmma", 90)
GROUP_BF16 = Instruction("wgmma.m64k16.bf16", BFLOAT16, 16, "wgmma", 90)

INSTRUCTIONS = {one.name: one for one in (TF32, F16, BF16, GROUP_F16, GROUP_BF16)}
