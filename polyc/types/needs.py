"""What a model needs of sizes, as it reads where all of it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyc.types.derived import Derived
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import assume
from polyc.types.sizes import Extent, Size


def read_needs(needs: Sequence[Size]) -> tuple[Size, ...]:
    """What is needed, and before it what that says where all of it holds.

    -min(2 - n, 0) - 2, which must not be negative   ->   n - 4, -min(2 - n, 0) - 2

    Both say the same of calls that break nothing; so a call that breaks the first breaks something.
    """
    with assume(needed_ranges(needs)):
        read = [need.at({}) for need in needs]
    plain = (need for need in read if isinstance(need, Size))
    return tuple(dict.fromkeys((*plain, *needs)))


def has_smaller(extents: Iterable[Extent]) -> bool:
    """Whether the smaller of two is part of some extent."""
    waiting = list(extents)
    while waiting:
        extent = waiting.pop()
        for name in extent.factors if isinstance(extent, Size) else ():
            if isinstance(name, Derived):
                if name.operation == "min":
                    return True
                waiting += name.operands
    return False
