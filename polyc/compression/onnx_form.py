"""A model as a graph in plain form, and such a graph as ONNX that other engines read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import onnx
from onnx import defs

from polyc.errors import UnsupportedOp
from polyc.graph.ir import INTERNAL, Graph, Node
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from polyc.graph.simplify import simplify
from polyc.graph.simplify.batch_norm_folding import fold_batch_norms
from polyc.graph.simplify.constant_folding import fold_constants
from polyc.graph.simplify.dead_code import remove_dead_code
from polyc.graph.simplify.gemm import normalize_gemms
from polyc.graph.simplify.identities import drop_identities
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.graph.upgrade import is_newest_form


def _join_bias(scope: Scope, node: Node) -> Change | None:
    """Add(MatMul(x, W), b) -> Gemm(x, W, b), for a matrix x: a bias inside can be an integer."""
    product = scope.producer(node.inputs[0]) if node.op == "Add" and not node.domain else None
    if product is None or product.op != "MatMul" or not scope.is_read_once(node.inputs[0]):
        return None
    weights, bias = scope.value(product.inputs[1]), scope.value(node.inputs[1])
    if weights is None or bias is None or scope.tensor(product.inputs[0]).rank != 2:
        return None
    if weights.ndim != 2 or bias.shape != weights.shape[1:]:
        return None
    inputs = (*product.inputs, node.inputs[1])
    return Change("a bias joined its product", (Node(product.name, "Gemm", inputs, node.outputs),))


def join_biases(graph: Graph) -> Rewritten:
    """Make one node of a product of matrices and what is added to its columns."""
    return apply_rule(graph, "join_biases", _join_bias)


PLAIN = (
    (0, remove_dead_code),
    (0, fold_constants),
    (0, drop_identities),
    (0, normalize_gemms),
    (0, fold_batch_norms),
    (0, join_biases),
)
"""Rewrites that leave what a model computes, and operators that any engine knows."""

OLDEST = 13
"""The operator set that brought scales for each channel; no model is written in an older one."""


def read_plain(model: Any) -> Graph:
    """The model with batch norms folded into the weights before them, and constants computed.

    model: as `polyc.compile` takes it. Raises what `import_onnx` raises, and UnsupportedOp for a
    model with nodes that have no form in ONNX: loops over steps are written out for polyc alone.
    """
    if isinstance(model, os.PathLike):
        model = os.fspath(model)
    graph = model if isinstance(model, Graph) else import_onnx(model)
    for node in graph.nodes:
        if node.domain == INTERNAL:
            raise UnsupportedOp(
                f"model {graph.name!r} has loops over steps, or looks for elements (node "
                f"{node.name!r}), which polyc writes out in a form of its own; it cannot be "
                "compressed as a whole: split such nodes off"
            )
    nodes = [_plain(node) for node in graph.nodes]
    return simplify(graph.rewrite(nodes), 0, rewrites=PLAIN)[0]


def _plain(node: Node) -> Node:
    """A Sum of two is an Add, which engines have in bytes."""
    if node.op == "Sum" and not node.domain and len(node.inputs) == 2:
        return replace(node, op="Add")
    return node


def write_plain(graph: Graph) -> onnx.ModelProto:
    """The graph in the oldest operator set that has all of its nodes as they are."""
    newest = defs.onnx_opset_version()
    opset = next(k for k in range(OLDEST, newest + 1) if k == newest or _all_in(graph.nodes, k))
    return export_onnx(graph, opset)


def _all_in(nodes: Iterable[Node], opset: int) -> bool:
    return all(_is_in(n, opset) for n in nodes if not n.domain)


def _is_in(node: Node, opset: int) -> bool:
    """Whether an operator set has a node's operator in its newest form, with its attributes."""
    try:
        schema = defs.get_schema(node.op, opset)
    except defs.SchemaError:
        return False
    return is_newest_form(node, opset) and set(node.attributes) <= set(schema.attributes)
