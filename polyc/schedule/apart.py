"""Whether statements may run before others that stand in front of them.

    Y[0] = token            S[x]: acc[x] += …           Y[1 + x] = acc[x] + b

The last of these three may run before the first, as the end of the sum in the middle: they write to
the same array, but nowhere to the same element.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import islpy as isl

from polyc.poly.parameters import among_own_sizes
from polyc.scop.accesses import write_map
from polyc.scop.scop import Scop, Statement


class Part(Protocol):
    """Statements that run together, with those before them that fill the rest of their arrays."""

    @property
    def statements(self) -> tuple[Statement, ...]: ...

    @property
    def prelude(self) -> tuple[Statement, ...]: ...


def may_run_before(moved: Part, others: Iterable[Part], scop: Scop) -> bool:
    """Whether the others neither read an array that `moved` writes, nor write an element of its.

    What `moved` reads, the others do not write: who asks knows that.
    """
    return not any(
        _conflicts(other, s, scop)
        for part in others
        for other in (*part.prelude, *part.statements)
        for s in moved.statements
    )


def _conflicts(other: Statement, moved: Statement, scop: Scop) -> bool:
    """Whether one reads what the other writes to, or both may write to one element.

    An array under another shape is taken for the same elements.
    """
    home = scop.home(moved.array)
    if any(scop.home(load.array) == home for load in other.loads):
        return True
    if scop.home(other.array) != home:
        return False
    elements: list[isl.Set] = [write_map(s).range() for s in (other, moved)]
    # Sizes of one may follow from those of the other: below 2*floor(h/2) is below h.
    return (
        other.array != moved.array
        or not among_own_sizes(elements[0].intersect(elements[1])).is_empty()
    )
