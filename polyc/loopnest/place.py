"""Where a node of a nest stands: what is known there of arrays and of loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from polyc.loopnest.index import Affine
from polyc.loopnest.instructions import address
from polyc.loopnest.multiples import Multiples, divide_evenly, with_loop
from polyc.loopnest.nodes import Element, For, Local
from polyc.loopnest.prototype import Param
from polyc.types.sizes import Extent


@dataclass(frozen=True)
class Place:
    """The shapes of the arrays that a node sees, and what the loops around it are multiples of."""

    shapes: Mapping[str, tuple[Extent, ...]]
    multiples: Multiples = field(default_factory=dict)

    @staticmethod
    def of(params: Iterable[Param]) -> Place:
        """The outermost place of a kernel."""
        return Place({p.name: p.shape for p in params})

    def with_locals(self, locals_: Iterable[Local]) -> Place:
        """Inside a block that declares arrays."""
        return replace(self, shapes={**self.shapes, **{x.name: x.shape for x in locals_}})

    def inside(self, *loops: For) -> Place:
        """Inside loops, outermost first."""
        known = self.multiples
        for loop in loops:
            known = with_loop(known, loop)
        return replace(self, multiples=known)

    def address(self, element: Element) -> Affine:
        """The offset of an element in its array, without floors of what divides evenly."""
        return divide_evenly(address(element, self.shapes[element.array]), self.multiples)
