"""Operators that ONNX Runtime has in the standard's domain, where the standard has none of them.

    LayerNormalization, in operator sets before 17; SimplifiedLayerNormalization

Models that its optimiser and its builder of decoders write contain these. They are those of
com.microsoft that have the same names (`graph/expand/contrib/`).
"""

from __future__ import annotations

import onnx
from onnx import ModelProto

from polyc.graph.onnx.checks import all_nodes
from polyc.graph.onnx.nodes import STANDARD_DOMAINS

RUNTIME_DOMAIN = "com.microsoft"

_NEVER = 1 << 31
_SINCE = {"LayerNormalization": 17, "SimplifiedLayerNormalization": _NEVER}
"""Operator -> the operator set from which on the standard has it."""


def name_runtime_operators(model: ModelProto, opset: int) -> None:
    """Give ONNX Runtime's operators in the standard's domain its own one, in place."""
    bodies = (model.graph.node, *(f.node for f in model.functions))
    found = [
        node
        for body in bodies
        for node in all_nodes(body)
        if node.domain in STANDARD_DOMAINS and opset < _SINCE.get(node.op_type, 0)
    ]
    for node in found:
        node.domain = RUNTIME_DOMAIN
    users = [model, *(f for f in model.functions if any(n in found for n in all_nodes(f.node)))]
    for user in users if found else ():
        if RUNTIME_DOMAIN not in (o.domain for o in user.opset_import):
            user.opset_import.append(onnx.helper.make_opsetid(RUNTIME_DOMAIN, 1))
