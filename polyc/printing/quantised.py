"""Divisions whose results become bytes: floats that are quantised by a scale and a zero point.

u8(add(round(div(x, scale)), float32(zero)))  ->  pc_quantised_u8x16(x, scale, zero)
float32(sub(int32(that), int32(zero)))        ->  pc_levels_u8x16(x, scale, zero)

A vector that is divided takes as long as a dozen other operations. The function, which stands in
`runtime/polyc_quantised.h`, gives the same bytes without; it wants one scale for all lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.loopnest.nodes import For, LoopExpr, Read, walk_expr
from polyc.loopnest.uniform import variables_of
from polyc.scop.expr import Call, Cast, Const
from polyc.types.element_types import FLOAT32, INT32

_NONE: Mapping[np.dtype, LoopExpr] = {d: Const(0, d) for d in (np.dtype("u1"), np.dtype("i1"))}
"""What zero points of a type are where there is none."""


@dataclass(frozen=True)
class Quantised:
    """What becomes bytes: `value` of each lane, over `scale`, moved by `zero`, a byte.

    function: of the runtime, which gives the bytes, or what they are less the zero point.
    """

    value: LoopExpr
    scale: LoopExpr
    zero: LoopExpr
    function: str = "quantised"


def find_quantised(expr: Cast[LoopExpr], lanes: For | None) -> Quantised | None:
    """The parts of a conversion in a vector loop, if it is one of rounded quotients by a scale."""
    return _find_bytes(expr, lanes) or _find_levels(expr, lanes)


def _find_bytes(expr: Cast[LoopExpr], lanes: For | None) -> Quantised | None:
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


def _find_levels(expr: Cast[LoopExpr], lanes: For | None) -> Quantised | None:
    """Those of a byte that is a float again, without its zero point, at once."""
    if expr.dtype != FLOAT32:
        return None
    whole, zero = expr.argument, None
    match whole:
        case Call("sub", (Cast() as byte, Cast(moved)), dtype) if dtype == INT32:
            whole, zero = byte, moved
    match whole:
        case Cast(Cast() as byte, dtype) if dtype == INT32:
            found = _find_bytes(byte, lanes)
            if found is not None and found.zero == (zero or _NONE[byte.dtype]):
                return replace(found, function="levels")
    return None


def _is_one(expr: LoopExpr, lanes: For) -> bool:
    """Whether it is one number for all lanes, which can be computed outside of them."""
    reads = (e for e in walk_expr(expr) if isinstance(e, Read))
    return lanes.var not in variables_of(expr) and not any(r.dynamic or r.guarded for r in reads)
