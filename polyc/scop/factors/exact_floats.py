"""Sums of products of small integers in float32, where that is exact and quicker.

    S: acc[g, x] = 0
    S: acc[g, x] add= mul(int32(image[g, x + q]), W[g, q])       image: 8 or 16 bits; W: a constant
    T: y[g, x] = f(acc[g, x])
    ->
    S: acc[g, x] = 0.0
    S: acc[g, x] add= mul(float32(image[g, x + q]), W_floats[g, q])
    T: y[g, x] = f(int32(acc[g, x]))                             float32(acc) -> acc

float32 has all integers up to 2^24. Where no sum of some of the terms can be larger, each product
and each sum is exact, in any order, fused or not. Done for windows of which each channel has its
own: no instruction sums up several terms of those, and a CPU multiplies and adds floats at two to
four times the rate of integers of 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import tuple_id
from polyc.scop.expr import Call, Cast, Const, Expr, Load, children, with_children
from polyc.scop.factors.narrow_factors import Range, find_range
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_uses
from polyc.types.element_types import FLOAT32, INT32

EXACT = 1 << 24
"""Integers up to which float32 has all of them."""


def sum_in_floats(scop: Scop) -> Scop:
    """The scop with the sums of depthwise windows of bytes in float32."""
    uses = find_uses(scop.statements)
    arrays, new = dict(scop.arrays), {}
    for s in scop.statements:
        found = _find_window(s, scop.arrays)
        if found is None or not _is_exact(s, *found, scop.arrays, uses):
            continue
        writers = uses.writes(s.array)
        if len(writers) != 2 or writers[0].value != Const(0, INT32):
            continue
        readers = [r for r, _ in uses.reads(s.array) if r is not s]
        is_shared = any(array.memory == s.array for array in arrays.values())
        if is_shared or any(r.reduction or r.name in new for r in readers):
            continue
        image, weights = found
        name = fresh(f"{weights.array}_floats", arrays)
        known = arrays[weights.array]
        assert known.value is not None
        arrays[name] = replace(known, name=name, dtype=FLOAT32, value=known.value.astype(FLOAT32))
        arrays[s.array] = replace(arrays[s.array], dtype=FLOAT32)
        index = weights.index.set_tuple_id(isl.dim_type.out, tuple_id(name))
        factors = Cast(image, FLOAT32), Load(name, index, FLOAT32)
        new[writers[0].name] = replace(writers[0], value=Const(0.0, FLOAT32))
        new[s.name] = replace(s, value=Call("mul", factors, FLOAT32))
        for r in readers:
            new[r.name] = replace(r, value=_reading(r.value, s.array))
    statements = tuple(new.get(s.name, s) for s in scop.statements)
    return replace(scop, statements=statements, arrays=arrays)


def _find_window(s: Statement, arrays: Mapping[str, Array]) -> tuple[Load, Load] | None:
    """(narrow integers, constant factors) that a statement multiplies and sums up in 32 bits."""
    if s.reduction != "add" or s.time is not None or arrays[s.array].kind != "temporary":
        return None
    match s.value:
        case Call("mul", (a, b), dtype) if dtype == INT32:
            for one, other in ((a, b), (b, a)):
                match one, other:
                    case Cast(Load(dynamic=()) as image), Load(dynamic=()) as weights:
                        is_known = arrays[weights.array].value is not None
                        if image.dtype.itemsize < 4 and weights.dtype == INT32 and is_known:
                            return image, weights
    return None


def _is_exact(
    s: Statement, image: Load, weights: Load, arrays: Mapping[str, Array], uses: Uses
) -> bool:
    """Whether no sum of some terms of a statement can be larger than float32 has integers."""
    terms = [
        extent
        for extent, column in zip(s.exact_extents, s.columns[0], strict=True)
        if not any(column)
    ]
    found, known = _range_of(image, arrays, uses), arrays[weights.array].value
    if None in terms or found is None or known is None or known.size == 0:
        return False
    largest = max(map(abs, found)) * int(np.abs(known.astype(np.int64)).max())
    return prod(extent or 0 for extent in terms) * largest <= EXACT


def _range_of(
    image: Load, arrays: Mapping[str, Array], uses: Uses, seen: frozenset[str] = frozenset()
) -> Range | None:
    """What elements of an array may be: by its type, or by what is written to it."""
    found = find_range(image, arrays)
    if found is not None or arrays[image.array].kind != "temporary":
        return found
    ranges, seen = [], seen | {image.array}
    for s in uses.writes(image.array):
        value = s.value.argument if isinstance(s.value, Cast) else s.value
        if s.reduction or (isinstance(value, Load) and value.array in seen):
            return None
        if isinstance(value, Load):
            ranges.append(_range_of(value, arrays, uses, seen))
        else:
            ranges.append(find_range(value, arrays))
    known = [r for r in ranges if r is not None]
    if not known or len(known) != len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _reading(value: Expr, array: str) -> Expr:
    """The value where an array has floats, in which there are the integers that it had."""
    match value:
        case Cast(Load(name) as load, dtype) if name == array and dtype == FLOAT32:
            return replace(load, dtype=FLOAT32)
        case Load(name) if name == array:
            return Cast(replace(value, dtype=FLOAT32), INT32)
    return with_children(value, tuple(_reading(child, array) for child in children(value)))
