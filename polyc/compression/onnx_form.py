"""A model as a graph in plain form, and such a graph as ONNX that other engines read."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
from polyc.graph.upgrade import is_newest_form

PLAIN = (
    (0, remove_dead_code),
    (0, fold_constants),
    (0, drop_identities),
    (0, normalize_gemms),
    (0, fold_batch_norms),
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
    return simplify(graph, 0, rewrites=PLAIN)[0]


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
