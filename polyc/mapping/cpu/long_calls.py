"""Calls that are longer than a typical one: what is chosen for sizes known at run time suits both.

A transformer is called with 128 tokens, and with 4096. Who looks at the first alone takes all rows
of the scores as one tile, and has operands pass by that stay near only as long as they are short.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from polyc.scop.scop import Array, Statement
from polyc.types.estimate import estimate
from polyc.types.sizes import Extent, Size

LENGTH = 512
"""What an extent that a call decides is taken for in a long call, at least.

Calls with more rows than that have longer rows as well: scores of attention, 30 rows at a time in
place of all 128 of a typical call, and rows of them that stay near while columns pass by, take 0.6
of the time at 1024 tokens, and the same at 128 (Zen 3).
"""


def long_extent(extent: Extent) -> int:
    """An extent in a long call."""
    return max(estimate(extent), LENGTH) if isinstance(extent, Size) else extent


def long_extents(s: Statement) -> tuple[int, ...]:
    """Those of a statement's iterators in a long call."""
    found = zip(s.estimated_extents, s.exact_extents, strict=True)
    return tuple(n if exact is not None else max(n, LENGTH) for n, exact in found)


def long_bytes(arrays: Iterable[Array]) -> int:
    """What arrays take in a long call."""
    return sum(prod(map(long_extent, a.shape)) * a.dtype.itemsize for a in arrays)
