"""The directives about how loops are counted: tiles in ones, and several loops as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.schedule.directives import edit_loops
from polyc.schedule.loops import Loop, LoopTree
from polyc.schedule.names import select


@dataclass(frozen=True)
class Count:
    """The named loops counted in ones, so that tiles meet others that are counted so.

    8*floor(i/8)   ->   floor(i/8)                               count i
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return edit_loops(tree, self.loops, _count)


def _count(loop: Loop) -> Loop:
    function = loop.function.scale_down_val(isl.Val(loop.step))
    return replace(loop, function=function, step=1, extent=loop.iterations, size=None)


@dataclass(frozen=True)
class Collapse:
    """Loops directly inside one another as one, which runs through all their iterations.

    i ─ j ─ S   ->   i ─ S   with   n i + j   for n values of j                  collapse i j

    The new loop has the name of the first.
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        first, *rest = self.loops
        for name in rest:
            inner = {id(n) for n in select(tree, name)}
            apart = next((n for n in select(tree, first) if id(n.body) not in inner), None)
            if apart is not None:
                raise IllegalSchedule(
                    f"{name} is not directly inside of {first} everywhere; put it there by order"
                )
            tree = edit_loops(tree, (first,), _collapse)
        return tree


def _collapse(loop: Loop) -> Loop:
    below = loop.body
    assert isinstance(below, Loop)
    if loop.extent == 1 and below.extent is None:
        return replace(below, name=loop.name)
    if below.extent is None or below.iterations is None:
        raise IllegalSchedule(f"nobody knows how many iterations {below.name} has")
    extent, count = below.iterations * below.step, loop.iterations
    outer = loop.function.scale_down_val(isl.Val(loop.step)).scale_val(isl.Val(extent))
    function = outer.add(below.function)
    return replace(
        below,
        name=loop.name,
        function=function,
        numbers=function,
        extent=None if count is None else count * extent,
        size=None,
    )
