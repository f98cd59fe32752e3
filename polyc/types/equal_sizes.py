"""Sizes that a model needs to be equal: one of them stands for both, in all shapes.

    p = Resize(x, 2);  y = Concat(p, z)      p: [2*floor((h + 31)/32)], z: [floor((h + 15)/16)]
    ->  z: [2*floor((h + 31)/32)]            and calls need that the two are equal

What a call must keep to stays as it was found. But kernels on either side of the node are of one
size then, instead of two and a condition, and what follows from it is the same formula everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from polyc.types.derived import Derived
from polyc.types.sizes import Extent, Size


def find_equal(needs: Iterable[Size], may_go: Callable[[str], bool]) -> dict[str, Extent]:
    """Sizes that others can stand for, by their names, and the extents that they must be equal to.

    needs: what must not be negative; a size that must be neither positive nor negative is 0.
    may_go: whether a size follows from others, and is none that a call says.
    """
    listed, found = dict.fromkeys(needs), dict[str, Extent]()
    for need in listed:
        if -need not in listed:
            continue
        nothing = need.at(found)
        for product, coefficient in nothing.terms if isinstance(nothing, Size) else ():
            name = product[0] if len(product) == 1 else ""
            if abs(coefficient) != 1 or not may_go(name):
                continue
            same = Size.of(name) - nothing * coefficient
            if _depends_on(same, name):
                continue  # it follows from itself
            found = {known: _at(extent, {name: same}) for known, extent in found.items()}
            found[name] = same
            break
    return found


def _depends_on(extent: Extent, name: str) -> bool:
    """Whether a size is in an extent, or in what one of its sizes follows from."""
    factors = extent.factors if isinstance(extent, Size) else frozenset[str]()
    inside = (part for f in factors if isinstance(f, Derived) for part in f.operands)
    return name in factors or any(_depends_on(part, name) for part in inside)


def _at(extent: Extent, known: dict[str, Extent]) -> Extent:
    return extent.at(known) if isinstance(extent, Size) else extent
