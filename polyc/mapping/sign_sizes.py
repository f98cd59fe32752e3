"""Signatures with positions for sizes: kernels that differ in these names alone are made once.

    class 1   b[i] = a[i], i < found_1        class 2   d[i] = c[i], i < found_2

are one kernel of size 0, which is launched with found_1, and with found_2: where what is said of
these is the same, and of all that they have to do with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from polyc.poly.canonical import Canonical
from polyc.poly.conditions import related_ranges
from polyc.types.derived import Derived
from polyc.types.ranges import PREFIX, SizeRange, assumed_ranges, concluded
from polyc.types.sizes import Extent, Size

NOTHING = ""
"""Stands for what is not said of a size."""


@dataclass(frozen=True)
class Signed:
    """A signature with positions for sizes, and what is said of each of these.

    sizes: by position; those that the signature speaks of, then those that these have to do with.
    """

    signature: Canonical
    said: Canonical
    sizes: tuple[SizeRange, ...]


def sign_sizes(signature: Canonical, others: Iterable[str]) -> Signed:
    """A signature without the names of sizes; `others` are sizes that the kernel speaks of as well.

    Where nothing is assumed there are none.
    """
    if not assumed_ranges():
        return Signed(signature, (), ())
    sizes, said = _place(tuple(dict.fromkeys([*_sizes_in(signature), *sorted(others)])))
    places = {size.name: k for k, size in enumerate(sizes)}
    return Signed(_without_names(signature, places), said, sizes)


@concluded
def _place(own: tuple[str, ...]) -> tuple[tuple[SizeRange, ...], Canonical]:
    """Some sizes and those that they have to do with, in order, and what is said of each."""
    ranges = {size.name: size for size in related_ranges(frozenset(own))}
    places = {name: k for k, name in enumerate(name for name in own if name in ranges)}
    left = {name: _named_in(size) for name, size in ranges.items() if name not in places}
    while left:
        # Those that are said in terms of the ones before them are like no others; so are most.
        missing = {name: len(named - places.keys()) for name, named in left.items()}
        fewest = min(missing.values())
        found = [name for name, count in missing.items() if count == fewest]
        found.sort(key=lambda name: repr(_sign_size(ranges[name], {**places, name: -1})))
        for name in found if fewest == 0 else found[:1]:
            places[name] = len(places)
            del left[name]
    said = tuple(_sign_size(ranges[name], places) for name in places)
    return tuple(ranges[name] for name in places), said


def _sizes_in(signature: Canonical) -> Iterator[str]:
    """The sizes that a signature names, in order."""
    if isinstance(signature, tuple):
        for part in signature:
            yield from _sizes_in(part)
    elif isinstance(signature, Derived):
        yield from sorted(Size.of(signature).names)
    elif isinstance(signature, str) and signature.startswith(PREFIX):
        yield signature


def _without_names(signature: Canonical, places: Mapping[str, int]) -> Canonical:
    if isinstance(signature, tuple):
        return tuple(_without_names(part, places) for part in signature)
    if isinstance(signature, str) and signature in places:
        return f"{PREFIX}{places[signature]}"
    return signature


def _named_in(size: SizeRange) -> frozenset[str]:
    """The other sizes that are named by what is said of one."""
    extents = [size.next, size.same, size.most, *size.needs]
    names = (e.names for e in extents if isinstance(e, Size))
    return frozenset[str]().union(*names) - {size.name}


def _sign_size(size: SizeRange, places: Mapping[str, int]) -> Canonical:
    """What is said of a size; nothing that a model says of its name."""
    after, same, most = (
        NOTHING if extent is None else _sign_extent(extent, places)
        for extent in (size.next, size.same, size.most)
    )
    needs = (_sign_extent(need, places) for need in size.needs if need.names <= places.keys())
    bounds = size.lower, NOTHING if size.upper is None else size.upper
    hint = NOTHING if size.hint is None else size.hint
    return *bounds, hint, after, same, most, tuple(sorted(needs, key=repr))


def _sign_extent(extent: Extent, places: Mapping[str, int]) -> Canonical:
    """An extent as a sum of products of positions."""
    if not isinstance(extent, Size):
        return extent
    terms = (
        (tuple(sorted((_sign_name(name, places) for name in product), key=repr)), count)
        for product, count in extent.terms
    )
    return tuple(sorted(terms, key=repr))


def _sign_name(name: str, places: Mapping[str, int]) -> Canonical:
    if name in places:
        return places[name]
    if isinstance(name, Derived):
        operands = (_sign_extent(operand, places) for operand in name.operands)
        return name.operation, *operands
    return name
