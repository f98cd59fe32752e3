"""Pools: a maximum, mean or p-norm of each window, or of each whole image.

    MaxPool   y[n, c, y, x]  max=  p[n, c, 2*y + r, 2*x + q]      p: x inside -infinity

The iterators are those of `window`: n, c, positions z y x and taps t r q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.window import Window, resolve_window
from polyc.poly.conditions import spell
from polyc.scop.expr import INT64, Const, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    add,
    div,
    either,
    eq,
    function,
    is_float,
    isnan,
    maximum,
    minimum,
    mul,
    select,
    sub,
)
from polyc.scop.lower.movement.padding import Padding, pads_input
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import Finish, accumulate_into, mean_of, power_of_magnitude, root_of
from polyc.scop.lower.windows.window import (
    positions,
    read_padded,
    reads,
    tap_indices,
    taps,
    window_padding,
)
from polyc.scop.scop import Reduction, identity
from polyc.types.sizes import Size

FAR = Const(2**62, INT64)
"""An index behind all others, where there is no element; adding an offset does not overflow."""

mod = function("mod")


def _pool_window(ctx: Lowering, node: Node) -> Window:
    spatial = ctx.type(node.inputs[0]).extents[2:]
    return resolve_window(node, spatial, node.attributes["kernel_shape"])


@pads_input("AveragePool", "LpPool")
def pad_sum_pool(ctx: Lowering, node: Node) -> Padding:
    """Zeros, as far as the windows reach."""
    spatial = ctx.type(node.inputs[0]).extents[2:]
    return window_padding(_pool_window(ctx, node), spatial, 0)


@pads_input("MaxPool")
def pad_max_pool(ctx: Lowering, node: Node) -> Padding:
    """The smallest value of the type, as far as the windows reach."""
    tensor = ctx.type(node.inputs[0])
    fill = identity("max", tensor.dtype)
    return window_padding(_pool_window(ctx, node), tensor.extents[2:], fill)


@lowers("MaxPool")
def lower_max_pool(ctx: Lowering, node: Node) -> None:
    """y = max over the window; optionally where the first maximum lies in the flat input."""
    window = _pool_window(ctx, node)
    source = read_padded(ctx, node, pad_max_pool(ctx, node))
    space = _window_space(ctx, node, source, window)
    kept = ["n", "c", *positions(window.output)]
    value = space.load(source, "n", "c", *reads(window))
    ctx.accumulate(node, space, kept, value, "max")
    if len(node.outputs) > 1 and node.outputs[1]:
        _lower_max_indices(ctx, node, source, window)


def _lower_max_indices(ctx: Lowering, node: Node, source: Ref, window: Window) -> None:
    """indices = min over the window of the flat index of the elements that equal the maximum.

    A NaN makes the maximum NaN, and is where it lies. What is in the padding is never chosen.
    """
    image = ctx.type(node.inputs[0]).extents
    spatial = image[2:]
    space = _window_space(ctx, node, source, window)
    kept = ["n", "c", *positions(window.output)]
    value = space.load(source, "n", "c", *reads(window))
    chosen: Expr = eq(value, space.load(ctx.ref(node.outputs[0]), *kept))
    if is_float(value):
        chosen = either(chosen, isnan(value))
    index = select(chosen, _flat_positions(ctx, space, window, spatial), FAR)

    def finish(end: Space, first: Expr) -> Expr:
        if node.get("storage_order", 0):
            first = _column_major(end, first, spatial)
        image_of = mul(end.index("n"), end.number(math.prod(image[1:])))
        channel = mul(end.index("c"), end.number(math.prod(spatial)))
        return add(add(image_of, channel), first)

    accumulate_into(ctx, node, ctx.result(node, 1), space, kept, index, "min", finish)


def _flat_positions(ctx: Lowering, space: Space, window: Window, spatial: Sequence[int]) -> Expr:
    """The flat index in its image of the element that a tap reads; `FAR` in the padding.

    From a table, or computed where extents are known only at run time.
    """
    if not any(isinstance(n, Size) for n in spatial):
        flat = np.arange(math.prod(spatial)).reshape(spatial)
        padding = window_padding(window, spatial, 0)
        frame = [(b, max(e, 0)) for b, e in zip(padding.begin[2:], padding.end[2:], strict=True)]
        where = ctx.constant("positions", np.pad(flat, frame, constant_values=FAR.value))
        return space.load(where, *reads(window))
    pairs = zip(reads(window), window.pads_begin, strict=True)
    places = [f"{read} - ({spell(begin)})" for read, begin in pairs]
    terms = [
        mul(space.index(place), space.number(math.prod(spatial[k + 1 :])))
        for k, place in enumerate(places)
    ]
    inside = " and ".join(f"0 <= {p} < {spell(n)}" for p, n in zip(places, spatial, strict=True))
    return select(space.within(inside), reduce(add, terms), FAR)


def _column_major(space: Space, index: Expr, shape: Sequence[int]) -> Expr:
    """A flat index with the last dimension fastest -> with the first dimension fastest."""
    result: Expr = Const(0, INT64)
    for k, extent in enumerate(shape):
        coordinate = mod(div(index, space.number(math.prod(shape[k + 1 :]))), space.number(extent))
        result = add(result, mul(coordinate, space.number(math.prod(shape[:k]))))
    return result


@lowers("AveragePool")
def lower_average_pool(ctx: Lowering, node: Node) -> None:
    """y = sum over the window / number of its elements inside the image (or its padding)"""
    window = _pool_window(ctx, node)
    source = read_padded(ctx, node, pad_sum_pool(ctx, node))
    space = _window_space(ctx, node, source, window)
    kept = ["n", "c", *positions(window.output)]
    value = space.load(source, "n", "c", *reads(window))
    spatial = ctx.type(node.inputs[0]).extents[2:]
    if any(isinstance(n, Size) for n in spatial):

        def divide(end: Space, total: Expr) -> Expr:
            counts = _count_taps(end, node, window, spatial)
            return div(total, cast(reduce(mul, counts), total.dtype))

        ctx.accumulate(node, space, kept, value, "add", divide)
        return
    counts = _window_counts(node, window, spatial)
    if counts.size and (counts == counts.flat[0]).all():
        finish = mean_of(int(counts.flat[0]))
    else:
        divisor = ctx.constant(f"{node.outputs[0]}_counts", counts.astype(value.dtype))

        def finish(end: Space, total: Expr) -> Expr:
            return div(total, end.load(divisor, *positions(window.output)))

    ctx.accumulate(node, space, kept, value, "add", finish)


def _window_counts(node: Node, window: Window, spatial: Sequence[int]) -> np.ndarray:
    """How many elements each window averages: int64[output…].

    Those of the image; with count_include_pad, of the image inside the node's pads (but never
    those that only ceil mode adds).
    """
    include = bool(node.get("count_include_pad", 0))
    counts = np.ones((), np.int64)
    for k, extent in enumerate(spatial):
        first = np.arange(window.output[k])[:, None] * window.strides[k] - window.pads_begin[k]
        at = first + np.arange(window.kernel[k]) * window.dilations[k]
        low = -window.pads_begin[k] if include else 0
        high = extent + (window.pads_end[k] if include else 0)
        counts = np.multiply.outer(counts, ((low <= at) & (at < high)).sum(1))
    return counts


def _count_taps(end: Space, node: Node, window: Window, spatial: Sequence[int]) -> list[Expr]:
    """`_window_counts` where extents are sizes, for each dimension by itself.

    Of taps at y*s - b + d*r, those below high, up to all of them, but for those below low. It is
    arithmetic of data: as one index isl would tell apart where it is which.
    """
    include = bool(node.get("count_include_pad", 0))
    counts: list[Expr] = []
    for k, y in enumerate(positions(window.output)):
        before = f"({spell(window.pads_begin[k])})"
        low = f"-{before}" if include else "0"
        high = spell(spatial[k] + (window.pads_end[k] if include else 0))
        start, dilation = f"{window.strides[k]}*{y} - {before}", window.dilations[k]
        parts: list[Expr] = []
        for bound in (high, low):
            if dilation == 1:
                parts.append(sub(end.index(bound), end.index(start)))
            else:
                parts.append(end.index(f"floor(({bound} - ({start}) + {dilation - 1})/{dilation})"))
        counts.append(sub(minimum(parts[0], window.kernel[k]), maximum(parts[1], 0)))
    return counts


@lowers("LpPool")
def lower_lp_pool(ctx: Lowering, node: Node) -> None:
    """y = (sum of |x|^p over the window)^(1/p)"""
    window = _pool_window(ctx, node)
    source = read_padded(ctx, node, pad_sum_pool(ctx, node))
    space = _window_space(ctx, node, source, window)
    value = power_of_magnitude(space.load(source, "n", "c", *reads(window)), node.get("p", 2))
    kept = ["n", "c", *positions(window.output)]
    ctx.accumulate(node, space, kept, value, "add", root_of(node.get("p", 2)))


@lowers("GlobalMaxPool")
def lower_global_max_pool(ctx: Lowering, node: Node) -> None:
    """y[n, c] = max of the image"""
    _lower_global(ctx, node, "max", lambda x: x, lambda _, total: total)


@lowers("GlobalAveragePool")
def lower_global_average_pool(ctx: Lowering, node: Node) -> None:
    """y[n, c] = mean of the image"""
    count = math.prod(ctx.type(node.inputs[0]).extents[2:])
    _lower_global(ctx, node, "add", lambda x: x, mean_of(count))


@lowers("GlobalLpPool")
def lower_global_lp_pool(ctx: Lowering, node: Node) -> None:
    """y[n, c] = (sum of |x|^p over the image)^(1/p)"""
    p = node.get("p", 2)
    _lower_global(ctx, node, "add", lambda x: power_of_magnitude(x, p), root_of(p))


def _lower_global(
    ctx: Lowering,
    node: Node,
    operator: Reduction,
    value: Callable[[Expr], Expr],
    finish: Finish,
) -> None:
    ref = ctx.ref(node.inputs[0])
    image = taps(ref.shape[2:])
    space = ctx.space(node, n=ref.shape[0], c=ref.shape[1], **image)
    element = value(space.load(ref, "n", "c", *tap_indices(ref.shape[2:])))
    into = ["n", "c", *["0"] * (ref.rank - 2)]
    ctx.accumulate(node, space, ["n", "c"], element, operator, finish, into)


def _window_space(ctx: Lowering, node: Node, source: Ref, window: Window) -> Space:
    batch, channels = source.shape[:2]
    inner = positions(window.output) | taps(window.kernel)
    return ctx.space(node, n=batch, c=channels, **inner)
