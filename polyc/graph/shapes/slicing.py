"""Cutting, joining and repeating along dimensions: Slice, Split, Concat, Pad, Tile, Trilu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyc.graph.ir import Dim, Node, Shape
from polyc.graph.shapes.checks import (
    FIX_SIZES,
    are_equal,
    constant_ints,
    given,
    known_extents,
    require,
    require_at_least,
    require_at_most,
    require_rank,
)
from polyc.graph.shapes.dims import normalize_axes, normalize_axis, require_same
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.types.sizes import Size, add_up, greatest, least

# The standard recommends INT_MAX for "to the end"; exporters write it in 32 or in 64 bits. tf2onnx
# writes 10^9, which is as far in all calls of a model that is given no more than that.
_MOST, _FAR = 2**31 - 1, 10**9


@dataclass(frozen=True)
class Cut:
    """A Slice of one dimension: output position i reads start + i * step, 0 <= i < extent."""

    start: Dim
    step: int
    extent: Dim


def resolve_slice(
    shape: Shape,
    starts: Sequence[Dim],
    ends: Sequence[Dim],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> tuple[Cut, ...]:
    """What a Slice reads in each dimension, with negative positions and clamping resolved.

        (10, 4), starts (-2,), ends (-100,), axes (0,), steps (-3,) -> Cut(8, -3, 3), Cut(0, 1, 4)

    Raises RuleBroken for lists that do not fit, NotFixed where sizes leave open what is cut.
    """
    count = len(starts)
    listed = range(count) if axes is None else axes
    strides = (1,) * count if steps is None else steps
    for name, values in {"ends": ends, "axes": listed, "steps": strides}.items():
        way_out = "give one entry for each start"
        require(len(values) == count, f"length of {name}", count, len(values), way_out)
    cuts = [Cut(0, 1, d) for d in shape]
    resolved = normalize_axes(listed, len(shape))
    for axis, start, end, step in zip(resolved, starts, ends, strides, strict=True):
        require(step != 0, "steps", "no zero", tuple(strides), "use a positive or negative step")
        if (start, step) == (0, 1) and isinstance(end, int) and end >= _MOST:
            continue
        cuts[axis] = _cut(shape[axis], start, end, step)
    return tuple(cuts)


def _cut(extent: Dim, start: Dim, end: Dim, step: int) -> Cut:
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    start = least(_place(start, extent, 0, extent), high)
    end = _place(end, extent, low, high)
    apart = start - end if step > 0 else end - start
    return Cut(greatest(start, 0), step, greatest(-(apart // abs(step)), 0))


def _place(position: Dim, extent: Dim, low: Dim, high: Dim) -> Dim:
    """A position that may count from the end, between the first and the last that there may be."""
    if isinstance(position, int) and abs(position) >= (_FAR if isinstance(extent, Size) else _MOST):
        if abs(position) < _MOST:
            require_at_most(extent, abs(position), "dimension that ends there", FIX_SIZES)
        return low if position < 0 else high
    counted = position + extent if position < 0 else position
    return least(greatest(counted, low), high)


def resolve_split(extent: Dim, outputs: int, sizes: Sequence[Dim] | None) -> tuple[Dim, ...]:
    """The extents that a Split makes: 7 in 3 -> (3, 3, 1), or the sizes given."""
    way_out = "correct split, or the number of outputs"
    result: list[Dim]
    if sizes is None:
        chunk = -(-extent // outputs)
        result = [*(chunk for _ in range(outputs - 1)), extent - chunk * (outputs - 1)]
    else:
        result = [*sizes]
    require(len(result) == outputs, "number of outputs of Split", len(result), outputs, way_out)
    total: Dim = sum(result)
    require(are_equal(total, extent), "sum of the sizes of the split", extent, total, way_out)
    for size in result:
        require_at_least(size, 0, "sizes of the split", result, way_out)
    return tuple(result)


def resolve_pads(
    rank: int, pads: Sequence[Dim], axes: Sequence[int] | None = None
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Elements added before and after each dimension; a negative number cuts off.

    rank 3, pads (1, 2, 3, 4), axes (0, -1) -> (1, 0, 2), (3, 0, 4)
    """
    listed = range(rank) if axes is None else axes
    resolved = normalize_axes(listed, rank)
    count = len(resolved)
    way_out = "give a begin and an end for each axis"
    require(len(pads) == 2 * count, "length of pads", 2 * count, len(pads), way_out)
    begin = dict(zip(resolved, pads[:count], strict=True))
    end = dict(zip(resolved, pads[count:], strict=True))
    return tuple(begin.get(i, 0) for i in range(rank)), tuple(end.get(i, 0) for i in range(rank))


@shape_rule("Slice")
def infer_slice(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(10, 4), starts (2,), ends (8,), steps (2,) -> (3, 4)"""
    data = given(inputs[0])
    starts = known_extents(given(inputs[1]), "starts")
    ends = known_extents(given(inputs[2]), "ends")
    axes = None if inputs[3] is None else constant_ints(inputs[3], "axes")
    steps = None if inputs[4] is None else constant_ints(inputs[4], "steps")
    return (tuple(c.extent for c in resolve_slice(data.shape, starts, ends, axes, steps)),)


@shape_rule("Split")
def infer_split(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(7, 4), num_outputs 3 -> (3, 4), (3, 4), (1, 4)"""
    data, listed = given(inputs[0]), inputs[1]
    stated = node.get("num_outputs")
    one = (listed is None) != (stated is None)
    way_out = "give exactly one of the two"
    require(one, "input split and attribute num_outputs", "one", "both or none", way_out)
    if stated is not None:
        count = len(node.outputs)
        require(stated == count, "num_outputs", count, stated, "list that many outputs")
    axis = normalize_axis(int(node.get("axis", 0)), data.rank)
    sizes = None if listed is None else known_extents(listed, "split")
    parts = resolve_split(data.shape[axis], len(node.outputs), sizes)
    return tuple((*data.shape[:axis], p, *data.shape[axis + 1 :]) for p in parts)


@shape_rule("Concat")
def infer_concat(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(2, 4), (3, 4), axis 0 -> (5, 4)"""
    tensors = [given(t) for t in inputs]
    first = tensors[0]
    axis = normalize_axis(int(node.attributes["axis"]), first.rank)
    for tensor in tensors[1:]:
        require_rank(tensor, f"input {tensor.name!r}", first.rank, first.rank)
        for i in range(first.rank):
            if i != axis:
                rule = f"dimension {i} of {tensor.name!r} must be that of {first.name!r}"
                require_same(first.shape[i], tensor.shape[i], rule, "concatenate another axis")
    if len(tensors) == 1:
        return (first.shape,)
    total = add_up(t.shape[axis] for t in tensors)
    return ((*first.shape[:axis], total, *first.shape[axis + 1 :]),)


@shape_rule("Pad")
def infer_pad(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(3, 4), pads (1, 0, 2, -1) -> (6, 3)"""
    data, pads = given(inputs[0]), known_extents(given(inputs[1]), "pads")
    mode = node.get("mode", "constant")
    axes = None if inputs[3] is None else constant_ints(inputs[3], "axes")
    begin, end = resolve_pads(data.rank, pads, axes)
    shape: list[Dim] = []
    for axis, (dim, before, after) in enumerate(zip(data.shape, begin, end, strict=True)):
        rule, result = f"extent of padded dimension {axis}", dim + before + after
        if before != 0 or after != 0:
            require_at_least(result, 0, rule, result, "cut off less")
            if mode != "constant" and result != 0:
                require_at_least(dim, 1, f"{rule} for mode {mode}", dim, "use mode constant")
            if mode in ("reflect", "wrap") and isinstance(dim, Size):  # which turns once
                left = 1 if mode == "reflect" else 0
                require_at_least(dim - greatest(before, after), left, rule, dim, "pad less")
        shape.append(result)
    return (tuple(shape),)


@shape_rule("Tile")
def infer_tile(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(2, 3), repeats (1, 4) -> (2, 12)"""
    data, repeats = given(inputs[0]), known_extents(given(inputs[1]), "repeats")
    way_out = "give one count per dimension"
    require(len(repeats) == data.rank, "length of repeats", data.rank, len(repeats), way_out)
    require(all(r >= 0 for r in repeats), "repeats", "no negative count", repeats, way_out)
    pairs = zip(data.shape, repeats, strict=True)
    return (tuple(d * r for d, r in pairs),)


@shape_rule("Trilu")
def infer_trilu(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(…, m, n) -> (…, m, n)"""
    data = given(inputs[0])
    require_rank(data, "input", least=2)
    return (data.shape,)
