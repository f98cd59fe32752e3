"""Where printed text stands: the arrays, registers and lanes that its names refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from polyc.codegen.index import Affine, const, substitute
from polyc.codegen.loopnest import Element, For, Local, extent_of, lanes_of
from polyc.codegen.registers import Register


@dataclass
class Uses:
    """What a translation unit needs of runtime/: (function, type, lanes), (from, to, lanes)."""

    functions: set[tuple[str, str, int]] = field(default_factory=set)
    casts: set[tuple[str, str, int]] = field(default_factory=set)


@dataclass(frozen=True)
class Registers:
    """A local in registers: the register that holds each element accessed."""

    local: Local
    holder: Mapping[tuple[int, ...], Register]

    def scalar(self, element: Element) -> str:
        """One element: a register of its own, or a lane of one."""
        cell = tuple(i.constant for i in element.index)
        register = self.holder[cell]
        name = register.name(self.local)
        if register.lanes == 1:
            return name
        lane = cell[register.dimension] - register.base[register.dimension]
        # A boolean is 0 or -1 in a vector, 0 or 1 alone.
        return f"({name}[{lane}] & 1)" if self.local.dtype == np.bool_ else f"{name}[{lane}]"


@dataclass(frozen=True)
class Scope:
    """Arrays in memory with their shapes, locals in registers, and the vector loop around.

    `guard` is the condition under which guarded elements exist here, as a C expression; `tiles` are
    the arrays in memory of which idle lanes may be touched.
    """

    shapes: Mapping[str, tuple[int, ...]]
    registers: Mapping[str, Registers]
    lanes: For | None
    guard: str = ""
    tiles: frozenset[str] = frozenset()

    def with_array(self, local: Local) -> Scope:
        tiles = self.tiles | {local.name} if local.is_tile else self.tiles
        return replace(self, shapes={**self.shapes, local.name: local.shape}, tiles=tiles)

    def with_registers(self, found: Registers) -> Scope:
        return replace(self, registers={**self.registers, found.local.name: found})

    def with_lanes(self, loop: For) -> Scope:
        return replace(self, lanes=loop)

    def with_guard(self, condition: str) -> Scope:
        return replace(self, guard=f"{self.guard} && {condition}" if self.guard else condition)

    @property
    def count(self) -> int:
        """Lanes of the vectors here; 1 outside of vector loops."""
        return lanes_of(self.lanes) if self.lanes else 1

    @property
    def filled(self) -> int:
        """Lanes that stand for an iteration: all but those that a partial vector leaves idle."""
        return (extent_of(self.lanes) or 1) if self.lanes else 1

    def is_partial(self, array: str) -> bool:
        """Whether vectors of an array have idle lanes here, which no access may touch."""
        return self.filled < self.count and array not in self.tiles

    def address(self, element: Element) -> Affine:
        """The element's offset in a row-major array."""
        total, step = const(0), 1
        shape = self.shapes[element.array]
        for index, extent in zip(reversed(element.index), reversed(shape), strict=True):
            total, step = total + index * step, step * extent
        return total

    def first(self, index: Affine) -> Affine:
        """The index in lane 0."""
        return substitute(index, self.start)

    @property
    def start(self) -> dict[str, Affine]:
        """The loop variable's value in lane 0."""
        return {self.lanes.var: self.lanes.lower} if self.lanes else {}
