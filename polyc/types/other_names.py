"""Sizes under other names: kernels that differ in these alone are one.

class 1   b[i] = a[i], i < found_1        class 2   d[i] = c[i], i < found_2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from polyc.types.ranges import SizeRange
from polyc.types.sizes import Extent, Size

NO_NAMES: Mapping[str, str] = MappingProxyType({})


def rename_extent(extent: Extent, names: Mapping[str, str]) -> Extent:
    """An extent in other names for some sizes."""
    if not names or not isinstance(extent, Size):
        return extent
    return extent.at({old: Size.of(new) for old, new in names.items()})


def rename_size(size: SizeRange, names: Mapping[str, str]) -> SizeRange:
    """What is said of a size, in other names."""
    if not names:
        return size
    after, same, most = (
        None if extent is None else rename_extent(extent, names)
        for extent in (size.next, size.same, size.most)
    )
    needs = (rename_extent(need, names) for need in size.needs)
    return replace(
        size,
        name=names.get(size.name, size.name),
        next=after,
        same=same,
        needs=tuple(need for need in needs if isinstance(need, Size)),
        most=most,
    )
