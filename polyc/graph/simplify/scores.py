"""Attention as the standard writes it becomes attention as it is best computed.

    MatMul(q * c, k * d)   ->   MatMul(q, k) * (c d)         c, d constant scalars of at most 1
    Softmax(x + 0)         ->   Softmax(x)                   for either zero

The standard scales both operands of the scores, against overflow in half precision; here a factor
behind the product is free, because it is fused there. It rounds once where there were two
roundings, and underflows no sooner. Adding a zero to a score only changes which zero it is, which
its exponential does not see.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.element_types import is_float


def simplify_scores(graph: Graph) -> Rewritten:
    """Apply the table above."""
    return apply_rule(graph, "scores", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.domain == "" and node.op == "MatMul":
        return _scale_after_product(scope, node)
    if node.domain == "" and node.op == "Softmax":
        return _forget_zero(scope, node)
    return None


def _scale_after_product(scope: Scope, node: Node) -> Change | None:
    operands = [_scaled(scope, name) for name in node.inputs]
    left, right = operands
    if left is None or right is None:
        return None
    (a, c), (b, d) = left, right
    result = scope.tensor(node.outputs[0])
    product = scope.result(f"{result.name}_product", result.dtype, result.shape)
    factor = scope.constant(f"{result.name}_scale", np.asarray(c * d, result.dtype))
    nodes = (
        replace(node, inputs=(a, b), outputs=(product.name,)),
        Node(f"{node.name}_scale", "Mul", (product.name, factor.name), node.outputs),
    )
    return Change(f"factors of the operands of '{node.name}' moved behind it", nodes,
                  (product, factor))  # fmt: skip


def _scaled(scope: Scope, name: str) -> tuple[str, np.ndarray] | None:
    """x and c where a tensor is x * c, read once, for a scalar 0 < |c| <= 1."""
    producer = scope.producer(name)
    if producer is None or producer.op != "Mul" or not scope.is_read_once(name):
        return None
    for x, other in (producer.inputs, producer.inputs[::-1]):
        value = scope.value(other)
        if value is None or value.size != 1 or not is_float(value.dtype):
            continue
        number = value.reshape(())
        if scope.tensor(x).shape == scope.tensor(name).shape and 0 < abs(number) <= 1:
            return x, number
    return None


def _forget_zero(scope: Scope, node: Node) -> Change | None:
    (name,) = node.inputs
    producer = scope.producer(name)
    if producer is None or producer.op != "Add":
        return None
    for x, other in (producer.inputs, producer.inputs[::-1]):
        value = scope.value(other)
        same = scope.tensor(x).shape == scope.tensor(name).shape
        if value is not None and value.size and same and not value.any():
            text = f"a zero that was added before Softmax '{node.name}' dropped"
            return Change(text, (replace(node, inputs=(x,)),))
    return None
