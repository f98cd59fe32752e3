"""What is done to merged dimensions is done where they are counted by themselves.

    Transpose(Reshape(x, [n c hw]), [0 2 1])  ->  Reshape(Transpose(x, [0 2 3 1]), [n hw c])
    Reshape(Transpose(y, [0 2 1]), [n c h w]) ->  Transpose(Reshape(y, [n h w c]), [0 3 1 2])
    Reshape(Norm(Reshape(z, [n g bhw])), [n gb h w])
                                  ->  Reshape(Norm(Reshape(z, [n g b h w])), [n gb h w])

    x[n, c, h, w], y[n, hw, c]: pixels of an image that become the tokens of a text, and back;
    z[n, gb, h, w]: channels in groups, by InstanceNormalization

No integer set can say what is in place i of h w: such a tensor is read under another shape where it
lies, row by row, and how it lies is then no choice of the kernels that write and read it. Where the
product of the extents can be said, nothing is changed. Exact to the bit, but for the order in which
a norm sums up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.identities import permutation_of
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.parameters import expand
from polyc.types.sizes import Extent, Size

_Groups = list[list[int]]


def keep_apart(graph: Graph) -> Rewritten:
    """Apply the table above."""
    return apply_rule(graph, "merged_dimensions", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    inner = scope.producer(node.inputs[0]) if node.inputs and not node.domain else None
    if inner is None or inner.domain or not scope.is_read_once(node.inputs[0]):
        return None
    if node.op == "Transpose" and inner.op in ("Reshape", "Flatten"):
        return _transpose_first(scope, node, inner)
    if node.op == "Reshape" and inner.op == "Transpose":
        return _transpose_last(scope, node, inner)
    if node.op == "Reshape" and inner.op == "InstanceNormalization":
        return _normalise_apart(scope, node, inner)
    return None


def _transpose_first(scope: Scope, node: Node, inner: Node) -> Change | None:
    source, merged = scope.tensor(inner.inputs[0]), scope.tensor(node.inputs[0])
    groups = _find_groups(source.extents, merged.extents)
    if groups is None:
        return None
    perm = [d for k in permutation_of(node, merged.rank) for d in groups[k]]
    result = scope.tensor(node.outputs[0])
    apart = scope.result(f"{result.name}_apart", result.dtype, tuple(source.shape[d] for d in perm))
    target = _target(apart.extents, result.extents)
    if target is None:
        return None
    shape = scope.constant(f"{result.name}_shape", target)
    nodes = (
        Node(node.name, "Transpose", (source.name,), (apart.name,), {"perm": tuple(perm)}),
        Node(f"{node.name}_merged", "Reshape", (apart.name, shape.name), node.outputs),
    )
    text = f"Transpose '{node.name}' moved before {inner.op} '{inner.name}'"
    return Change(text, nodes, (apart, shape))


def _transpose_last(scope: Scope, node: Node, inner: Node) -> Change | None:
    source, merged = scope.tensor(inner.inputs[0]), scope.tensor(node.inputs[0])
    result = scope.tensor(node.outputs[0])
    groups = _find_groups(result.extents, merged.extents)
    if groups is None:
        return None
    perm = permutation_of(inner, merged.rank)  # merged[k] is source[perm[k]]
    order = [d for k in np.argsort(perm) for d in groups[k]]
    apart = scope.result(
        f"{result.name}_apart", result.dtype, tuple(result.shape[d] for d in order)
    )
    told = scope.tensor(node.inputs[1])
    if told.entries is None or any(isinstance(n, int) and n <= 0 for n in told.entries):
        return None  # an extent that is copied, or worked out, is one of this order
    shape = scope.result(f"{apart.name}_shape", told.dtype, told.shape)
    back = tuple(int(d) for d in np.argsort(order))
    nodes = (
        Node(f"{node.name}_apart", "Reshape", (source.name, shape.name), (apart.name,)),
        Node(inner.name, "Transpose", (apart.name,), node.outputs, {"perm": back}),
    )
    text = f"Transpose '{inner.name}' moved behind Reshape '{node.name}'"
    return Change(text, nodes, (apart, replace(shape, entries=told.entries[order])))


def _normalise_apart(scope: Scope, node: Node, inner: Node) -> Change | None:
    merging = scope.producer(inner.inputs[0])
    if merging is None or merging.op != "Reshape" or not scope.is_read_once(inner.inputs[0]):
        return None
    source, merged = scope.tensor(merging.inputs[0]), scope.tensor(inner.inputs[0])
    if source.shape != scope.tensor(node.outputs[0]).shape or merged.rank != 3:
        return None
    (_, channels, *image), groups = source.extents, merged.extents[1]
    if any(isinstance(n, Size) for n in (channels, groups)) or not groups or channels % groups:
        return None
    extents = (source.shape[0], groups, channels // groups, *image)
    if _find_groups(extents, merged.extents) is None:
        return None
    apart = scope.result(f"{merged.name}_apart", merged.dtype, extents)
    norm = scope.result(f"{inner.outputs[0]}_apart", merged.dtype, extents)
    entries = np.array(extents, object)
    shape = scope.result(f"{apart.name}_shape", np.dtype(np.int64), entries.shape)
    nodes = (
        Node(merging.name, "Reshape", (source.name, shape.name), (apart.name,)),
        replace(inner, inputs=(apart.name, *inner.inputs[1:]), outputs=(norm.name,)),
        replace(node, inputs=(norm.name, *node.inputs[1:])),
    )
    text = f"{inner.op} '{inner.name}' goes over the dimensions of '{source.name}'"
    return Change(text, nodes, (apart, norm, replace(shape, entries=entries)))


def _find_groups(apart: Sequence[Extent], merged: Sequence[Extent]) -> _Groups | None:
    """The dimensions that each merged one is the product of: [n c h w], [n c hw] -> 0, 1, 2 3.

    None if it is not so, or if each product can be said.
    """
    groups: _Groups = []
    start = 0
    for extent in merged:
        ends, whole = range(start + 1, len(apart) + 1), expand(extent)
        end = next((k for k in ends if expand(math.prod(apart[start:k])) == whole), None)
        if end is None:
            return None
        groups.append(list(range(start, end)))
        start = end
    if start < len(apart):
        return None
    products = (expand(extent) for extent, group in zip(merged, groups, strict=True) if group[1:])
    unsaid = any(isinstance(product, Size) and not product.is_affine for product in products)
    return groups if unsaid else None


def _target(source: Sequence[Extent], result: Sequence[Extent]) -> np.ndarray | None:
    """What a Reshape is told: it can copy extents (0) and work out one (-1); None if it is more."""
    told = [
        0 if extent in source[k : k + 1] else -1 if isinstance(extent, Size) else extent
        for k, extent in enumerate(result)
    ]
    fixed_zero = any(extent == 0 for extent in result)
    return None if told.count(-1) > 1 or fixed_zero else np.array(told, np.int64)
