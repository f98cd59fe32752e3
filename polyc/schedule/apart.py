"""Whether statements may run before others that stand in front of them.

    Y[0] = token            S[x]: acc[x] += …           Y[1 + x] = acc[x] + b

The last of these three may run before the first, as the end of the sum in the middle: they write to
the same array, but nowhere to the same element.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import islpy as isl

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
    written = {scop.home(s.array): s for s in moved.statements}
    return all(
        written.keys().isdisjoint(scop.home(load.array) for load in other.loads)
        and _are_disjoint(other, written.get(scop.home(other.array)))
        for part in others
        for other in (*part.prelude, *part.statements)
    )


def _are_disjoint(other: Statement, moved: Statement | None) -> bool:
    """Whether no element is written by both; under different shapes that is not asked."""
    if moved is None:
        return True
    elements: list[isl.Set] = [write_map(s).range() for s in (other, moved)]
    return other.array == moved.array and bool(elements[0].is_disjoint(elements[1]))
