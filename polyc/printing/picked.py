"""Lanes that read what lies in one vector, in some order: one load and a shuffle of it.

x[floor(l/2)] for l in 0 .. 16   ->   8 elements from x[0] on, in the order 0, 0, 1, 1, …, 7, 7
"""

from __future__ import annotations

from dataclasses import dataclass

from polyc.loopnest.index import Affine, const, substitute
from polyc.loopnest.multiples import divide_apart
from polyc.printing.scope import Scope


@dataclass(frozen=True)
class Picked:
    """For each lane, which of `count` elements from `first` on it has."""

    first: Affine
    count: Affine
    lanes: tuple[int, ...]

    def spell(self, pick: str, loaded: str, bits: int) -> str:
        """pick(loaded, (i32x4){0, 0, 1, 1})"""
        numbers = ", ".join(map(str, self.lanes))
        return f"{pick}({loaded}, (i{bits}x{len(self.lanes)}){{{numbers}}})"


def find_picked(address: Affine, scope: Scope) -> Picked | None:
    """How the lanes of a vector read an address; None where one load does not reach all of it.

    Elements are read in their order. Those of idle lanes need not exist, and are not read.
    """
    assert scope.lanes is not None

    def place(lane: Affine) -> Affine:
        at = {scope.lanes.var: scope.lanes.lower + lane} if scope.lanes else {}
        return divide_apart(substitute(address, at), scope.multiples)

    first = place(const(0))
    moved = [place(const(k)) - first for k in range(scope.count)]
    lanes = tuple(by.constant for by in moved)
    if any(by.terms for by in moved) or list(lanes) != sorted(lanes) or lanes[-1] >= scope.count:
        return None
    return Picked(first, place(scope.filled - 1) - first + 1, lanes)
