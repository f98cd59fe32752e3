"""What the vector unit of a CPU can do: whatever passes conclude about lanes, they read here."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from polyc.target.instructions.lanes import GATHER, MASKED_LOAD, MASKED_STORE, ROWS
from polyc.target.instructions.matrices import MATRICES, MatrixInstruction
from polyc.target.instructions.rows import Apply, Operand, VectorInstruction
from polyc.types.element_types import INT32


@dataclass(frozen=True)
class Vectors:
    """bytes: of a register; registers: how many.

    masked: lanes can be left idle at no cost, in loads and stores; gathers: a load whose lanes lie
    apart is one instruction; scalable: registers may be longer than `bytes`, by how much is known
    at run time (SVE); the code that is generated takes `bytes` of them. instructions: the rows that
    schedules may use, and matrices those that multiply matrices; features: what the CPU has, by
    which they are spelled.
    """

    bytes: int
    registers: int
    masked: bool = False
    gathers: bool = False
    scalable: bool = False
    instructions: tuple[VectorInstruction, ...] = ROWS
    matrices: tuple[MatrixInstruction, ...] = MATRICES
    features: tuple[str, ...] = ()

    @staticmethod
    def of(bytes: int, registers: int, features: Set[str]) -> Vectors:
        """The vector unit of a CPU with these features, as Linux names them."""
        return Vectors(
            bytes,
            registers,
            masked=MASKED_LOAD.is_native(features) and MASKED_STORE.is_native(features),
            gathers=GATHER.is_native(features),
            scalable="sve" in features,
            features=tuple(sorted(features)),
        )

    def lanes(self, itemsize: int) -> int:
        """Elements of a register: bytes / itemsize, at least 1."""
        return max(1, self.bytes // itemsize)

    def has(self, row: VectorInstruction | MatrixInstruction) -> bool:
        """Whether the CPU has an instruction of its own for a row."""
        known = row in self.instructions or row in self.matrices
        return known and row.is_native(frozenset(self.features))

    @property
    def products(self) -> frozenset[tuple[np.dtype, np.dtype]]:
        """The types of integers, narrower than the sum's, whose products an instruction sums up."""
        return self.factors(INT32)

    def factors(self, summed: np.dtype) -> frozenset[tuple[np.dtype, np.dtype]]:
        """The narrower types of factors whose products an instruction sums up in a type."""
        found = set()
        for row in filter(self.has, self.instructions):
            match row.nest.value:
                case Apply(
                    "mul",
                    (Apply("cast", (Operand() as a,)), Apply("cast", (Operand() as b,))),
                    dtype,
                ) if dtype == summed:
                    if row.inner and a.dtype and b.dtype:
                        found |= {(a.dtype, b.dtype), (b.dtype, a.dtype)}
        return frozenset(found)

    def find(self, name: str) -> VectorInstruction | None:
        """The row of a name, or None."""
        return next((row for row in self.instructions if row.name == name), None)

    def find_matrices(self, name: str) -> MatrixInstruction | None:
        """The row of a name that multiplies matrices, or None."""
        return next((row for row in self.matrices if row.name == name), None)
