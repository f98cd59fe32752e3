"""A model as a graph in plain form, and such a graph as ONNX that other engines read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import onnx
from onnx import defs

from polyc.api import compile
from polyc.errors import UnsupportedOp
from polyc.graph.bodies import close_bodies
from polyc.graph.ir import INTERNAL, Body, Graph, Node
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx.write_sizes import read_for_sizes
from polyc.graph.onnx_import import import_onnx
from polyc.graph.shapes import is_supported
from polyc.graph.simplify import simplify
from polyc.graph.simplify.batch_norm_folding import fold_batch_norms
from polyc.graph.simplify.constant_folding import fold_constants
from polyc.graph.simplify.dead_code import remove_dead_code
from polyc.graph.simplify.gemm import normalize_gemms
from polyc.graph.simplify.identities import drop_identities
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.graph.upgrade import is_newest_form
from polyc.run.model import CompiledModel


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

    model: as `polyc.compile` takes it. Nodes stay that polyc writes out in a form of its own, such
    as a GRU; what is in them is left alone. Raises what `import_onnx` raises, and UnsupportedOp for
    a Graph with nodes of that form.
    """
    if isinstance(model, os.PathLike):
        model = os.fspath(model)
    graph = model if isinstance(model, Graph) else import_onnx(model, decides=True, whole=True)
    for node in graph.nodes:
        if node.domain == INTERNAL:
            raise UnsupportedOp(
                f"graph {graph.name!r} has a loop over steps, or looks for elements (node "
                f"{node.name!r}), which has no form in ONNX; compress the model that it is made of"
            )
    nodes = [_plain(node) for node in graph.nodes]
    # What sizes are read from is needed, though no node of the graph reads it.
    needed = (*graph.outputs, *(n for n in read_for_sizes(graph) if n not in graph.outputs))
    plain = simplify(graph.rewrite(nodes, outputs=needed), 0, rewrites=PLAIN)[0]
    return plain.rewrite(plain.nodes, outputs=graph.outputs)


def _plain(node: Node) -> Node:
    """A Sum of two is an Add, which engines have in bytes."""
    if node.op == "Sum" and not node.domain and len(node.inputs) == 2:
        return replace(node, op="Add")
    return node


def compile_plain(
    graph: Graph, sizes: Mapping[str, int], *, threads: int | None = None
) -> CompiledModel:
    """The graph compiled for this CPU and some sizes; what stayed whole is expanded then."""
    stands_for_others = any(not is_supported(node.op) for node in graph.nodes)
    model = write_plain(graph) if stands_for_others or graph.found else graph
    return compile(model, dims=sizes, target="cpu", threads=threads)


def write_plain(graph: Graph) -> onnx.ModelProto:
    """The graph in the oldest operator set that has all of its nodes as they are."""
    newest = defs.onnx_opset_version()
    nodes = [close_bodies(node) for node in graph.nodes]
    opset = next(k for k in range(OLDEST, newest + 1) if k == newest or _all_in(nodes, k))
    return export_onnx(graph, opset)


def _all_in(nodes: Iterable[Node], opset: int) -> bool:
    return all(_is_in(n, opset) for n in nodes if not n.domain)


def _is_in(node: Node, opset: int) -> bool:
    """Whether an operator set has a node's operator in its newest form, with its attributes."""
    try:
        schema = defs.get_schema(node.op, opset)
    except defs.SchemaError:
        return False
    bodies = (value for value in node.attributes.values() if isinstance(value, Body))
    return (
        is_newest_form(node, opset)
        and set(node.attributes) <= set(schema.attributes)
        and all(_all_in(body.nodes, opset) for body in bodies)
    )
