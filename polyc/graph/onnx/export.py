"""`Graph` out to ONNX: so that other runtimes can run what polyc compiles, and check it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from polyc.graph.bodies import close_bodies
from polyc.graph.ir import Body, Graph, Node, Tensor
from polyc.graph.onnx.write_sizes import write_sizes
from polyc.graph.shapes.signature import find_signature
from polyc.types.sizes import spell_shape


def export_onnx(graph: Graph, opset: int | None = None) -> ModelProto:
    """The graph as a model: constants as initialisers, symbolic dimensions as dim_param, and what
    consists of sizes by nodes that compute it.

        Graph "g": x: float32[N, 4], y = Relu(x)   ->   ModelProto, opset 28

    Nodes are in the newest form of their operators, so that `opset` is the newest one that the
    installed onnx knows. An older one may be asked for where the reader of the model needs it; the
    caller then vouches that no node's form is newer. Raises UnsupportedOp as `write_sizes`.
    """
    names = [*graph.inputs, *graph.outputs]
    types = {name: _value_info(graph.tensor(name)) for name in names}
    constants = {t.name: t.value for t in graph.tensors.values() if t.value is not None}
    between = [
        _value_info(t) for t in graph.tensors.values() if t.value is None and t.name not in types
    ]
    proto = helper.make_graph(
        [export_node(close_bodies(n)) for n in write_sizes(graph)],
        graph.name,
        [types[i] for i in graph.inputs],
        [types[o] for o in graph.outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
        value_info=between,
    )
    domains = sorted({n.domain for n in graph.nodes} - {""})
    imports = [helper.make_opsetid("", opset or onnx.defs.onnx_opset_version())]
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    # Readers refuse an IR version that they do not know: the oldest that has these operator sets.
    version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    return helper.make_model(
        proto, opset_imports=imports, ir_version=version, producer_name="polyc"
    )


def _value_info(tensor: Tensor) -> ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(tensor.dtype)
    return helper.make_tensor_value_info(tensor.name, element, spell_shape(tensor.shape))


def _body(name: str, body: Body) -> GraphProto:
    inputs, outputs = (
        [ValueInfoProto(name=n) for n in names] for names in (body.inputs, body.outputs)
    )
    return helper.make_graph([export_node(n) for n in body.nodes], name, inputs, outputs)


def export_node(node: Node) -> NodeProto:
    """One node as a message; attributes have the kinds that the standard says."""
    proto = NodeProto(name=node.name, op_type=node.op, domain=node.domain)
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    # The kind decides what an empty list or a float given as an integer is.
    known = onnx.defs.has(node.op, node.domain) and not node.domain
    kinds = find_signature(node.op).attributes if known else {}
    for name, value in sorted(node.attributes.items()):
        kind = kinds.get(name)
        plain = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        plain = _body(name, value) if isinstance(value, Body) else plain
        plain = float(value) if kind == "FLOAT" else plain
        code = AttributeProto.AttributeType.Value(kind) if kind else None
        proto.attribute.append(helper.make_attribute(name, plain, attr_type=code))
    return proto
