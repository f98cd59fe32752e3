"""Which sizes follow from which others: q = floor(h/3) from h, h*w from h and w."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from polyc.types.derived import Derived
from polyc.types.ranges import concluded, stated_range

if TYPE_CHECKING:
    from polyc.types.sizes import Extent


def names_of(extents: Iterable[Extent]) -> frozenset[str]:
    """The names that extents multiply and add."""
    return frozenset(f for e in extents if not isinstance(e, int) for f in e.factors)


def below(name: str) -> frozenset[str]:
    """The names that say at once what one is, if it follows from others."""
    known = stated_range(name)
    if known is not None:
        factors = names_of(() if known.same is None else (known.same,))
    else:
        factors = frozenset({name} if isinstance(name, Derived) else ())
    return names_of(o for f in factors if isinstance(f, Derived) for o in f.operands) or factors


@concluded
def depth(name: str) -> int:
    """How many steps a name is above those that follow from no other."""
    return 1 + max(map(depth, below(name)), default=-1)


@concluded
def deciding(name: str) -> frozenset[str]:
    """The names from which it follows, and which follow from no other."""
    return frozenset().union(*map(deciding, below(name))) or frozenset({name})
