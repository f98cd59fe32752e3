"""The maximum of a window is that of its rows' maxima, and the mean that of its rows' means.

    y[h, w] = max of x[h + r, w + q]   ->   t[h, w] = max of x[h, w + q]
                                            y[h, w] = max of t[h + r, w]

13 x 13 elements are 26 comparisons so, and not 169. The maximum is the same, whatever the order; of
two zeros it may be the one of the other sign. A mean is one of means since all rows of a window
have as many elements, those of the image only or those of its pads as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.estimate import hinted

LEAST_GAIN = 1.6
"""How many times as many operations a window by itself takes, at least, for the image to be walked
twice."""


def separate_pools(graph: Graph) -> Rewritten:
    """Pools of large windows as pools along one dimension each.

    y = MaxPool(x; kernel_shape=[5, 5])   ->   y = MaxPool(MaxPool(x; [1, 5]); [5, 1])
    """
    return apply_rule(graph, "separate_pools", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op not in ("MaxPool", "AveragePool") or node.domain:
        return None
    source, result = scope.tensor(node.inputs[0]), scope.tensor(node.outputs[0])
    rounds = node.op == "AveragePool" and result.dtype.itemsize < 4  # means between would, too
    if rounds or any(map(scope.is_read, node.outputs[1:])):
        return None
    kernel = tuple(node.attributes["kernel_shape"])
    strides = node.get("strides") or (1,) * len(kernel)
    wide = [k for k, (n, s) in enumerate(zip(kernel, strides, strict=True)) if n > 1 or s > 1]
    before, after = ([hinted(n) for n in t.shape[2:]] for t in (source, result))
    if len(wide) < 2 or _gain(kernel, strides, wide, before, after) < LEAST_GAIN:
        return None
    shape, name = list(source.shape), source.name
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
    text = f"{node.op} '{node.name}' of {prod(kernel)} elements taken along each dimension"
    return Change(text, tuple(nodes), tuple(between))


def _gain(
    kernel: Sequence[int],
    strides: Sequence[int],
    wide: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> float:
    """Operations of whole windows for one of windows along each dimension, from images `before`.

    What is taken along a dimension is taken of each row that is left, which later ones thin out.
    """
    apart = 0
    for k in wide:
        read = {j: strides[j] * (after[j] - 1) + kernel[j] for j in wide if j < k}
        rows = [min(before[j], read[j]) if j in read else after[j] for j in wide]
        apart += kernel[k] * prod(rows)
    return prod(kernel) * prod(after[j] for j in wide) / max(apart, 1)


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
