"""Windows that slide over the spatial dimensions of a tensor, and Conv, their weighted sum.

    Conv   y[n, o, y, x]  +=  p[n, c, 2*y + r, 2*x + q] * w[o, c, r, q]      p: x inside zeros

The iterators are n (batch), g (group), o (output channel of the group), c (input channel), z y x
(position) and t r q (tap); those that would only be 0 are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.window import Window, resolve_window
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering, counts, lowers
from polyc.scop.lower.functions import add, constant, guarded, mul
from polyc.scop.lower.movement.padding import Fill, Padding, most_of, padded, pads_input
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import accumulate_into
from polyc.scop.lower.windows.choose_filters import choose_filters
from polyc.scop.lower.windows.far_taps import are_far, list_taps
from polyc.scop.lower.windows.minimal_filter import MinimalFilter
from polyc.scop.lower.windows.winograd import count_tiles, lower_minimal
from polyc.scop.sparse.zeros import price_without_zeros
from polyc.types.estimate import hinted
from polyc.types.parameters import has_name
from polyc.types.sizes import Extent, Size


def positions(output: Sequence[int]) -> dict[str, int]:
    """Iterators over output positions and their extents: (7, 9) -> {y: 7, x: 9}."""
    return dict(zip(_named("zyx", len(output)), output, strict=True))


def taps(kernel: Sequence[int]) -> dict[str, int]:
    """Iterators over a window and their extents, without those of extent 1: (3, 1) -> {r: 3}."""
    return {i: n for i, n in zip(_named("trq", len(kernel)), kernel, strict=True) if n != 1}


def tap_indices(kernel: Sequence[int]) -> list[str]:
    """The tap as indices of a kernel: (3, 1) -> ["r", "0"]."""
    return [i if n != 1 else "0" for i, n in zip(_named("trq", len(kernel)), kernel, strict=True)]


def reads(window: Window) -> list[str]:
    """The padded input's indices that a tap of an output reads: ["2*y + r", "2*x + q"]."""
    formulas = []
    named = zip(positions(window.output), tap_indices(window.kernel), strict=True)
    scales = zip(window.strides, window.dilations, strict=True)
    for (y, r), (stride, dilation) in zip(named, scales, strict=True):
        formulas.append(f"{stride}*{y} + {dilation}*{r}")
    return formulas


def window_padding(window: Window, spatial: Sequence[int], fill: Fill) -> Padding:
    """What makes every read of an input (n, c, spatial…) valid.

    At the end that is as much as the last window reads: less than the node's pads where the stride
    skips the last elements, more in ceil mode.
    """
    end = []
    for k, extent in enumerate(spatial):
        last = window.strides[k] * (window.output[k] - 1)
        reach = last + window.dilations[k] * (window.kernel[k] - 1) + 1
        end.append(most_of(reach - window.pads_begin[k] - extent))
    return Padding((0, 0, *window.pads_begin), (0, 0, *end), fill)


def read_padded(ctx: Lowering, node: Node, padding: Padding) -> Ref:
    """Input 0 of the node, padded."""
    name = node.inputs[0]
    return padded(ctx, node, name, ctx.ref(name), padding.begin, padding.end, padding.fill)


def grouped_channels(groups: int, filters: int) -> dict[str, int]:
    """Iterators over output channels: {o}, or {g, o}; {g} if every group has one."""
    if groups == 1:
        return {"o": filters}
    return {"g": groups} | ({"o": filters} if filters != 1 else {})


def channel_index(groups: int, extent: int, iterator: str) -> str:
    """A channel counted over all groups: "o", "16*g + o", "g" for groups of one."""
    member = iterator if extent != 1 or iterator == "o" else "0"
    if groups == 1:
        return member
    return "g" if extent == 1 else f"{extent}*g + {member}"


def add_bias(ctx: Lowering, node: Node, end: Space, channel: str, total: Expr) -> Expr:
    """total + bias[channel], where the node has a bias."""
    if not ctx.has(node, 2):
        return total
    return add(total, end.load(ctx.ref(node.inputs[2]), channel))


def _conv_window(ctx: Lowering, node: Node) -> Window:
    spatial, kernel = (ctx.type(name).extents[2:] for name in node.inputs[:2])
    return resolve_window(node, spatial, kernel)


def _conv_tiles(ctx: Lowering, node: Node, window: Window) -> tuple[MinimalFilter, ...] | None:
    """The minimal filters that the node is computed with, or None for the direct form."""
    tiles = _choose_tiles(ctx, node, window)
    countable = all(map(has_name, _count_tiles(ctx, node, window, tiles))) if tiles else False
    return tiles if countable else None


def _count_tiles(
    ctx: Lowering, node: Node, window: Window, tiles: Sequence[MinimalFilter]
) -> list[Extent]:
    """The tiles along each dimension, and those of all images."""
    counts = count_tiles(tiles, window.output, _gaps(window))
    every = math.prod(_gaps(window), start=ctx.type(node.inputs[0]).extents[0])
    return [*counts, math.prod(counts, start=every)]


def _gaps(window: Window) -> list[int]:
    """Pixels from one tap to the next; 1 where there is one tap."""
    return [d if r > 1 else 1 for d, r in zip(window.dilations, window.kernel, strict=True)]


def _choose_tiles(ctx: Lowering, node: Node, window: Window) -> tuple[MinimalFilter, ...] | None:
    """The filters that are estimated to be cheapest, for the sizes that kernels are chosen for."""
    if _has_far_taps(ctx, node, window):
        return None
    batch, groups = ctx.type(node.inputs[0]).extents[0], node.get("group", 1)
    weight = ctx.type(node.inputs[1])
    streamed, gaps = ctx.streamed, _gaps(window)
    plain = {*window.strides} == {1} and weight.is_constant and weight.dtype.kind == "f"
    # Numbers of tiles that a call decides are sizes of all sets; and of phases that sizes are the
    # ends of, the proof that each element is written takes minutes.
    free = [isinstance(n, Size) for n in window.output]
    if not (streamed and plain) or (any(free) and max(gaps) > 1):
        return None
    filters, channels, *_ = weight.extents
    output = [-(-hinted(n) // d) for n, d in zip(window.output, gaps, strict=True)]
    images = hinted(batch) * math.prod(gaps)
    one = images, groups, channels, filters // groups, window.kernel, output
    value = ctx.graph.value(weight.name)
    assert value is not None
    width, lanes = hinted(window.output[-1]), ctx.lanes
    against = price_without_zeros(value, width, lanes, True) if lanes else math.inf
    smaller = [-(-n // 2) if is_open else n for n, is_open in zip(output, free, strict=True)]
    larger = [2 * n if is_open else n for n, is_open in zip(output, free, strict=True)]
    return choose_filters(
        *one,
        streamed=streamed,
        against=against,
        rate=ctx.direct,
        others=(smaller, larger) if any(free) else (),
    )


def _has_far_taps(ctx: Lowering, node: Node, window: Window) -> bool:
    """Whether each tap is a product of its own, as on CPUs where zeros are left out.

    That those around the image are not multiplied would be seen where a weight is none of the
    finite numbers.
    """
    weight, spatial = ctx.type(node.inputs[1]), ctx.type(node.inputs[0]).extents[2:]
    if not (ctx.lanes and are_far(window, spatial) and weight.extents[1] != 1):
        return False
    value = ctx.graph.value(weight.name)
    return value is not None and value.dtype.kind == "f" and bool(np.isfinite(value).all())


@counts("Conv")
def count_conv(ctx: Lowering, node: Node) -> list[Extent]:
    """Tiles, where there are any."""
    window = _conv_window(ctx, node)
    tiles = _choose_tiles(ctx, node, window)
    return _count_tiles(ctx, node, window, tiles) if tiles else []


@pads_input("Conv")
def pad_conv(ctx: Lowering, node: Node) -> Padding:
    """Zeros, as far as the windows reach; to the end of the last tile where there are tiles."""
    spatial = ctx.type(node.inputs[0]).extents[2:]
    window = _conv_window(ctx, node)
    if _has_far_taps(ctx, node, window):
        none = (0,) * (2 + len(spatial))
        return Padding(none, none, 0)
    tiles = _conv_tiles(ctx, node, window)
    if tiles is not None:
        gaps = _gaps(window)
        number = count_tiles(tiles, window.output, gaps)
        whole = [n * f.m * d for n, f, d in zip(number, tiles, gaps, strict=True)]
        window = replace(window, output=tuple(whole))
    return window_padding(window, spatial, 0)


@lowers("Conv")
def lower_conv(ctx: Lowering, node: Node) -> None:
    """y[n, o, y…] = bias[o] + sum of x[n, c, stride*y + dilation*r - begin…] * w[o, c, r…]"""
    window = _conv_window(ctx, node)
    source = ctx.unbroken(node, read_padded(ctx, node, pad_conv(ctx, node)))
    if _has_far_taps(ctx, node, window):
        _convolve_apart(ctx, node, window, source)
        return
    tiles = _conv_tiles(ctx, node, window)
    if tiles is not None:
        lower_minimal(ctx, node, source, tiles, window.output, _gaps(window))
        return
    convolve(
        ctx, node, window, source, ctx.ref(node.inputs[1]),
        lambda end, total, channel: add_bias(ctx, node, end, channel, total),
    )  # fmt: skip


def convolve(
    ctx: Lowering,
    node: Node,
    window: Window,
    source: Ref,
    weight: Ref,
    finish: Callable[[Space, Expr, str], Expr],
) -> None:
    """The direct form on a padded input; `finish` gets a space, the sum there and its channel."""
    groups, channels = node.get("group", 1), weight.shape[1]
    filters = weight.shape[0] // groups
    outer = {"n": source.shape[0]} | grouped_channels(groups, filters)
    kept = outer | positions(window.output)
    reduced = ({"c": channels} if channels != 1 else {}) | taps(window.kernel)
    space = ctx.space(node, **kept, **reduced)
    channel, filter_ = channel_index(groups, channels, "c"), channel_index(groups, filters, "o")
    value = mul(
        space.load(source, "n", channel, *reads(window)),
        space.load(weight, filter_, "c" if channels != 1 else "0", *tap_indices(window.kernel)),
    )
    into = ["n", filter_, *positions(window.output)]
    ctx.accumulate(
        node, space, list(kept), value, "add", lambda end, t: finish(end, t, filter_), into=into
    )


def _convolve_apart(ctx: Lowering, node: Node, window: Window, source: Ref) -> None:
    """A product for each tap that meets the image, and their sum (`far_taps.py`)."""
    weights = ctx.graph.value(node.inputs[1])
    assert weights is not None
    groups, channels = node.get("group", 1), weights.shape[1]
    filters = weights.shape[0] // groups
    kept = {"n": source.shape[0]} | grouped_channels(groups, filters) | positions(window.output)
    channel, filter_ = channel_index(groups, channels, "c"), channel_index(groups, filters, "o")
    at = list(positions(window.output))
    into, result = ["n", filter_, *at], ctx.result(node)
    end, total = ctx.space(node, **kept), None
    by_tap = weights.reshape(*weights.shape[:2], -1)
    for k, tap in enumerate(list_taps(window, source.shape[2:], at)):
        inside = end.restricted(tap.inside).domain
        if inside.is_empty():
            continue
        space = ctx.space(node, **kept, c=channels)
        read = space.restricted(tap.where).load(source, "n", channel, *tap.reads)
        weight = ctx.constant(f"{node.inputs[1]}_tap", by_tap[:, :, k])
        value = mul(read, space.load(weight, filter_, "c"))
        part = ctx.array(f"{result.array}_tap", value.dtype, result.shape)
        meets = ["n", filter_, *(f"{y} + {start}" for y, start in zip(at, tap.first, strict=True))]
        accumulate_into(
            ctx, node, part, space, list(kept), value, "add", into=meets, where=tap.where
        )
        found: Expr = end.load(part, *into)
        if not end.domain.is_subset(inside):
            found = guarded(end.within(tap.inside), found, 0)
        total = found if total is None else add(total, found)
    done = total or constant(0, result.dtype)
    ctx.assign(node, end, result, into, cast(add_bias(ctx, node, end, filter_, done), result.dtype))


def _named(letters: str, rank: int) -> list[str]:
    """The field's letters for up to three dimensions, numbers beyond: y x, but z0 z1 z2 z3."""
    return list(letters[-rank:]) if 0 < rank <= 3 else [f"{letters[0]}{k}" for k in range(rank)]
