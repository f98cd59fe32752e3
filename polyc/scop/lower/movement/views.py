"""Operators that move elements and compute nothing: views wherever a formula says which element.

Views emit no statement: whoever reads the output reads through its map. Only Concat and Pad with a
constant write a new array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.checks import constant_ints, known_extents
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.shapes.movement import resolve_permutation
from polyc.graph.shapes.slicing import resolve_pads, resolve_slice
from polyc.poly.conditions import spell
from polyc.scop.expr import Const, Expr
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.elements.pointwise import operand
from polyc.scop.lower.functions import guarded
from polyc.scop.lower.movement.padding import Fill, Padding, has_most, padded, pads_input
from polyc.scop.lower.space import Ref
from polyc.types.sizes import Extent, Size, add_up, bounds, greatest

Scalar = int | float | bool


def view(formulas: Sequence[str], rank: int) -> str:
    """{ [i0, i1, …] -> [formulas] }, from a tensor of the given rank."""
    return f"{{ [{', '.join(f'i{k}' for k in range(rank))}] -> [{', '.join(formulas)}] }}"


def bind_view(ctx: Lowering, node: Node, formulas: Sequence[str], position: int = 0) -> None:
    """Output `position` is a view of input 0: its element [i0, i1, …] is input[formulas]."""
    shape = ctx.type(node.outputs[position]).extents
    seen = ctx.ref(node.inputs[0]).through(view(formulas, len(shape)), shape)
    ctx.bind(node.outputs[position], seen)


def optional_ints(ctx: Lowering, node: Node, position: int, role: str) -> tuple[int, ...] | None:
    """The constant list at an input, None where the input is absent."""
    if not ctx.has(node, position):
        return None
    return constant_ints(ctx.type(node.inputs[position]), role)


@lowers("Windows")
def lower_windows(ctx: Lowering, node: Node) -> None:
    """Y[a, w, k] = X[a, w * step + k]"""
    bind_view(ctx, node, ["i0", f"{int(node.attributes['step'])}*i1 + i2"])


@lowers("Identity")
def lower_identity(ctx: Lowering, node: Node) -> None:
    """Y is X."""
    ctx.bind(node.outputs[0], ctx.ref(node.inputs[0]))


@lowers("Transpose")
def lower_transpose(ctx: Lowering, node: Node) -> None:
    """perm (2, 0, 1):  { [i0, i1, i2] -> [i1, i2, i0] }"""
    order = resolve_permutation(node.get("perm"), ctx.type(node.inputs[0]).rank)
    bind_view(ctx, node, [f"i{order.index(k)}" for k in range(len(order))])


@lowers("Expand")
def lower_expand(ctx: Lowering, node: Node) -> None:
    """(3, 1) to (2, 3, 4):  { [i0, i1, i2] -> [i1, 0] }"""
    shape = ctx.type(node.inputs[0]).extents
    missing = ctx.type(node.outputs[0]).rank - len(shape)
    bind_view(ctx, node, ["0" if n == 1 else f"i{missing + k}" for k, n in enumerate(shape)])


@lowers("Tile")
def lower_tile(ctx: Lowering, node: Node) -> None:
    """(2, 3) to (2, 12):  { [i0, i1] -> [i0, i1 mod 3] }

    A number modulo a size is no formula: (2, n) to (2, 4*n) is (2, 4, n) under another shape.
    """
    ref, new = ctx.ref(node.inputs[0]), ctx.type(node.outputs[0]).extents
    repeats = known_extents(ctx.type(node.inputs[1]), "repeats")
    shape: list[int] = []
    formulas = []
    for n, m, repeat in zip(ref.shape, new, repeats, strict=True):
        if isinstance(n, Size) and n != m:
            shape.append(cast(int, repeat))
            formulas.append(f"i{len(shape)}")
            shape.append(n)
        else:
            formulas.append(f"i{len(shape)}" + ("" if n == m else f" mod {max(n, 1)}"))
            shape.append(m)
    seen = ref.through(view(formulas, len(shape)), shape)
    ctx.bind(node.outputs[0], seen if len(shape) == len(new) else ctx.regrouped(node, seen, new))


@lowers("Slice")
def lower_slice(ctx: Lowering, node: Node) -> None:
    """start 8, step -3:  { [i0] -> [8 - 3*i0] }"""
    starts, ends = (
        known_extents(ctx.type(node.inputs[k]), role) for k, role in ((1, "starts"), (2, "ends"))
    )
    axes, steps = optional_ints(ctx, node, 3, "axes"), optional_ints(ctx, node, 4, "steps")
    cuts = resolve_slice(ctx.type(node.inputs[0]).shape, starts, ends, axes, steps)
    bind_view(ctx, node, [f"{spell(cut.start)} + {cut.step}*i{k}" for k, cut in enumerate(cuts)])


@lowers("Split")
def lower_split(ctx: Lowering, node: Node) -> None:
    """The part that starts at 3 along axis 1:  { [i0, i1] -> [i0, i1 + 3] }"""
    shape = ctx.type(node.inputs[0]).extents
    axis = normalize_axis(node.get("axis", 0), len(shape))
    count = len(node.outputs)
    sizes: Sequence[Extent] = [-(-shape[axis] // max(count, 1))] * count  # the last may be shorter
    if ctx.has(node, 1):
        sizes = known_extents(ctx.type(node.inputs[1]), "split")
    start: Extent = 0
    for position, size in enumerate(sizes):
        if node.outputs[position]:
            bind_view(ctx, node, _moved(len(shape), axis, start), position)
        start += size


@lowers("Concat")
def lower_concat(ctx: Lowering, node: Node) -> None:
    """Each input is copied into its slice of the output."""
    inputs = [ctx.ref(name) for name in node.inputs]
    filled = [ref for ref in inputs if 0 not in ref.shape]
    if len(filled) == 1:
        ctx.bind(node.outputs[0], filled[0])
        return
    result = ctx.result(node)
    axis = normalize_axis(node.attributes["axis"], result.rank)
    start: Extent = 0
    for ref in filled:
        ctx.copy(node, ref, result, view(_moved(ref.rank, axis, start), ref.rank))
        start = add_up((start, ref.shape[axis]))


def _moved(rank: int, axis: int, start: Extent) -> list[str]:
    return [f"i{k} + {spell(start)}" if k == axis else f"i{k}" for k in range(rank)]


@lowers("DepthToSpace")
def lower_depth_to_space(ctx: Lowering, node: Node) -> None:
    """Y[n, c, b*y + p, b*x + q] = X[n, depth of (p, q, c) or of (c, p, q), y, x]"""
    block = node.attributes["blocksize"]
    channels = ctx.type(node.outputs[0]).extents[1]
    inside = f"{block}*(i2 mod {block}) + (i3 mod {block})"
    rest = [f"floor(i2/{block})", f"floor(i3/{block})"]
    if node.get("mode", "DCR") == "CRD":
        bind_view(ctx, node, ["i0", f"{block * block}*i1 + {inside}", *rest])
    elif isinstance(channels, Size):
        pieces = [
            ([f"{spell(k * channels)} + i1", *rest], f"{inside} = {k}") for k in range(block**2)
        ]
        _bind_pieces(ctx, node, pieces)
    else:
        bind_view(ctx, node, ["i0", f"{channels}*({inside}) + i1", *rest])


@lowers("SpaceToDepth")
def lower_space_to_depth(ctx: Lowering, node: Node) -> None:
    """Y[n, depth of (p, q, c) or of (c, p, q), y, x] = X[n, c, b*y + p, b*x + q]"""
    block = node.attributes["blocksize"]
    channels = ctx.type(node.inputs[0]).extents[1]
    if node.get("mode", "DCR") == "DCR" and isinstance(channels, Size):
        pieces = []
        for k in range(block**2):
            first, behind = spell(k * channels), spell((k + 1) * channels)
            place = [f"{block}*i2 + {k // block}", f"{block}*i3 + {k % block}"]
            pieces.append(([f"i1 - ({first})", *place], f"{first} <= i1 < {behind}"))
        _bind_pieces(ctx, node, pieces)
        return
    if node.get("mode", "DCR") == "DCR":
        channel, inside = f"i1 mod {max(channels, 1)}", f"floor(i1/{max(channels, 1)})"
    else:
        channel, inside = f"floor(i1/{block * block})", f"(i1 mod {block * block})"
    row, column = f"floor({inside}/{block})", f"({inside} mod {block})"
    bind_view(ctx, node, ["i0", channel, f"{block}*i2 + {row}", f"{block}*i3 + {column}"])


def _bind_pieces(ctx: Lowering, node: Node, pieces: Sequence[tuple[list[str], str]]) -> None:
    """The output as a view in pieces: where a condition holds, i0 and three more indices.

    So it is where channels are counted by blocks of a size: k * size + c is affine for each k.
    """
    views = "; ".join(
        f"[i0, i1, i2, i3] -> [i0, {', '.join(place)}] : {condition}" for place, condition in pieces
    )
    shape = ctx.type(node.outputs[0]).extents
    ctx.bind(node.outputs[0], ctx.ref(node.inputs[0]).through(f"{{ {views} }}", shape))


@lowers("Dropout")
def lower_dropout(ctx: Lowering, node: Node) -> None:
    """Nothing is dropped: Y is X, and the mask is true (training: `graph/expand/random.py`)."""
    lower_identity(ctx, node)
    if len(node.outputs) > 1 and node.outputs[1]:
        mask = ctx.type(node.outputs[1])
        ctx.bind(mask.name, ctx.filled(mask.name, True, mask.dtype, mask.extents))


def _known(ctx: Lowering, node: Node, position: int, absent: Scalar) -> Scalar | None:
    """The constant scalar at an optional input; None if it is computed at run time."""
    if not ctx.has(node, position):
        return absent
    value = ctx.graph.value(node.inputs[position])
    return None if value is None else value.item()


def _edge(x: str, extent: int, outside: int) -> str:
    """0 0 | 0 1 2 | 2 2"""
    return "0" if extent == 1 else f"max(0, min({x}, {spell(extent - 1)}))"


def _wrap(x: str, extent: int, outside: int) -> str:
    """1 2 | 0 1 2 | 0 1"""
    return f"({x}) mod {extent}"


def _wrap_once(k: int, rank: int, begin: int, extent: int) -> str:
    """As `_wrap`, where the extent is a size, which is no divisor: x + extent, x or x - extent."""
    n, x = spell(extent), f"i{k} - ({spell(begin)})"
    names = [f"i{j}" for j in range(rank)]
    pieces = []
    for shift, condition in ((f"+ {n}", "< 0"), ("", f">= 0 and {x} < {n}"), (f"- {n}", f">= {n}")):
        at = ", ".join([*names[:k], f"{x} {shift}", *names[k + 1 :]])
        pieces.append(f"[{', '.join(names)}] -> [{at}] : {x} {condition}")
    return f"{{ {'; '.join(pieces)} }}"


def _reflect(x: str, extent: int, outside: int) -> str:
    """2 1 | 0 1 2 | 1 0: a triangle wave, which is two absolute values where it turns once."""
    last = extent - 1
    if last == 0:
        return "0"
    turns_once = isinstance(last, Size) or outside <= last
    wave = f"max({x}, -({x}))" if turns_once else f"(({x}) mod {2 * last})"
    return f"min({wave}, {spell(2 * last)} - {wave})"


OUTSIDE: dict[str, Callable[[str, int, int], str]] = {
    "edge": _edge,
    "wrap": _wrap,
    "reflect": _reflect,
}
"""(position, may be outside; extent; how far outside at most) -> position inside."""


@lowers("Pad")
def lower_pad(ctx: Lowering, node: Node) -> None:
    """A frame around X: a constant is written into a new array, the other modes are views."""
    ref, (begin, end) = ctx.ref(node.inputs[0]), _pads(ctx, node)
    mode = node.get("mode", "constant")
    if mode == "constant":
        fill = _known(ctx, node, 2, absent=0)
        if fill is None or not has_most((*begin, *end)):
            _pad_by_element(ctx, node, ref, begin, fill)
        else:
            ctx.bind(node.outputs[0], padded(ctx, node, node.inputs[0], ref, begin, end, fill))
        return
    formulas = []
    for k, (n, b, e) in enumerate(zip(ref.shape, begin, end, strict=True)):
        inside = (bounds(b)[1] <= 0 and bounds(e)[1] <= 0) or n == 0
        at = f"i{k} - ({spell(b)})"
        if mode == "wrap" and isinstance(n, Size) and not inside:
            wider = (*ref.shape[:k], n + b + e, *ref.shape[k + 1 :])
            ref = ref.through(_wrap_once(k, ref.rank, b, n), wider)
            formulas.append(f"i{k}")
        else:
            formulas.append(at if inside else OUTSIDE[mode](at, n, cast(int, greatest(b, e))))
    shape = ctx.type(node.outputs[0]).extents
    ctx.bind(node.outputs[0], ref.through(view(formulas, ref.rank), shape))


@pads_input("Pad")
def find_padding(ctx: Lowering, node: Node) -> Padding:
    """What a Pad adds; nothing where it does not fill a frame with a known constant."""
    begin, end = _pads(ctx, node)
    fill = _known(ctx, node, 2, absent=0)
    frames = node.get("mode", "constant") == "constant" and has_most((*begin, *end))
    if fill is None or not frames:
        return Padding((0,) * len(begin), (0,) * len(end), 0)
    return Padding(begin, end, fill)


def _pads(ctx: Lowering, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pads = known_extents(ctx.type(node.inputs[1]), "pads")
    axes = optional_ints(ctx, node, 3, "axes")
    begin, end = resolve_pads(ctx.type(node.inputs[0]).rank, pads, axes)
    return cast("tuple[int, ...]", begin), cast("tuple[int, ...]", end)


def _pad_by_element(
    ctx: Lowering, node: Node, ref: Ref, begin: Sequence[int], fill: Fill | None
) -> None:
    """Y[i] = X[i - begin] where that exists, else a number, or the value of a tensor if None."""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    insides = [
        f"{spell(b)} <= i{k} < {spell(b + n)}"
        for k, (b, n) in enumerate(zip(begin, ref.shape, strict=True))
    ]
    element = space.load(ref, *(f"i{k} - ({spell(b)})" for k, b in enumerate(begin)))
    outside: Expr = (
        operand(ctx, space, node.inputs[2])
        if fill is None
        else Const(np.asarray(fill).astype(ref.dtype).item(), ref.dtype)
    )
    inside = space.within(" and ".join(insides) or "true")
    value = guarded(inside, element, outside) if 0 not in ref.shape else outside
    ctx.assign(node, space, result, space.iterators, value)
