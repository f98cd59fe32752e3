"""What hands channels on: numbers that are changed one by one, pooled, moved, joined."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from polyc.errors import PolycError
from polyc.graph.inference.evaluate import evaluate_node
from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.shapes.pointwise import BROADCASTING, UNARY
from polyc.graph.zero_channels.atoms import Channels
from polyc.graph.zero_channels.products import handle_product, is_padded
from polyc.graph.zero_channels.walk import Count, Cut, Handler, Walk
from polyc.types.element_types import is_float
from polyc.types.sizes import bounds

POINTWISE = (*UNARY.split(), *BROADCASTING.split(), "Cast", "Clip", "PRelu")


def handle_pointwise(walk: Walk, place: int, node: Node) -> bool:
    """y[…, c, …] = f(x[…, c, …], …), where operands may have one number for all channels."""
    y = walk.tensor(node.outputs[0])
    named = [name for name in node.inputs if name]
    floats = all(is_float(walk.tensor(name).dtype) for name in (*named, y.name))
    leads = [name for name in named if name in walk.channels]
    if not leads or not floats:
        return False
    axis = walk.channels[leads[0]].axis + y.rank - walk.tensor(leads[0]).rank
    count = len(walk.channels[leads[0]].atoms)
    if y.shape[axis] != count or count == 1:
        return False
    joined: list[Channels] = []
    parts: list[np.ndarray | None] = []
    known = np.ones(count, bool)
    for operand, name in enumerate(node.inputs):
        if not name:
            parts.append(None)
            continue
        tensor, own = walk.tensor(name), axis + walk.tensor(name).rank - y.rank
        extent = tensor.shape[own] if own >= 0 else 1
        if extent not in (1, count):
            return False
        if tensor.value is not None:
            if extent == count:
                walk.cuts.append(Cut(place, operand, own, walk.channels[leads[0]].atoms))
            parts.append(_as_vector(tensor.value, own))
            known &= parts[-1] is not None
        elif extent == 1:
            walk.need_all(name)
            parts.append(None)
            known[:] = False
        else:
            channels = walk.at(name, own)
            assert channels is not None, "its extent is a number"
            joined.append(channels)
            known &= channels.known
            shape = [1] * tensor.rank
            shape[own] = count
            parts.append(np.where(channels.known, channels.values, 0).reshape(shape))
    for other in joined[1:]:
        walk.atoms.join(joined[0].atoms, other.atoms)
    if node.op == "Gelu":  # which onnx's evaluator lacks; of zero it gives zero
        walk.channels[y.name] = joined[0].where(known & (joined[0].values == 0))
        return True
    values = _evaluate(walk, node, parts, count) if known.any() else None
    made = Channels(axis, joined[0].atoms, np.zeros(count, bool), np.zeros(count))
    made = made if values is None else made.where(known, values)
    if node.op == "Mul":  # what gates a channel of zeros
        zero = np.any([part.known & (part.values == 0) for part in joined], axis=0)
        made = made.where(made.known | zero, np.where(zero, 0, made.values))
    walk.channels[y.name] = made
    return True


def _as_vector(value: np.ndarray, axis: int) -> np.ndarray | None:
    """A constant that varies along channels alone; None for any other."""
    extents = [n for d, n in enumerate(value.shape) if d != axis]
    return value if all(n == 1 for n in extents) else None


def _evaluate(
    walk: Walk, node: Node, parts: list[np.ndarray | None], count: int
) -> np.ndarray | None:
    """What the node gives for one number a channel; None if that cannot be said."""
    if any(p is None for p, name in zip(parts, node.inputs, strict=True) if name):
        return None
    types = [walk.tensor(name).dtype if name else None for name in node.inputs]
    arrays = [None if p is None else p.astype(t) for p, t in zip(parts, types, strict=True)]
    try:
        (result,) = evaluate_node(node, arrays)
    except PolycError:
        return None
    return result.astype(np.float64).ravel() if result.size == count else None


def handle_pool(walk: Walk, place: int, node: Node) -> bool:
    """Windows on each channel by itself."""
    x = walk.channels.get(node.inputs[0])
    if x is None or x.axis != 1 or len([name for name in node.outputs if name]) > 1:
        return False
    known, rank = x.known, walk.tensor(node.inputs[0]).rank
    if node.op.startswith("Global"):
        known = known & _has_elements(walk, node.inputs[0], range(2, rank))
    elif node.get("ceil_mode", 0) or any(d != 1 for d in node.get("dilations", ())):
        known = known & False  # a window may have no element of x
    elif node.op == "AveragePool" and is_padded(node):
        known = known & (x.values == 0)
    walk.channels[node.outputs[0]] = x.where(known)
    return True


def handle_reduction(walk: Walk, place: int, node: Node) -> bool:
    """The mean, the sum, or the extremes of each channel."""
    x, given = walk.channels.get(node.inputs[0]), node.inputs[1:2]
    if x is None:
        return False
    rank = walk.tensor(node.inputs[0]).rank
    chosen = walk.value(given[0]) if given and given[0] else None
    if chosen is None or chosen.size == 0:
        return False  # over all, or over what is not known
    axes = {normalize_axis(int(a), rank) for a in chosen.ravel()}
    if x.axis in axes:
        return False
    known = x.known & _has_elements(walk, node.inputs[0], axes)
    known = known & (x.values == 0) if node.op == "ReduceSum" else known
    axis = x.axis if node.get("keepdims", 1) else x.axis - sum(a < x.axis for a in axes)
    walk.channels[node.outputs[0]] = x.moved(axis).where(known)
    return True


def _has_elements(walk: Walk, name: str, axes: Iterable[int]) -> bool:
    """Whether there is something along each of these dimensions, whatever their sizes are."""
    shape = walk.tensor(name).shape
    return all(bounds(shape[a])[0] >= 1 for a in axes)


def handle_reshape(walk: Walk, place: int, node: Node) -> bool:
    """[…, c, h, w] -> […, c h w], or back to one of them behind another: channels in a row.

    What stands in front of the channels, and how often each is repeated, must be known.
    """
    x = walk.channels.get(node.inputs[0])
    if x is None or (node.op == "Squeeze" and not "".join(node.inputs[1:])):
        return False  # without axes, one channel that is left would go as well
    before, after = walk.tensor(node.inputs[0]).shape, walk.tensor(node.outputs[0]).shape
    axis, count = x.axis, len(x.atoms)
    if len(after) <= axis or before[:axis] != after[:axis]:
        return False
    rest = before[axis + 1 :], after[axis:]
    if not all(isinstance(d, int) for part in rest for d in part):
        return False
    extents = [int(d) for d in after[axis:] if isinstance(d, int)]
    if extents[0] % count or math.prod(extents) == 0:
        return False
    made = x.moved(axis, extents[0] // count)
    if node.op == "Reshape":
        target = walk.value(node.inputs[1])
        if target is None:
            return False
        if target[axis] > 0:
            walk.counts.append(Count(place, "", 1, axis, made.atoms))
        elif target[axis] == 0 and extents[0] != count:
            return False
    walk.channels[node.outputs[0]] = made
    return True


def handle_transpose(walk: Walk, place: int, node: Node) -> bool:
    x, rank = walk.channels.get(node.inputs[0]), walk.tensor(node.inputs[0]).rank
    if x is None:
        return False
    order = tuple(node.get("perm") or range(rank)[::-1])
    walk.channels[node.outputs[0]] = x.moved(order.index(x.axis))
    return True


def handle_concat(walk: Walk, place: int, node: Node) -> bool:
    """Channels behind each other, or side by side along another dimension."""
    known = [walk.channels[name] for name in node.inputs if name in walk.channels]
    if not known:
        return False
    y = walk.tensor(node.outputs[0])
    along, axis = normalize_axis(int(node.attributes["axis"]), y.rank), known[0].axis
    found = [walk.at(name, axis) for name in node.inputs]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return False
    if along == axis:
        arrays = zip(*((p.atoms, p.known, p.values) for p in parts), strict=True)
        walk.channels[y.name] = Channels(axis, *(np.concatenate(a) for a in arrays))
        return True
    for part in parts[1:]:
        walk.atoms.join(parts[0].atoms, part.atoms)
    agree = np.all([p.known & (p.values == parts[0].values) for p in parts], axis=0)
    walk.channels[y.name] = parts[0].where(agree)
    return True


def handle_split(walk: Walk, place: int, node: Node) -> bool:
    """Channels that are dealt out to several results."""
    x, rank = walk.channels.get(node.inputs[0]), walk.tensor(node.inputs[0]).rank
    if x is None:
        return False
    along = normalize_axis(int(node.get("axis", 0)), rank)
    if along != x.axis:
        walk.channels.update((name, x) for name in node.outputs if name)
        return True
    sizes = walk.value(node.inputs[1]) if "".join(node.inputs[1:]) else None
    if sizes is None or 0 in sizes:
        return False
    ends = np.cumsum(sizes)
    for entry, (name, end) in enumerate(zip(node.outputs, ends, strict=True)):
        own = slice(end - sizes[entry], end)
        part = Channels(x.axis, x.atoms[own], x.known[own], x.values[own])
        walk.counts.append(Count(place, "", 1, entry, part.atoms))
        walk.parts.append(part)
        if name:
            walk.channels[name] = part
    return True


def handle_resize(walk: Walk, place: int, node: Node) -> bool:
    """An image that becomes larger or smaller, each channel by itself, by a known scale."""
    x = walk.channels.get(node.inputs[0])
    roi, scales, sizes = (*node.inputs[1:], "", "", "")[:3]
    factors = walk.value(scales) if scales else None
    if x is None or roi or sizes or factors is None or node.get("axes") is not None:
        return False
    if factors[x.axis] != 1 or node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    if node.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return False
    walk.channels[node.outputs[0]] = x.where(x.known & (x.values == 0))
    return True


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), handle_product),
    **dict.fromkeys(POINTWISE, handle_pointwise),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), handle_pool),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), handle_reduction),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), handle_reshape),
    "Concat": handle_concat,
    "Resize": handle_resize,
    "Split": handle_split,
    "Transpose": handle_transpose,
}
