"""Conversions between element types: by value, with the standard's rounding, or by bits."""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import Call, Cast, Expr
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.elements.pointwise import operand
from polyc.scop.lower.functions import (
    absolute,
    constant,
    convert,
    function,
    le,
    minimum,
    saturated,
    select,
)
from polyc.types.element_types import FLOAT32, POWERS, is_narrow, limits
from polyc.types.element_types import is_float as is_float_type


@lowers("Cast", "CastLike")
def lower_cast(ctx: Lowering, node: Node) -> None:
    """Y[i…] = (type) X[i…]; a view where the type stays."""
    if ctx.type(node.outputs[0]).dtype == ctx.type(node.inputs[0]).dtype:
        ctx.bind(node.outputs[0], ctx.ref(node.inputs[0]))
        return
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    x, saturate = operand(ctx, space, node.inputs[0]), bool(node.get("saturate", 1))
    if result.dtype == POWERS:
        value = _as_power(convert(x, FLOAT32), str(node.get("round_mode", "up")), saturate)
    elif saturate and is_8_bit_float(result.dtype):
        value = convert(saturated(convert(x, FLOAT32), result.dtype), result.dtype)
    else:
        value = convert(x, result.dtype)
    ctx.assign(node, space, result, space.iterators, value)


def is_8_bit_float(dtype: np.dtype) -> bool:
    """Whether `saturate` says what a type makes of numbers that are too large for it."""
    return is_narrow(dtype) and is_float_type(dtype) and dtype.itemsize == 1 and dtype != POWERS


def _as_power(x: Expr, round_mode: str, saturate: bool) -> Expr:
    """A number as a power of two; what is not finite becomes NaN."""
    names = {"up": "power_above", "nearest": "power_nearest"}
    rounded = function(names[round_mode])(x) if round_mode in names else x  # the cast rounds down
    if saturate:
        rounded = minimum(rounded, limits(POWERS)[1])
    finite = le(absolute(x), limits(FLOAT32)[1])
    return convert(select(finite, rounded, constant(np.nan, FLOAT32)), POWERS)


@lowers("Narrow")
def lower_narrow(ctx: Lowering, node: Node) -> None:
    """Y[i…] = X[i…] in the narrow type that memory holds (`graph/widen.py`)"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    value = Cast(operand(ctx, space, node.inputs[0]), result.dtype, for_storage=True)
    ctx.assign(node, space, result, space.iterators, value)


@lowers("BitCast")
def lower_bit_cast(ctx: Lowering, node: Node) -> None:
    """Y[i…] has the bits of X[i…]."""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    x = operand(ctx, space, node.inputs[0])
    bits = Call("as_bits", (x,), np.dtype(f"u{x.dtype.itemsize}"))
    value = bits if result.dtype == bits.dtype else Call("from_bits", (bits,), result.dtype)
    ctx.assign(node, space, result, space.iterators, value)
