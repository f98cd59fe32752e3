"""What a row of the table of vector instructions says: semantics, lanes, spelling.

    dot4.u8s8      for l in 0 .. lanes:                    a: u8[4 l + r]    b: i8[4 l + r]
                     for r in 0 .. 4:
                       acc[l] add= mul(i32(a[4 l + r]), i32(b[4 l + r]))

The semantics is a nest of loops around one assignment. Its outermost loop runs over the lanes, and
`steps` are the lane map: which element of a register, or of memory, an iteration takes. Loops of a
program are this instruction if they are this nest (`loopnest/instructions.py`): types agree, and
expressions, and for each access how far every loop moves. Names say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

Number = int | str
"""A literal, or the name of what an instruction is told: a count, a stride."""

LANES = "lanes"
"""As many iterations as a register has elements of the result's type."""


@dataclass(frozen=True)
class Operand:
    """Elements of one type, of a register or of memory: element  sum of steps[k] * (loop k).

    dtype: None for any type, one for all operands of the row that say so.
    """

    name: str
    dtype: np.dtype | None
    steps: tuple[Number, ...]
    in_memory: bool = False


@dataclass(frozen=True)
class Apply:
    """A function of `runtime/` applied to terms, or ("cast") a conversion to `dtype`."""

    function: str
    arguments: tuple[Term, ...]
    dtype: np.dtype | None


Term = Operand | Apply


@dataclass(frozen=True)
class Nest:
    """loops around  result = value,  or  result op= value  for a reduction.

    loops: the iterations of each, that over the lanes first. A register of the result that has more
    lanes than iterations keeps zeros there when it is loaded, and its other lanes are not stored.
    """

    loops: tuple[Number, ...]
    result: Operand
    value: Term
    reduction: str | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is read, from left to right."""
        return tuple(_operands(self.value))


def _operands(term: Term) -> Iterator[Operand]:
    if isinstance(term, Operand):
        yield term
    else:
        for argument in term.arguments:
            yield from _operands(argument)


@dataclass(frozen=True)
class Spelling:
    """C for an instruction where the CPU has all that it `needs`, as /proc/cpuinfo names it.

    text: an expression, or a statement if something is updated or stored, with a field for each
    operand, the result and each number that the row names, {lanes} for those of the result, and {f}
    for the `function` of the runtime's headers, by type and lanes: pc_load_f32x16. header: a file
    of `runtime/` that it takes besides, and that is told the lanes. lanes: of the result, () for
    any. is_native: the CPU has an instruction for it, or one and an addition; else the C compiler
    makes several. count: how many it is where it is used; adds: those among them that only add.
    """

    text: str
    function: str = ""
    header: str = ""
    needs: tuple[str, ...] = ()
    lanes: tuple[int, ...] = ()
    is_native: bool = True
    count: int = 1
    adds: int = 0


@dataclass(frozen=True)
class VectorInstruction:
    """A row: what an instruction is called in schedules, means, and how it is spelled.

    The first spelling that the CPU has the features for, and that fits the lanes, is taken.
    """

    name: str
    nest: Nest
    spellings: tuple[Spelling, ...]

    def spell(self, features: Set[str], lanes: int) -> Spelling | None:
        """How to write it for a CPU with these features; None if it cannot."""
        fitting = (s for s in self.spellings if not s.lanes or lanes in s.lanes)
        return next((s for s in fitting if features >= {*s.needs}), None)

    @property
    def inner(self) -> tuple[Number, ...]:
        """The iterations of the loops that run inside of each lane."""
        return self.nest.loops[1:]

    def is_native(self, features: Set[str]) -> bool:
        """Whether a CPU with these features has it, for some number of lanes."""
        return any(s.is_native and features >= {*s.needs} for s in self.spellings)


@dataclass(frozen=True)
class Spelled:
    """An instruction as it is going to be written."""

    row: VectorInstruction
    spelling: Spelling

    def __str__(self) -> str:
        return self.row.name
