"""Where printed text stands: the arrays, registers and lanes that its names refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from polyc.loopnest.index import Affine, Var, const, linear, substitute, var
from polyc.loopnest.index_text import show_index
from polyc.loopnest.instructions import address
from polyc.loopnest.multiples import Multiples, divide_evenly, with_loop
from polyc.loopnest.nodes import Element, For, Local, lanes_of
from polyc.loopnest.registers import Register
from polyc.loopnest.swizzle import Swizzle

LINE = 64
"""Bytes of a cache line, and of the widest vector."""


@dataclass
class Uses:
    """What a translation unit needs of runtime/: (function, type, lanes), casts alike, files; and
    the files of instructions, by lanes."""

    functions: set[tuple[str, str, int]] = field(default_factory=set)
    casts: set[tuple[str, str, int]] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)
    instructions: set[tuple[str, int]] = field(default_factory=set)


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

    `guard` is the condition under which guarded elements exist here, as a C expression; `locals`
    are the arrays that are private to a block around; `multiples` says what variables of loops
    around are multiples of, and `counts` how many values they have, counted from 0. `types` are
    those of parameters, `origins` the variables that hold the first place of an array here.
    """

    shapes: Mapping[str, tuple[int, ...]]
    registers: Mapping[str, Registers]
    lanes: For | None
    guard: str = ""
    locals: Mapping[str, Local] = field(default_factory=dict)
    multiples: Multiples = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, np.dtype] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_loop(self, loop: For) -> Scope:
        """The place inside a loop."""
        counts = {name: n for name, n in self.counts.items() if name != loop.var}
        if loop.lower == const(0) and loop.upper.is_constant:
            counts[loop.var] = loop.upper.constant
        return replace(self, multiples=with_loop(self.multiples, loop), counts=counts)

    def with_array(self, local: Local) -> Scope:
        """The place inside the block of a local in memory; its rows begin at cache lines."""
        shape, line = local.shape, LINE // local.dtype.itemsize
        if shape and shape[-1] > line // 2:
            shape = (*shape[:-1], -(-shape[-1] // line) * line)
        shapes, locals_ = {**self.shapes, local.name: shape}, {**self.locals, local.name: local}
        return replace(self, shapes=shapes, locals=locals_)

    def with_near(self, array: str, near: str, origin: str) -> Scope:
        """The place inside the block of an array that may be near."""
        shapes = {**self.shapes, near: self.shapes[array]}
        return replace(self, shapes=shapes, origins={**self.origins, near: origin})

    def with_registers(self, found: Registers) -> Scope:
        return replace(self, registers={**self.registers, found.local.name: found})

    def with_lanes(self, loop: For) -> Scope:
        return replace(self, lanes=loop)

    def with_guard(self, condition: str) -> Scope:
        return replace(self, guard=f"{self.guard} && {condition}" if self.guard else condition)

    @cached_property
    def alone(self) -> Scope:
        """The same place, for what is no vector."""
        return replace(self, lanes=None)

    @cached_property
    def count(self) -> int:
        """Lanes of the vectors here; 1 outside of vector loops."""
        return lanes_of(self.lanes) if self.lanes else 1

    @cached_property
    def filled(self) -> Affine:
        """Lanes that stand for an iteration: all but those that a partial vector leaves idle."""
        return self.lanes.upper - self.lanes.lower if self.lanes else const(1)

    def each_lane(self) -> Iterator[tuple[int, str]]:
        """The lanes that stand for an iteration; if a call knows which, a test for each."""
        known = self.filled.is_constant
        for k in range(self.filled.constant if known else self.count):
            yield k, "" if known else f"{k} < {show_index(self.filled)}"

    @cached_property
    def is_full(self) -> bool:
        """Whether all lanes stand for an iteration."""
        return self.filled == const(self.count)

    def is_partial(self, element: Element) -> bool:
        """Whether a vector that begins at an element has idle lanes here that are not its own.

        Those of a local belong to it where nothing but padding is behind the other lanes.
        """
        if self.is_full:
            return False
        local = self.locals.get(element.array)
        if local is None or not local.shape:
            return True
        start = self.first(element.index[-1])
        is_last = start + self.filled == const(local.shape[-1])
        has_room = (start + self.count).constant <= self.shapes[local.name][-1]
        return not (local.is_tile or (is_last and has_room))

    def address(self, element: Element) -> Affine:
        """The element's offset in a row-major array."""
        held = self.registers.get(element.array)
        shape = held.local.shape if held else self.shapes[element.array]
        place = divide_evenly(address(element, shape), self.multiples)
        origin = self.origins.get(element.array)
        return place - var(origin) if origin else place

    def show_offset(self, array: str, address: Affine) -> str:
        """The offset as text, with the swizzle of the array; whole periods stay out of it."""
        local = self.locals.get(array)
        if local is None or local.swizzle is None:
            return show_index(address)
        swizzle = local.swizzle
        whole = linear(0, {a: c for a, c in address.terms if c % swizzle.period == 0})
        text = self._show_swizzled(address - whole, swizzle)
        return text if whole == const(0) else f"{show_index(whole)} + {text}"

    def _show_swizzled(self, address: Affine, swizzle: Swizzle) -> str:
        """An exchanged place; in two parts where what is exchanged depends on the upper one alone.

        (4 t + 128 k) ^ ((4 t + 128 k) >> 6 & 24)  =  (4 t ^ (128 k >> 6 & 24)) + 128 k,  t < 32

        Where k is a number the compiler then has the second term in the instruction, and few of
        the first: a product of 128 x 128 took 159 registers, and takes 127.
        """
        shift, mask = swizzle.source - swizzle.to, swizzle.mask
        for bit in range(swizzle.source, swizzle.to + swizzle.bits - 1, -1):
            part = 1 << bit
            rest = address.constant % part
            upper = linear(
                address.constant - rest, {a: c for a, c in address.terms if c % part == 0}
            )
            lower = address - upper
            if lower != address and self._stays_below(lower, part):
                both = f"{show_index(lower)}, {show_index(upper)}"
                return f"PC_SWIZZLE_PARTS({both}, {shift}, {mask})"
        return f"PC_SWIZZLE({show_index(address)}, {shift}, {mask})"

    def _stays_below(self, index: Affine, bound: int) -> bool:
        """Whether an index is in 0 … bound - 1, by what is known of its variables."""
        most = index.constant
        for atom, coefficient in index.terms:
            if not isinstance(atom, Var) or atom.name not in self.counts or coefficient < 0:
                return False
            most += coefficient * (self.counts[atom.name] - 1)
        return index.constant >= 0 and most < bound

    def first(self, index: Affine) -> Affine:
        """The index in lane 0, an address as well as any other."""
        if self.lanes is None:
            return index
        at = {self.lanes.var: self.lanes.lower}
        return divide_evenly(substitute(index, at), self.multiples)
