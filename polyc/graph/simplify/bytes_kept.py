"""Weights of bytes that are multiplied with bytes: they are not restored when compiling.

    y = Conv(DequantizeLinear(x), DequantizeLinear(w))        x, w: bytes; w: a constant

What is left of such a weight for `scop/factors/scales.py` are its integers. Wherever the other
factor is none of restored bytes the constant is a float one, which other rewrites may fold into.
"""

from __future__ import annotations

from polyc.graph.ir import Graph, Node

PRODUCTS = frozenset({"Conv", "Einsum", "Gemm", "MatMul"})

MOVES = frozenset(
    {
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "MaxPool",
        "Pad",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""Operators whose results are elements of their first input."""

MOST_MOVES = 8
"""Between a tensor that is restored and the product that reads it."""


def is_kept(graph: Graph, node: Node) -> bool:
    """Whether a node restores bytes for products with bytes, and for nothing else."""
    restores = node.op == "DequantizeLinear" and _is_byte(graph, node)
    return restores and graph.tensors[node.inputs[0]].rank > 1 and _is_multiplied(graph, node, 0)


def _is_byte(graph: Graph, node: Node) -> bool:
    dtype = graph.tensors[node.inputs[0]].dtype
    return dtype.kind in "iu" and dtype.itemsize == 1


def _is_multiplied(graph: Graph, node: Node, depth: int) -> bool:
    """Whether all that reads a node are products with restored bytes."""
    (name, *more) = node.outputs
    readers = graph.consumers.get(name, ())
    if more or not readers or name in graph.outputs or depth > MOST_MOVES:
        return False
    return all(_multiplies(graph, reader, name, depth) for reader in readers)


def _multiplies(graph: Graph, reader: Node, name: str, depth: int) -> bool:
    """Whether a reader multiplies a tensor with restored bytes, or hands it to such products."""
    if reader.op in PRODUCTS:
        factors = reader.inputs[:2]
        return name in factors and all(_is_restored(graph, i, 0) for i in factors if i != name)
    moves = reader.op in MOVES and reader.inputs[0] == name
    return moves and _is_multiplied(graph, reader, depth + 1)


def _is_restored(graph: Graph, tensor: str, depth: int) -> bool:
    """Whether a tensor is one of bytes in a call, times their scale."""
    node = graph.producers.get(tensor)
    if node is None or depth > MOST_MOVES:
        return False
    if node.op == "DequantizeLinear":
        return _is_byte(graph, node) and not graph.tensors[node.inputs[0]].is_constant
    return node.op in MOVES and _is_restored(graph, node.inputs[0], depth + 1)
