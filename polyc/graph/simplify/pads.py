"""Let a window operator do the padding that a Pad before it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, is_filled
from polyc.types.element_types import is_float

_WINDOWS = ("Conv", "AveragePool", "MaxPool")


def merge_pads(graph: Graph) -> Rewritten:
    """Merge a constant Pad into the `pads` of the Conv, AveragePool or MaxPool that reads it.

    y = Conv(Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), W)   ->   y = Conv(x, W; pads=[1, 1, 1, 1])

    The Pad must add, to spatial dimensions only, what the operator itself pads with: 0.0 for Conv
    and for AveragePool (which then counts the pads, as it did before), and for MaxPool what is
    below every value: -inf, or an integer type's lowest. The lowest finite float is above -inf.
    """
    return apply_rule(graph, "pads", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op not in _WINDOWS or node.domain:
        return None
    pad = scope.producer(node.inputs[0])
    if pad is None or pad.op != "Pad" or pad.get("mode", "constant") != "constant":
        return None
    added = _spatial_pads(scope, pad)
    own = _own_pads(node, len(added) // 2) if added is not None else None
    if added is None or own is None:
        return None
    merged = tuple(a + b for a, b in zip(added, own, strict=True))
    if not _is_own_value(scope, node, pad) or not _fits(scope, node, own, merged):
        return None
    attributes = {k: v for k, v in node.attributes.items() if k != "auto_pad"}
    attributes["pads"] = merged
    if node.op == "AveragePool":
        attributes["count_include_pad"] = 1
    inputs = (pad.inputs[0], *node.inputs[1:])
    text = f"Pad '{pad.name}' merged into {node.op} '{node.name}'"
    return Change(text, (replace(node, inputs=inputs, attributes=attributes),))


def _spatial_pads(scope: Scope, pad: Node) -> tuple[int, ...] | None:
    """[begin..., end...] of the dimensions after batch and channels; None for any other Pad."""
    amounts = scope.value(pad.inputs[1])
    rank = scope.tensor(pad.inputs[0]).rank
    chosen = pad.inputs[3] if len(pad.inputs) > 3 else ""
    axes = scope.value(chosen) if chosen else np.arange(rank)
    if amounts is None or axes is None or rank < 3 or (amounts < 0).any():
        return None
    full = np.zeros((2, rank), np.int64)
    full[:, axes] = amounts.reshape(2, -1)
    return None if full[:, :2].any() else tuple(int(p) for p in full[:, 2:].flat)


def _own_pads(node: Node, count: int) -> tuple[int, ...] | None:
    """The pads that the node has already; None where they follow from the input's shape."""
    if node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    explicit = node.get("pads") if node.get("auto_pad", "NOTSET") == "NOTSET" else None
    return tuple(int(p) for p in explicit) if explicit else (0,) * (2 * count)


def _is_own_value(scope: Scope, node: Node, pad: Node) -> bool:
    """Whether the Pad fills with what the window operator takes beyond the border."""
    name = pad.inputs[2] if len(pad.inputs) > 2 else ""
    dtype = scope.tensor(pad.inputs[0]).dtype
    value = scope.value(name) if name else np.zeros((), dtype)
    if node.op != "MaxPool":
        return is_filled(value, 0)
    if is_float(dtype):
        return is_filled(value, -np.inf)
    return dtype.kind in "iu" and is_filled(value, np.iinfo(dtype).min)


def _fits(scope: Scope, node: Node, own: tuple[int, ...], merged: tuple[int, ...]) -> bool:
    """Whether the node computes on `merged` pads what it computed on the padded tensor."""
    if node.op == "Conv":
        return True
    # Rounding up treats a window that begins in the padding differently from one in the data.
    if node.get("ceil_mode", 0):
        return False
    if node.op == "AveragePool":
        return bool(node.get("count_include_pad", 0)) or not any(own)
    # A position in the padded tensor is no position in x, and a window needs one value of x.
    if len(node.outputs) > 1 and scope.is_read(node.outputs[1]):
        return False
    kernel = tuple(node.get("kernel_shape"))
    dense = all(d == 1 for d in node.get("dilations", ()))
    return dense and all(p < k for p, k in zip(merged, kernel * 2, strict=True))
