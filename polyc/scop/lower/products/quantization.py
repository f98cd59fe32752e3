"""Quantised operators: integers that stand for real numbers by a scale and a zero point.

    q = saturate(round(x / scale) + zero)            x = (q - zero) * scale

Products are sums of 32-bit integers of centred operands, q - zero, and are scaled at their end:

    y = saturate(round((sum of (a - za) * (b - zb)) * (sa * sb / sy)) + zy)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.quantization import scale_indices
from polyc.graph.shapes.signature import element_type
from polyc.graph.shapes.window import resolve_window
from polyc.scop.expr import Const, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.elements.pointwise import element_at
from polyc.scop.lower.functions import (
    add,
    as_float,
    convert,
    div,
    function,
    mul,
    rounded,
    saturated,
    sub,
)
from polyc.scop.lower.movement.padding import padded
from polyc.scop.lower.products.contraction import contract_matrices
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.windows.window import convolve, window_padding
from polyc.types.element_types import FLOAT32, INT32, is_narrow, wide
from polyc.types.element_types import is_float as is_float_type

round_even = function("round")


def saturate(x: Expr, zero: Expr | None, dtype: np.dtype) -> Expr:
    """round(x) + zero, at most and at least what the integer type holds."""
    whole = round_even(x)
    moved = whole if zero is None or is_zero(zero) else add(whole, convert(zero, x.dtype))
    return convert(saturated(moved, dtype) if is_narrow(dtype) else moved, dtype)  # which saturates


def is_zero(zero: Expr) -> bool:
    """Whether a zero point is known to be 0."""
    return isinstance(zero, Const) and zero.value == 0


@lowers("QuantizeLinear")
def lower_quantize(ctx: Lowering, node: Node) -> None:
    """y[i] = saturate(round(x[i] / scale[block of i]) + zero[block of i]); floats round by their
    type, are not moved, and saturate if the node says so"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    x = space.load(ctx.ref(node.inputs[0]), *space.iterators)
    scale = as_float(_parameter(ctx, node, space, 1))
    if node.get("precision", 0):
        scale = convert(scale, element_type(int(node.get("precision"))))
        scale = cast(scale, wide(scale.dtype))
    quotient = div(cast(x, scale.dtype), scale)
    if is_float_type(result.dtype):
        kept = saturated(quotient, result.dtype) if node.get("saturate", 1) else quotient
        value = convert(kept, result.dtype)
    else:
        zero = _parameter(ctx, node, space, 2) if ctx.has(node, 2) else None
        value = saturate(quotient, zero, result.dtype)
    ctx.assign(node, space, result, space.iterators, value)


@lowers("DequantizeLinear")
def lower_dequantize(ctx: Lowering, node: Node) -> None:
    """y[i] = (x[i] - zero[block of i]) * scale[block of i]; the zero of floats is 0"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    x = space.load(ctx.ref(node.inputs[0]), *space.iterators)
    exact = FLOAT32 if is_float_type(x.dtype) else INT32
    moved = convert(x, exact)
    if ctx.has(node, 2) and exact == INT32:
        moved = sub(moved, convert(_parameter(ctx, node, space, 2), INT32))
    scale = cast(_parameter(ctx, node, space, 1), result.dtype)
    value = rounded(mul(cast(moved, result.dtype), scale))  # whatever is added to it
    ctx.assign(node, space, result, space.iterators, value)


def _parameter(ctx: Lowering, node: Node, space: Space, position: int) -> Expr:
    """The scale or the zero point of the element [i0, i1, …] of input 0."""
    name = node.inputs[position]
    at = scale_indices(node, ctx.type(node.inputs[0]), ctx.type(name))
    return element_at(ctx, space, name, at)


def _centred(ctx: Lowering, node: Node, tensor: str, zero: str, at: Sequence[str]) -> Ref:
    """tensor - zero[at] as 32-bit integers; a constant where both are."""
    ref = ctx.ref(tensor)
    space = ctx.grid(node, ref.shape)
    value, shift = ctx.graph.value(tensor), ctx.graph.value(zero) if zero else np.zeros((), "u1")
    if value is not None and shift is not None:
        place = _spread(shift, at, value.ndim)
        return ctx.constant(f"{tensor}_centred", value.astype(INT32) - place.astype(INT32))
    target = ctx.array(f"{tensor}_centred", INT32, ref.shape)
    element = cast(space.load(ref, *space.iterators), INT32)
    if zero:
        element = sub(element, cast(element_at(ctx, space, zero, at), INT32))
    ctx.assign(node, space, target, space.iterators, element)
    return target


def _spread(values: np.ndarray, at: Sequence[str], rank: int) -> np.ndarray:
    """Values with the index `at`, of iterators i0, i1, … or "0", against an array of that rank.

    values[i0]  ->  values[:, None, None, None] against weights of a convolution
    """
    axes = {int(i[1:]): n for i, n in zip(at, values.shape, strict=True) if i != "0"}
    return values.reshape([axes.get(d, 1) for d in range(rank)])


def _parameter_at(ctx: Lowering, name: str, index: Sequence[str], own: int) -> tuple[str, ...]:
    """Where a scale or zero point of a matrix lies: one for all, or for each row or column.

    `index` are the indices of the matrix's element; `own` is the one that the parameter has.
    """
    shape = ctx.type(name).extents
    if len(shape) == 1:
        return ("0",) if shape == (1,) else (index[own],)
    last = index[len(index) - len(shape) :]
    return tuple("0" if n == 1 else i for i, n in zip(last, shape, strict=True))


def _rescale(
    ctx: Lowering, node: Node, space: Space, total: Expr, at: Sequence[Sequence[str]]
) -> Expr:
    """total * (a_scale * b_scale / y_scale), as the output's type; scales are at 1, 4 and 6."""
    a, b = (element_at(ctx, space, node.inputs[k], at[k == 4]) for k in (1, 4))
    y = element_at(ctx, space, node.inputs[6], ("0",) * ctx.type(node.inputs[6]).rank)
    factor = div(mul(a, b), y)
    zero = element_at(ctx, space, node.inputs[7], ("0",) * ctx.type(node.inputs[7]).rank)
    scaled = mul(cast(total, factor.dtype), factor)
    return saturate(scaled, zero, ctx.type(node.outputs[0]).dtype)


def _lower_product(
    ctx: Lowering, node: Node, a: int, b: int, zeros: tuple[int, int], scaled: bool
) -> None:
    """A product of matrices whose operands are the inputs a and b."""
    grids = [[f"i{k}" for k in range(ctx.type(node.inputs[p]).rank)] for p in (a, b)]
    operands = []
    for position, zero, index, own in zip((a, b), zeros, grids, (-2, -1), strict=True):
        name = node.inputs[zero] if ctx.has(node, zero) else ""
        place = _parameter_at(ctx, name, index, max(own, -len(index))) if name else ()
        operands.append(_centred(ctx, node, node.inputs[position], name, place))

    def finish(end: Space, total: Expr, index: Sequence[str]) -> Expr:
        if not scaled:
            return total
        places = [_parameter_at(ctx, node.inputs[k], index, own) for k, own in ((1, -2), (4, -1))]
        return _rescale(ctx, node, end, total, places)

    contract_matrices(ctx, node, operands[0], operands[1], finish)


@lowers("MatMulInteger")
def lower_matmul_integer(ctx: Lowering, node: Node) -> None:
    """y[…, i, j] = sum of (a[…, i, k] - za[i]) * (b[…, k, j] - zb[j]) over k, in 32 bits"""
    _lower_product(ctx, node, 0, 1, (2, 3), scaled=False)


@lowers("QLinearMatMul")
def lower_qlinear_matmul(ctx: Lowering, node: Node) -> None:
    """The same product, requantised."""
    _lower_product(ctx, node, 0, 3, (2, 5), scaled=True)


def _lower_convolution(
    ctx: Lowering,
    node: Node,
    x: tuple[int, int],
    w: tuple[int, int],
    finish: Callable[[Space, Expr, str], Expr],
) -> None:
    """A convolution of centred operands; x and w are (input, its zero point)."""

    def zero(position: int) -> str:
        return node.inputs[position] if ctx.has(node, position) else ""

    data, weight = (ctx.type(node.inputs[k]) for k, _ in (x, w))
    window = resolve_window(node, data.extents[2:], weight.extents[2:])
    name = zero(x[1])
    centred = _centred(ctx, node, data.name, name, ("0",) * (ctx.type(name).rank if name else 0))
    frame = window_padding(window, data.extents[2:], 0)
    source = padded(ctx, node, f"{node.name}.centred", centred, frame.begin, frame.end, frame.fill)
    name = zero(w[1])
    rank = ctx.type(name).rank if name else 0
    single = bool(name) and ctx.type(name).size == 1
    kernel = _centred(ctx, node, weight.name, name, ("0",) * rank if single else ("i0",) * rank)
    convolve(ctx, node, window, source, kernel, finish)


@lowers("ConvInteger")
def lower_conv_integer(ctx: Lowering, node: Node) -> None:
    """y[n, o, …] = sum of (x - zx) * (w[o] - zw[o]) over the window, in 32 bits"""
    _lower_convolution(ctx, node, (0, 2), (1, 3), lambda end, total, channel: total)


@lowers("QLinearConv")
def lower_qlinear_conv(ctx: Lowering, node: Node) -> None:
    """The same sum plus the bias, requantised."""

    def finish(end: Space, total: Expr, channel: str) -> Expr:
        if ctx.has(node, 8):
            total = add(total, end.load(ctx.ref(node.inputs[8]), channel))
        shapes = [ctx.type(node.inputs[k]).extents for k in (1, 4)]
        places = [tuple("0" if n == 1 else channel for n in shape) for shape in shapes]
        return _rescale(ctx, node, end, total, places)

    _lower_convolution(ctx, node, (0, 2), (3, 5), finish)
