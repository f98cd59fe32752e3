"""The directives about a GPU's threads: which of them runs what, and what they do at once.

    block e | thread e'          for e over blocks:  for e' over the threads of a block:  …

A block's threads go through the text of the kernel in step, from one loop over threads to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.schedule.directives import Shift, edit_loops
from polyc.schedule.loops import Loop, LoopTree
from polyc.schedule.names import select
from polyc.target.instructions.tiles import INSTRUCTIONS

WARP = 32
"""Threads of a warp."""

MOST_THREADS = 1024
"""Of a block."""

MOST_STAGES = 8
"""Tiles that a copy in the background may be ahead of its use."""


@dataclass(frozen=True)
class Threads:
    """The named loops over the threads of a block, or over its warps; the last over neighbours.

    i ─ j   ->   thread 8 32 apart: i ─ thread 32: j           thread i j
    i ─ j   ->   thread 8 32 apart: i ─ j                      warp i

    Each has room for as many threads as it has iterations at most, which therefore are known.
    """

    loops: tuple[str, ...]
    warps: bool = False

    def apply(self, tree: LoopTree) -> LoopTree:
        apart = WARP if self.warps else 1
        for name in reversed(self.loops):
            width = self._width(select(tree, name), name)
            if width * apart > MOST_THREADS:
                raise IllegalSchedule(
                    f"that takes {width * apart} threads, {width} times {apart} for {show(name)}, "
                    f"and a block has at most {MOST_THREADS}; split it first, and run a part so"
                )
            tree = edit_loops(tree, (name,), partial(_place, width, apart))
            apart *= width
        return tree

    def _width(self, loops: Sequence[Loop], name: str) -> int:
        found = {loop.iterations for loop in loops}
        if len(found) > 1 or None in found:
            counts = ", ".join("an unknown number" if n is None else str(n) for n in found)
            raise IllegalSchedule(
                f"the loops {show(name)} have {counts} of iterations; what runs over threads has "
                "one known number of them: name the loop of one statement, or split it"
            )
        return next(n for n in found if n is not None)


def _place(width: int, apart: int, loop: Loop) -> Loop:
    return replace(loop, kind="thread", width=width, apart=apart)


@dataclass(frozen=True)
class Use:
    """The named loops, the innermost ones around a multiply-add, as an instruction.

    am ─ im ─ an ─ jn ─ kk ─ S   ->   mma: …                   use mma.m16n8k8.tf32 am im an jn kk
    vector: j' ─ k' ─ S   ->   vector: j' ─ instruction: k'    use dot4.u8s8 k'

    One of a GPU is known by its name here; on a CPU it is a row of the target's table, which the
    loop in lanes around it belongs to.
    """

    instruction: str
    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        known = INSTRUCTIONS.get(self.instruction)
        if known is not None:
            return edit_loops(tree, self.loops, lambda n: replace(n, kind=known.kind))
        name = self.instruction
        return edit_loops(
            tree, self.loops, lambda n: replace(n, kind="instruction", instruction=name)
        )


@dataclass(frozen=True)
class Pipeline:
    """Statements that run some iterations of a loop before what they are for.

    k ─ sequence { S, T }  ->  S for k, T for k - 3            pipeline S.k 4
                               S for k, T for k - 2            pipeline S.k 4 2

    The arrays that they write have a place for so many iterations, in turns: one that is in use, or
    `used` of them, and others that are on their way. Where warpgroups multiply what is in two
    places, the product of one iteration goes on while that of the next one is begun.
    """

    loops: tuple[str, ...]
    stages: int
    used: int = 1

    @property
    def ahead(self) -> int:
        """Iterations between a write and what it is for."""
        return self.stages - self.used

    def apply(self, tree: LoopTree) -> LoopTree:
        if not 1 <= self.stages <= MOST_STAGES:
            raise IllegalSchedule(f"there are 1 to {MOST_STAGES} stages")
        if not 1 <= self.used <= self.stages:
            raise IllegalSchedule(f"1 to {self.stages} of its places are in use at a time")
        for name in self.loops:
            tree = Shift(name, -self.ahead).apply(tree)
        return tree


@dataclass(frozen=True)
class Lay:
    """The order of dimensions in which an array that the kernel makes for itself lies in memory.

    A[i, j, k]   ->   place i, k, j                             lay A 0 2 1
    """

    array: str
    order: tuple[int, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return tree


@dataclass(frozen=True)
class Swizzled:
    """An array in shared memory some bits of whose addresses are exclusive-ored with others.

    Bits [to, to + bits) of the number of an element, with bits [source, source + bits), so that
    the lanes of a warp meet different banks: swizzle A 2 3 5.
    """

    array: str
    bits: int
    to: int
    source: int

    def apply(self, tree: LoopTree) -> LoopTree:
        return tree
