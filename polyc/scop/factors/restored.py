"""Arrays of integers restored to floats by a scale and a zero point, as sums of products read them.

x_float[i, k] = rounded(float(int32(x[i, k]) - z) * a)          x: bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.scop.expr import Call, Cast, Const, Expr, Load
from polyc.scop.factors.narrow_factors import find_range
from polyc.scop.inline import reads_once
from polyc.scop.known_values import evaluate, fills, reads_constants
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses
from polyc.types.element_types import FLOAT32, INT32


@dataclass(frozen=True)
class Factor:
    """An array of restored integers, as a sum reads it.

    writers: the statements that write it and what it is copied from, in execution order; scales: by
    the literal, or the array, with the map from the sum's instances to its elements; most: the
    largest magnitude of the integers; dtype: of the bytes that these are, less a zero point.
    """

    load: Load
    writers: tuple[Statement, ...]
    scales: tuple[Const | tuple[str, isl.Map], ...]
    most: int
    dtypes: frozenset[np.dtype]
    has_zero: bool


def find_factor(
    load: Load, instances: isl.Map, s: Statement, uses: Uses, arrays: Mapping[str, Array]
) -> Factor | None:
    """What is restored into an array that is read by instances  S -> A  of a sum."""
    name = load.array
    writers: list[Statement] = []
    scales: list[Const | tuple[str, isl.Map]] = []
    most, dtypes, has_zero = 0, frozenset[np.dtype](), False
    if arrays[name].kind != "temporary":
        return None
    for w in uses.writes(name):
        if w.reduction or w.time is not None or (w.step, w.branches) != (s.step, s.branches):
            return None
        back = w.write.as_map().intersect_domain(w.domain).reverse()
        there = instances.apply_range(back)  # S -> writer
        match w.value:
            case Const(0):
                pass
            case Load(source, index, dynamic=()) if source != name:
                inner = find_factor(w.value, there.apply_range(index.as_map()), s, uses, arrays)
                if inner is None:
                    return None
                writers += inner.writers
                scales += inner.scales
                most, dtypes = max(most, inner.most), dtypes | inner.dtypes
                has_zero = has_zero or inner.has_zero
            case Call("rounded", (Call("mul", (Cast(whole), scale), dtype),)) if dtype == FLOAT32:
                byte = find_byte(whole)
                if byte is None:
                    return None
                match scale:
                    case Const():
                        scales.append(scale)
                    case Load(array, index, dynamic=()):
                        scales.append((array, there.apply_range(index.as_map())))
                    case _:
                        return None
                most = max(most, _magnitude(whole, arrays))
                dtypes |= {byte.dtype}
                has_zero = has_zero or isinstance(without_zero(whole), Call)
            case _:
                return None
        writers.append(w)
    if not scales:
        return None
    return Factor(load, tuple(writers), tuple(scales), most, dtypes, has_zero)


def find_byte(whole: Expr) -> Load | None:
    """The byte that an integer of 32 bits is, less a zero point."""
    match whole:
        case Cast(Load(dynamic=()) as load, dtype) | Call(
            "sub", (Cast(Load(dynamic=()) as load, dtype), Cast() | Const()), _
        ):
            if dtype == INT32 and load.dtype.kind in "iu" and load.dtype.itemsize == 1:
                return load
    return None


def without_zero(whole: Expr) -> Expr:
    """The integer without a zero point that is 0."""
    match whole:
        case Call("sub", (value, Const(0) | Cast(Const(0)))):
            return value
    return whole


def _magnitude(whole: Expr, arrays: Mapping[str, Array]) -> int:
    """The largest magnitude of a byte less a zero point."""
    found = find_range(whole, arrays)
    assert found is not None, "a byte less a zero point is nothing else"
    return max(map(abs, found))


def restore_constants(before: Scop, after: Scop) -> Scop:
    """`before` with constants of floats for restored ones that `after` reads several times."""
    uses, restored = find_uses(after.statements), {}
    for s in after.statements:
        target = after.arrays[s.array]
        match s.value:
            case Call("rounded", (Call("mul", (Cast(whole), _), dtype),)) if dtype == FLOAT32:
                byte = find_byte(whole)
            case _:
                continue
        alone = target.kind == "temporary" and len(uses.writes(s.array)) == 1
        if byte is None or not alone or reads_once([*uses.reads(s.array)]):
            continue
        if fills(s, target) and reads_constants(s.value, after.arrays):
            value = evaluate(s.value, target.shape, after.arrays)
            if value is not None:
                restored[s.array] = replace(target, kind="constant", value=value)
    if not restored:
        return before
    kept = tuple(s for s in before.statements if s.array not in restored)
    return drop_dead(replace(before, statements=kept, arrays={**before.arrays, **restored}))
