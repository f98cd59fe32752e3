"""Sizes that kernels find while a call is under way: how many elements are not 0.

    i = NonZero(x)      x: float32[n, 3]      i: int64[2, found], where 0 <= found <= 3 n

What follows is compiled for any such number. A call reads it as soon as it is there, checks it, and
goes on with it; memory is taken for the most that there can be, which is known when it begins.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyc.errors import NotFixed
from polyc.types.derived import Derived
from polyc.types.parameters import expand, named
from polyc.types.ranges import SizeRange, stated_range
from polyc.types.sizes import Extent, Size, assumed_range, bounds, names_in, operate

FOUND = "found_"
"""What the names of such sizes begin with, where the model says none."""


def find_range(name: str, most: Extent) -> SizeRange:
    """A size of which a call finds 0 to `most`."""
    size = Size.of(name)
    if isinstance(most, Size):
        need = most - size
        assert isinstance(need, Size)
        return SizeRange(name, 0, needs=(need,), most=most)
    return SizeRange(name, 0, most, most=most)


def found_in(extents: Iterable[Extent]) -> frozenset[str]:
    """The sizes that a call finds on which extents depend, through others that follow from them."""
    return frozenset(name for name in names_in(map(expand, extents)) if _most(name) is not None)


def at_most(extent: Extent) -> Extent:
    """The most that an extent can be, by sizes that are known when a call begins.

        4*found*m, 0 <= found <= n   ->   4*n*m

    Raises NotFixed where a product may have a negative factor.
    """
    return named(_bound(expand(extent), above=True))


def _most(name: str) -> Extent | None:
    known = stated_range(name)
    return None if known is None else known.most


def _bound(extent: Extent, above: bool) -> Extent:
    """A bound of a sum: of each of its terms."""
    if not found_in([extent]):
        return extent
    assert isinstance(extent, Size)
    total: Extent = 0
    for product, coefficient in extent.terms:
        if len(product) > 1 and any(bounds(Size.of(name))[0] < 0 for name in product):
            raise NotFixed(f"how large {extent} may be is not known", "give more sizes in dims")
        part: Extent = coefficient
        for name in product:
            part = part * _bound_name(name, above == (coefficient > 0))
        total = total + part
    return total


def _bound_name(name: str, above: bool) -> Extent:
    if isinstance(name, Derived):
        first, second = (_bound(operand, above) for operand in name.operands)
        return operate(name.operation, first, second)
    most = _most(name)
    if most is None:
        return Size.of(name)
    return _bound(expand(most), above) if above else assumed_range(name).lower
