"""Tensors that come from shapes, ranges and positions rather than from data."""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.checks import known_scalar
from polyc.graph.shapes.creation import find_constant, find_fill, resolve_shape_span
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.shapes.ratios import Ratio
from polyc.poly.conditions import spell
from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.elements.pointwise import operand
from polyc.scop.lower.functions import add, constant, div, eq, ge, is_float, lt, mul, select
from polyc.scop.lower.space import Space
from polyc.types.sizes import Size

MAX_STORED = 2**20
"""Elements of the longest Range that is stored; a longer one is computed when it is read."""


def bind_constant(ctx: Lowering, node: Node, value: np.ndarray) -> None:
    """Output 0 is known."""
    tensor = ctx.type(node.outputs[0])
    ctx.bind(tensor.name, ctx.constant(tensor.name, value.astype(tensor.dtype)))


@lowers("Constant")
def lower_constant(ctx: Lowering, node: Node) -> None:
    """Y is the value of the attribute."""
    bind_constant(ctx, node, find_constant(node))


@lowers("ConstantOfShape")
def lower_constant_of_shape(ctx: Lowering, node: Node) -> None:
    """Y is one value, seen everywhere."""
    tensor = ctx.type(node.outputs[0])
    fill = find_fill(node).item()
    ctx.bind(tensor.name, ctx.filled(tensor.name, fill, tensor.dtype, tensor.extents))


@lowers("Range")
def lower_range(ctx: Lowering, node: Node) -> None:
    """Y[i] = start + i * delta"""
    roles = zip(node.inputs, ("start", "limit", "delta"), strict=True)
    start, _, delta = (known_scalar(ctx.type(name), role) for name, role in roles)
    tensor = ctx.type(node.outputs[0])
    is_counted = not tensor.is_static or isinstance(start, Size)
    if is_counted or tensor.size > MAX_STORED:
        result = ctx.result(node)
        space = ctx.grid(node, result.shape)
        value: Expr = space.index("i0", result.dtype)
        if is_counted and is_float(value):
            first, step = (_number(space, n, result.dtype) for n in (start, delta))
            value = add(mul(value, step), first)
        elif is_counted:
            value = cast(space.index(f"{spell(start)} + {spell(delta)}*i0"), result.dtype)
        else:
            value = add(mul(value, delta), constant(start, result.dtype))
        ctx.assign(node, space, result, space.iterators, value)
        return
    steps = np.arange(tensor.size).astype(tensor.dtype)
    bind_constant(ctx, node, tensor.dtype.type(start) + steps * tensor.dtype.type(delta))


def _number(space: Space, number: float | Ratio, dtype: np.dtype) -> Expr:
    """A number, or what a ratio of sizes is in a call."""
    if not isinstance(number, Ratio):
        return constant(number, dtype)
    above = space.number(number.above, dtype)
    known = constant(above, dtype) if isinstance(above, int) else above
    return div(known, float(number.below))


@lowers("Shape")
def lower_shape(ctx: Lowering, node: Node) -> None:
    """Y holds the extents of X."""
    extents = ctx.type(node.inputs[0]).extents
    span = resolve_shape_span(len(extents), node.get("start", 0), node.get("end"))
    bind_constant(ctx, node, np.array([extents[k] for k in span], np.int64))


@lowers("Size")
def lower_size(ctx: Lowering, node: Node) -> None:
    """Y is the number of elements of X."""
    bind_constant(ctx, node, np.array(ctx.type(node.inputs[0]).size, np.int64))


@lowers("EyeLike")
def lower_eye_like(ctx: Lowering, node: Node) -> None:
    """Y[i, j] = 1 where j = i + k, else 0"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    diagonal = space.within(f"i1 = i0 + {node.get('k', 0)}")
    ctx.assign(node, space, result, space.iterators, cast(diagonal, result.dtype))


@lowers("Trilu")
def lower_trilu(ctx: Lowering, node: Node) -> None:
    """Y[…, i, j] = X[…, i, j] where j - i >= k (upper) or <= k (lower), else 0"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    row, column = space.iterators[-2:]
    upper = bool(node.get("upper", 1))
    across = f"{column} - {row}" if upper else f"{row} - {column}"
    element = operand(ctx, space, node.inputs[0])
    shift = ctx.graph.value(node.inputs[1]) if ctx.has(node, 1) else np.zeros((), np.int64)
    zero = np.zeros((), result.dtype).item()
    if shift is None:
        asked = operand(ctx, space, node.inputs[1])
        distance = space.index(f"{column} - {row}")
        chosen = ge(distance, asked) if upper else ge(asked, distance)
        value: Expr = select(chosen, element, zero)
    else:
        bound = shift.item() if upper else -shift.item()
        value = select(space.within(f"{across} >= {bound}"), element, zero)
    ctx.assign(node, space, result, space.iterators, value)


@lowers("OneHot")
def lower_one_hot(ctx: Lowering, node: Node) -> None:
    """Y[a…, d, b…] = on where I[a…, b…] is d or d - depth, else off; values are (off, on)"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    axis = normalize_axis(node.get("axis", -1), result.rank)
    indices, values = ctx.ref(node.inputs[0]), ctx.ref(node.inputs[2])
    others = [i for k, i in enumerate(space.iterators) if k != axis]
    asked = cast(space.load(indices, *others), INT64)
    wrapped = select(lt(asked, 0), add(asked, space.number(result.shape[axis])), asked)
    hit = eq(wrapped, space.index(f"i{axis}"))
    value = select(hit, space.load(values, "1"), space.load(values, "0"))
    ctx.assign(node, space, result, space.iterators, value)
