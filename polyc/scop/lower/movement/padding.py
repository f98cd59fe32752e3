"""Padding: a tensor copied once into a frame, so that windows read it without conditions.

    x[H, W]  ->  p[b0 + H + e0, b1 + W + e1]     frame = fill,  p[y + b0, x + b1] = x[y, x]

One padded array serves every reader of a tensor that pads it with the same value: it is as large as
the most demanding of them needs, and the others read a shifted view of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.ir import Node
from polyc.graph.shapes.checks import FIX_SIZES
from polyc.poly.conditions import spell
from polyc.scop.expr import Const
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.space import Ref
from polyc.types.sizes import Extent, bounds

Fill = int | float | bool


@dataclass(frozen=True)
class Padding:
    """Elements to add before and after each dimension (negative: to drop), and their value.

    Where that differs from call to call, a frame has room for the most, and `begin` may be a size.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    fill: Fill


Request = Callable[[Lowering, Node], Padding]
PADDINGS: dict[str, Request] = {}


def pads_input(*operators: str) -> Callable[[Request], Request]:
    """Register how nodes of these operators pad their input 0, so that they can share the array."""

    def register(function: Request) -> Request:
        for operator in operators:
            PADDINGS[operator] = function
        return function

    return register


def has_most(pads: Sequence[Extent]) -> bool:
    """Whether it is known how large a frame may be."""
    return not any(math.isinf(bounds(extent)[1]) for extent in pads)


def most_of(extent: Extent) -> int:
    """The largest value of what differs from call to call by a few."""
    most = bounds(extent)[1]
    if math.isinf(most):
        raise NotFixed(f"the padding {extent} has no bound", FIX_SIZES)
    return int(most)


def padded(
    ctx: Lowering,
    node: Node,
    tensor: str,
    ref: Ref,
    begin: Sequence[int],
    end: Sequence[int],
    fill: Fill,
) -> Ref:
    """The tensor with `begin[k]` elements before and `end[k]` after its dimension k.

    Element i of the result is `ref[i - begin]` where that exists and `fill` elsewhere. Negative
    numbers crop. Nothing is copied where nothing is added.
    """
    shape = tuple(b + n + e for b, n, e in zip(begin, ref.shape, end, strict=True))
    before, after = ([max(0, most_of(p)) for p in pads] for pads in (begin, end))
    if not any((*before, *after)):
        return _shifted(ref, [-b for b in begin], shape)
    kind = _exact(ref, fill)
    most_before, most_after = _largest(ctx, tensor, ref, kind)
    if any(p > q for p, q in zip((*before, *after), (*most_before, *most_after), strict=True)):
        # asked for by a reader that is not in the table: a frame of its own
        frame = _write_frame(ctx, node, ref, before, after, fill)
        return _shifted(frame, [p - b for p, b in zip(before, begin, strict=True)], shape)
    # No tensor of the graph has such a name; what one branch writes no other one reads.
    name = f"\0{tensor} padded with {kind} in {ctx.branches}"
    shared = _find(ctx, name)
    if shared is None:
        shared = _write_frame(ctx, node, ref, most_before, most_after, fill)
        ctx.bind(name, shared)
    return _shifted(shared, [p - b for p, b in zip(most_before, begin, strict=True)], shape)


def _largest(ctx: Lowering, tensor: str, ref: Ref, kind: str) -> tuple[list[int], list[int]]:
    """The most that any reader in this branch adds around each dimension of a tensor, of one fill.

    What a reader in another branch adds may be defined in calls alone that take that one.
    """
    asked = [
        padding
        for reader in ctx.graph.consumers.get(tensor, ())
        if reader.inputs[0] == tensor and reader.op in PADDINGS
        if ctx.inside[reader.outputs] == ctx.taken
        if _exact(ref, (padding := PADDINGS[reader.op](ctx, reader)).fill) == kind
    ]
    before = [max((0, *(most_of(p.begin[k]) for p in asked))) for k in range(ref.rank)]
    after = [max((0, *(most_of(p.end[k]) for p in asked))) for k in range(ref.rank)]
    return before, after


def _exact(ref: Ref, fill: Fill) -> str:
    """Equal text for equal values, also for NaN and for -0.0, which is not 0.0."""
    return repr(np.asarray(fill).astype(ref.dtype).item())


def _find(ctx: Lowering, name: str) -> Ref | None:
    try:
        return ctx.ref(name)
    except KeyError:  # not bound yet
        return None


def _shifted(ref: Ref, offsets: Sequence[int], shape: Sequence[int]) -> Ref:
    """{ [i] -> [i + offset] }"""
    if all(offset == 0 for offset in offsets) and tuple(shape) == ref.shape:
        return ref
    old = ", ".join(f"i{k}" for k in range(len(shape)))
    moved = ", ".join(f"i{k} + {spell(offset)}" for k, offset in enumerate(offsets))
    return ref.through(f"{{ [{old}] -> [{moved}] }}", shape)


def _write_frame(
    ctx: Lowering, node: Node, ref: Ref, before: Sequence[int], after: Sequence[int], fill: Fill
) -> Ref:
    """A new array that holds the tensor inside a frame of `fill`, written box by box.

    The slab before (after) dimension k spans the interior of the dimensions left of k, and the
    whole of those right of k, so that the slabs cover the frame without overlap.
    """
    whole = [b + n + e for b, n, e in zip(before, ref.shape, after, strict=True)]
    frame = ctx.array(f"{ref.array}_padded", ref.dtype, whole)
    if node.op != "Pad":  # a reader's frame is told apart from what the reader computes
        node = replace(node, name=f"{node.name}.pad")
    value = Const(np.asarray(fill).astype(ref.dtype).item(), ref.dtype)
    for k, extent in enumerate(ref.shape):
        for start, thickness in ((0, before[k]), (before[k] + extent, after[k])):
            space = ctx.grid(node, [*ref.shape[:k], thickness, *whole[k + 1 :]])
            offsets = [*before[:k], start, *[0] * (ref.rank - k - 1)]
            at = [f"i{j} + {spell(offset)}" for j, offset in enumerate(offsets)]
            if thickness:
                ctx.assign(node, space, frame, at, value)
    ctx.copy(node, ref, _shifted(frame, before, ref.shape))
    return frame
