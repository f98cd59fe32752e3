"""Divisions whose results become bytes: floats that are quantised by a scale and a zero point.

u8(add(round(div(x, scale)), float32(zero)))  ->  pc_quantised_u8x16(x, scale, zero)
float32(sub(int32(that), int32(zero)))        ->  pc_levels_u8x16(x, scale, zero)

A vector that is divided takes as long as a dozen other operations. The function, which stands in
`runtime/polyc_quantised.h`, gives the same bytes without; it wants one scale for all lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from polyc.loopnest.nodes import For, LoopExpr, Read, walk_expr
from polyc.loopnest.uniform import variables_of
from polyc.scop.expr import Call, Cast, Const
from polyc.types.element_types import FLOAT32, INT32

_NONE: Mapping[np.dtype, LoopExpr] = {d: Const(0, d) for d in (np.dtype("u1"), np.dtype("i1"))}
"""What zero points of a type are where there is none."""


@dataclass(frozen=True)
class Quantised:
    """What becomes bytes: `value` of each lane, over `scale`, moved by `zero`, a byte."""

    value: LoopExpr
    scale: LoopExpr
    zero: LoopExpr


def find_function(
    expr: Cast[LoopExpr], lanes: For | None
) -> tuple[str, LoopExpr, tuple[LoopExpr, LoopExpr], np.dtype] | None:
    """(function, value, scale and zero point, type of the bytes) that a conversion is."""
    found, name, dtype = find_quantised(expr, lanes), "quantised", expr.dtype
    if found is None:
        level = find_levels(expr, lanes)
        if level is None:
            return None
        (found, dtype), name = level, "levels"
    return name, found.value, (found.scale, found.zero), dtype


def find_quantised(expr: Cast[LoopExpr], lanes: For | None) -> Quantised | None:
    """The parts of a conversion in a vector loop, if it is one of a rounded quotient to bytes."""
    if lanes is None or expr.dtype not in _NONE or expr.argument.dtype != FLOAT32:
        return None
    whole, zero = expr.argument, _NONE[expr.dtype]
    match whole:
        case Call("add", (Call("round") as rounded, Cast(moved))):
            whole, zero = rounded, moved
    match whole:
        case Call("round", (Call("div", (value, scale)),)) if (
            zero.dtype == expr.dtype and _is_one(scale, lanes) and _is_one(zero, lanes)
        ):
            return Quantised(value, scale, zero)
    return None


def find_levels(expr: Cast[LoopExpr], lanes: For | None) -> tuple[Quantised, np.dtype] | None:
    """The same of a byte, and its type, that is a float again without its zero point at once."""
    if expr.dtype != FLOAT32:
        return None
    whole, zero = expr.argument, None
    match whole:
        case Call("sub", (Cast() as byte, Cast(moved)), dtype) if dtype == INT32:
            whole, zero = byte, moved
    match whole:
        case Cast(Cast() as byte, dtype) if dtype == INT32:
            found = find_quantised(byte, lanes)
            if found is not None and found.zero == (zero or _NONE[byte.dtype]):
                return found, byte.dtype
    return None


def _is_one(expr: LoopExpr, lanes: For) -> bool:
    """Whether it is one number for all lanes, which can be computed outside of them."""
    reads = (e for e in walk_expr(expr) if isinstance(e, Read))
    return lanes.var not in variables_of(expr) and not any(r.dynamic or r.guarded for r in reads)
