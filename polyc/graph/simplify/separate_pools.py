"""The maximum of a window is that of its rows' maxima: a pool for each dimension, in turn.

    y[h, w] = max of x[h + r, w + q]   ->   t[h, w] = max of x[h, w + q]
                                            y[h, w] = max of t[h + r, w]

13 x 13 elements are 26 comparisons so, and not 169. The maximum is the same, whatever the order; of
two zeros it may be the one of the other sign.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.sizes import Size

LEAST_GAIN, LEAST_GAIN_OPEN = 1.6, 1.5
"""How many times as many comparisons a window by itself takes, at least, for the image to be walked
twice. Where sizes are open, no row is read once for all windows that it is in, and the gain is more
(`mapping/cpu/diagonal.py`).
"""


def separate_pools(graph: Graph) -> Rewritten:
    """Pools of large windows as pools along one dimension each.

    y = MaxPool(x; kernel_shape=[5, 5])   ->   y = MaxPool(MaxPool(x; [1, 5]); [5, 1])
    """
    return apply_rule(graph, "separate_pools", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op != "MaxPool" or node.domain or any(map(scope.is_read, node.outputs[1:])):
        return None
    kernel = tuple(node.attributes["kernel_shape"])
    strides = node.get("strides") or (1,) * len(kernel)
    wide = [k for k, (n, s) in enumerate(zip(kernel, strides, strict=True)) if n > 1 or s > 1]
    result = scope.tensor(node.outputs[0])
    # What is taken along a dimension is taken of each row that is left, which later ones thin out.
    apart = sum(kernel[k] * prod(strides[j] for j in wide if j < k) for k in wide)
    is_open = any(isinstance(n, Size) for n in result.shape[2:])
    least = LEAST_GAIN_OPEN if is_open else LEAST_GAIN
    if len(wide) < 2 or prod(kernel) < least * apart:
        return None
    shape, name = list(scope.tensor(node.inputs[0]).shape), node.inputs[0]
    nodes: list[Node] = []
    between: list[Tensor] = []
    for k in reversed(wide):  # rows first, in which lanes move
        shape[k + 2] = result.shape[k + 2]
        target, part = result, node
        if k != wide[0]:
            target = scope.result(f"{result.name}_along_{k}", result.dtype, tuple(shape))
            part = replace(node, name=target.name)
            between.append(target)
        nodes.append(_along(part, k, name, target.name))
        name = target.name
    text = f"MaxPool '{node.name}' of {prod(kernel)} elements taken along each dimension"
    return Change(text, tuple(nodes), tuple(between))


def _along(node: Node, k: int, source: str, target: str) -> Node:
    """The pool along one spatial dimension."""
    rank = len(node.attributes["kernel_shape"])
    attributes = {key: v for key, v in node.attributes.items() if key != "storage_order"}
    attributes["kernel_shape"] = _only(k, node.attributes["kernel_shape"], 1)
    for moves in ("dilations", "strides"):
        if steps := node.get(moves):
            attributes[moves] = _only(k, steps, 1)
    if pads := node.get("pads"):
        attributes["pads"] = (*_only(k, pads[:rank], 0), *_only(k, pads[rank:], 0))
    return replace(node, inputs=(source,), outputs=(target,), attributes=attributes)


def _only(k: int, values: tuple[int, ...], other: int) -> tuple[int, ...]:
    """What is said of dimension k, and of the others what changes nothing."""
    return tuple(value if at == k else other for at, value in enumerate(values))
