"""Products of rows that were counted as one dimension, where that would multiply unknown sizes.

    Gemm(Reshape(x, [b s, k]), W, c)   ->   Reshape(Add(MatMul(x, W), c), [b s, n])     x[b, s, k]
    MatMul(Reshape(x, [b s, k]), W)    ->   Reshape(MatMul(x, W), [b s, n])

What reads the result counts the rows as before, usually at once: then both Reshapes go. No integer
set can say what is in row i of b s rows; where the product of the extents can be said, nothing is
changed. Exact to the bit.
"""

from __future__ import annotations

import math

import numpy as np

from polyc.graph.ir import Graph, Node, Shape, Tensor
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.parameters import expand
from polyc.types.sizes import Size

_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def separate_rows(graph: Graph) -> Rewritten:
    """Apply the table above."""
    return apply_rule(graph, "row_products", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.domain or node.op not in ("Gemm", "MatMul"):
        return None
    if any(node.get(name, value) != value for name, value in _PLAIN.items()):
        return None
    found = _find_rows(scope, node.inputs[0])
    weights, result = scope.tensor(node.inputs[1]), scope.tensor(node.outputs[0])
    if found is None or weights.rank != 2 or not all(isinstance(d, int) for d in weights.shape):
        return None
    source, batch = found
    depth, columns = (int(d) for d in weights.shape)
    rows = scope.result(f"{source.name}_rows", result.dtype, (*batch, depth))
    kept = scope.constant(f"{rows.name}_shape", np.array([0] * len(batch) + [depth], np.int64))
    product = scope.result(f"{result.name}_rows", result.dtype, (*batch, columns))
    made = [rows, product]
    nodes = [
        Node(f"{node.name}_kept", "Reshape", (source.name, kept.name), (rows.name,)),
        Node(node.name, "MatMul", (rows.name, weights.name), (product.name,)),
    ]
    if len(node.inputs) > 2 and node.inputs[2]:
        if scope.tensor(node.inputs[2]).rank > 1:  # a row for each row, which is counted as before
            return None
        made.append(scope.result(f"{result.name}_sum", result.dtype, product.shape))
        operands = (product.name, node.inputs[2])
        nodes.append(Node(f"{node.name}_sum", "Add", operands, (made[-1].name,)))
    target = scope.constant(f"{result.name}_shape", np.array([-1, columns], np.int64))
    flat = Node(f"{node.name}_flat", "Reshape", (made[-1].name, target.name), node.outputs)
    text = f"the rows of {node.op} '{node.name}' keep their dimensions"
    return Change(text, (*nodes, flat), (*made, kept, target))


def _find_rows(scope: Scope, name: str) -> tuple[Tensor, Shape] | None:
    """x[b, s, h, d] and (b, s) of a flat [b s, k] with k = h d, whose rows no set can count."""
    flat, producer = scope.tensor(name), scope.producer(name)
    if producer is None or producer.op not in ("Reshape", "Flatten") or flat.rank != 2:
        return None
    count, source = flat.shape[0], scope.tensor(producer.inputs[0])
    rows = expand(count)
    if not isinstance(rows, Size) or rows.is_affine:
        return None
    for k in range(2, source.rank):
        if math.prod(source.extents[k:]) == flat.shape[1]:
            return source, source.shape[:k]
    return None
