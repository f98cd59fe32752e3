"""The instructions of a CPU that multiply matrices in registers of their own: a new one is a row.

    tile.u8s8      for m in 0 .. rows:                     a: u8[A m + 4 k + r]
                     for n in 0 .. columns:                b: i8[B k + 4 n + r]
                       for k in 0 .. depth:
                         for r in 0 .. 4:
                           acc[C m + n] add= mul(i32(a[…]), i32(b[…]))

Rows, columns and depth are what the registers are told to hold, at most `MOST`. A, B and C are how
far rows lie apart in memory: loads and stores are told that. All operands are in registers when
they are multiplied, and loops that the result does not move with need not store it in between
(`codegen/multiply_tiles.py`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from polyc.target.instructions.rows import Apply, Nest, Operand
from polyc.types.element_types import BFLOAT16, FLOAT32, INT8, INT32, UINT8, scalar_type

MOST = 16
"""Rows, columns and words that a register holds."""

WORD = 4
"""Bytes of a word: of an element of the result, and of the terms that are summed in one."""

REGISTERS = 8

HEADER = "polyc_tiles.h"

ROWS, COLUMNS, DEPTH = "rows", "columns", "depth"


@dataclass(frozen=True)
class MatrixInstruction:
    """A row: what an instruction is called in schedules, means, and takes.

    nest: loops over rows, columns, words, and the terms of a word; needs: what the CPU has, as
    /proc/cpuinfo names it.
    """

    name: str
    nest: Nest
    terms: int
    needs: tuple[str, ...]

    @property
    def kinds(self) -> str:
        """The types of its factors as the runtime calls them: u8i8."""
        return "".join(scalar_type(o.dtype) for o in self.nest.operands if o.dtype is not None)

    def is_native(self, features: Set[str]) -> bool:
        """Whether a CPU with these features has it."""
        return features >= {*self.needs}


def _tile(name: str, a: np.dtype, b: np.dtype, dtype: np.dtype, feature: str) -> MatrixInstruction:
    terms = WORD // a.itemsize
    one = Operand("a", a, ("A", 0, terms, 1), in_memory=True)
    other = Operand("b", b, (0, terms, "B", 1), in_memory=True)
    product = Apply("mul", (Apply("cast", (one,), dtype), Apply("cast", (other,), dtype)), dtype)
    result = Operand("acc", dtype, ("C", 1, 0, 0), in_memory=True)
    nest = Nest((ROWS, COLUMNS, DEPTH, terms), result, product, "add")
    return MatrixInstruction(name, nest, terms, ("amx_tile", feature))


TILE_U8S8 = _tile("tile.u8s8", UINT8, INT8, INT32, "amx_int8")
TILE_S8U8 = _tile("tile.s8u8", INT8, UINT8, INT32, "amx_int8")
TILE_S8S8 = _tile("tile.s8s8", INT8, INT8, INT32, "amx_int8")
TILE_BF16 = _tile("tile.bf16", BFLOAT16, BFLOAT16, FLOAT32, "amx_bf16")

MATRICES = (TILE_U8S8, TILE_S8U8, TILE_S8S8, TILE_BF16)
