"""Taps of a window that read padding at every position add nothing, and are left out.

    y = Conv(x[1, 8, 1, 1], w[8, 8, 3, 3]; pads=1)   ->   y = Conv(x, w[:, :, 1:2, 1:2])
    y = AveragePool(x[1, 8, 7, 7]; kernel_shape=[64, 64], ceil_mode=1)
                                                     ->   y = AveragePool(x; kernel_shape=[7, 7])

Networks that are given smaller images than they were made for have such windows, and those whose
dilated windows are larger than what is left of an image.

At position y, tap r reads x[s*y + d*r - b]. Positions are 0 … n-1, so that tap r reads an element
somewhere only if it does not stay before the first one at the last position, or behind the last one
at position 0:

    s*(n-1) + d*r - b >= 0   and   d*r - b < extent of x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.shapes.window import Window, resolve_window
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule

_WINDOWS = ("Conv", "AveragePool", "MaxPool", "LpPool")


def drop_idle_taps(graph: Graph) -> Rewritten:
    """Smaller windows, where the taps at their ends read nothing but padding.

    Of a Conv that is so if its weights are constant, and finite: 0 * inf is NaN. A mean that counts
    pads counts them as before.
    """
    return apply_rule(graph, "idle_taps", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op not in _WINDOWS or node.domain:
        return None
    spatial = scope.tensor(node.inputs[0]).shape[2:]
    sizes = [n for n in spatial if isinstance(n, int)]
    weight = scope.value(node.inputs[1]) if node.op == "Conv" else None
    if len(sizes) < len(spatial) or (node.op == "Conv" and weight is None):
        return None
    kernel = node.attributes["kernel_shape"] if weight is None else weight.shape[2:]
    window = resolve_window(node, sizes, kernel)
    counts_pads = node.op == "AveragePool" and bool(node.get("count_include_pad", 0))
    spans = [_find_span(window, k, n, counts_pads) for k, n in enumerate(sizes)]
    if all(one.taps == whole for one, whole in zip(spans, kernel, strict=True)):
        return None
    if any(one.taps < 1 for one in spans):  # an image without elements
        return None
    if weight is not None and not np.isfinite(weight).all():
        return None
    attributes = {k: v for k, v in node.attributes.items() if k not in ("auto_pad", "ceil_mode")}
    attributes["kernel_shape"] = tuple(one.taps for one in spans)
    attributes["pads"] = (*(one.begin for one in spans), *(one.end for one in spans))
    smaller = replace(node, attributes=attributes)
    # Pads are never negative: of dilated windows one more position may fit.
    if resolve_window(smaller, sizes, attributes["kernel_shape"]).output != window.output:
        return None
    text = f"{node.op} '{node.name}': {_spell(kernel)} taps of which only "
    text += f"{_spell(attributes['kernel_shape'])} ever read an element"
    if weight is None:
        return Change(text, (smaller,))
    read = tuple(slice(one.first, one.first + one.taps) for one in spans)
    kept = scope.constant(node.inputs[1], weight[:, :, *read])
    inputs = (node.inputs[0], kept.name, *node.inputs[2:])
    return Change(text, (replace(smaller, inputs=inputs),), (kept,))


@dataclass(frozen=True)
class _Span:
    """Taps from `first` on that read an element at some position, and the pads that they need."""

    first: int
    taps: int
    begin: int
    end: int


def _find_span(window: Window, k: int, extent: int, counts_pads: bool) -> _Span:
    """The taps along dimension k; where pads count as elements, those that read a pad as well."""
    stride, dilation, begin = window.strides[k], window.dilations[k], window.pads_begin[k]
    last_position = stride * (window.output[k] - 1)
    if counts_pads:
        first, behind = 0, extent + window.pads_end[k]
    else:
        first, behind = max(0, -((last_position - begin) // dilation)), extent
        first = min(first, begin // dilation)  # a tap too many rather than a negative pad
    last = min(window.kernel[k] - 1, (behind - 1 + begin) // dilation)
    taps, left = last - first + 1, begin - dilation * first
    reach = last_position + dilation * (taps - 1) + 1
    end = window.pads_end[k] if counts_pads else max(0, reach - left - extent)
    return _Span(first, taps, left, end)


def _spell(counts: Sequence[int]) -> str:
    return " x ".join(map(str, counts))
