"""Sizes that a call finds: each is there when it is read, and what it may be is checked.

    wait;  find size_found by io[3]: 0 to n;  launch(…; size_found)

In the proof of launches such a size is a parameter like others, so that all is shown for each of
its values from 0 to the most. Here it is shown that a call goes on with no other value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from polyc.analysis.witness import illegal
from polyc.errors import IllegalSchedule
from polyc.program.driver_nest import Address, Find
from polyc.program.program import Program
from polyc.types.derived import Derived
from polyc.types.found import found_in
from polyc.types.parameters import expand
from polyc.types.ranges import stated_range
from polyc.types.sizes import Extent, Size, bounds, operate


def verify_find(
    node: Find,
    program: Program,
    places: Mapping[str, Address],
    made: int,
    found: Collection[str],
    told: int,
) -> None:
    """Prove that a size is read where it is, for good, and compared with all that is assumed of it.

    made: the launches so far; found: the sizes that are found before; told: how many decisions and
    sizes the threads have told one another.
    """
    where = f"size {node.size}"
    if node.size not in program.found or node.size in found or node.number != told:
        raise _wrong(f"{where} is none that is due")
    array = program.found[node.size]
    stored = program.arrays[array]
    if node.position != list(program.found).index(node.size):
        raise _wrong(f"{where} has not the number by which callers know it")
    if node.source != places[array] or stored.dtype != np.int64:
        raise _wrong(f"{where} is not read from {array}")
    if not stored.storage.is_row_major or math.prod(stored.storage.shape) != 1:
        raise _wrong(f"{array} is not one integer")
    kernels = {k.name: k for k in program.kernels}
    for launch in program.launches[made:]:
        params = kernels[launch.kernel].params
        for argument, param in zip(launch.arguments, params, strict=True):
            if param.writes and program.home(argument) == program.home(array):
                raise _wrong(f"{where} is read before {launch.kernel} writes {array}")
    (known,) = (size for size in program.sizes if size.name == node.size)
    if known.lower != 0 or node.most != known.most:
        raise _wrong(f"{where} is not compared with 0 and {known.most}")
    now = {node.size, *found}
    if not found_in([node.most]) < now:
        raise _wrong(f"{where} is compared with what is not found")
    checked = {node.most - Size.of(node.size), *node.needs}
    for need in (need for size in program.sizes for need in size.needs):
        involved = found_in([need])
        if node.size in involved and involved <= now and need not in checked:
            raise _wrong(f"that {need} is not negative is not checked when {where} is found")


def verify_found(program: Program, found: Collection[str]) -> None:
    """All sizes are found when a call ends: a caller knows how large results are."""
    for size in program.found:
        if size not in found:
            raise _wrong(f"size {size} is not found")


def has_room(needed: Extent, room: Extent) -> bool:
    """Whether so many bytes fit, whatever a call finds: each factor is as large as it can be.

    4*m*found <= 4*m*n, where found <= n
    """
    return bounds(expand(room) - _ends(expand(needed))[1])[0] >= 0


def _ends(extent: Extent) -> tuple[Extent, Extent]:
    """The least and the largest value, in sizes that are known when a call begins.

    The factors of each term are taken for independent of one another, and of other terms.
    """
    if not found_in([extent]):
        return extent, extent
    assert isinstance(extent, Size)
    total: tuple[Extent, Extent] = 0, 0
    for product, coefficient in extent.terms:
        first: Extent = coefficient
        last: Extent = coefficient
        for low, high in map(_ends_of_factor, product):
            if len(product) > 1 and bounds(low)[0] < 0:
                raise _wrong(f"how large {extent} may be is not known")
            first, last = first * low, last * high
        first, last = (first, last) if coefficient > 0 else (last, first)
        total = total[0] + first, total[1] + last
    return total


def _ends_of_factor(name: str) -> tuple[Extent, Extent]:
    if isinstance(name, Derived):
        (low, high), (other_low, other_high) = map(_ends, name.operands)
        return operate(name.operation, low, other_low), operate(name.operation, high, other_high)
    known = stated_range(name)
    if known is None or known.most is None:
        return Size.of(name), Size.of(name)
    return known.lower, _ends(expand(known.most))[1]


def _wrong(rule: str) -> IllegalSchedule:
    return illegal("driver", rule)
