"""What the standard itself says that an operator computes, in terms of simpler operators.

    SwiGLU(A, B; alpha)  =  { S = Swish(A; alpha); Y = Mul(S, B) }

The text is read from the installed onnx package. It may depend on the attributes, on which inputs
are there and on their types; see "Function" in the standard's description of an operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, helper

from polyc.errors import NotFixed
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.onnx.export import export_node
from polyc.graph.onnx.nodes import STANDARD_DOMAINS, read_node
from polyc.graph.shapes.checks import FIX_SIZES
from polyc.graph.upgrade import Context, upgrade_nodes
from polyc.types.sizes import spell_shape


def find_function(node: Node, inputs: Sequence[Tensor | None]) -> Body | None:
    """The body of an operator in newest forms, from its formal inputs to its formal outputs.

    `inputs` are the operands' types, None where the node omits one. None for an operator that is
    not defined by others.
    """
    if not onnx.defs.has(node.op, node.domain):
        return None
    schema: Any = onnx.defs.get_schema(node.op, domain=node.domain)
    call = export_node(node)
    if schema.has_function:
        function = schema.function_body
    elif schema.has_context_dependent_function:
        known = [_type_of(t).SerializeToString() for t in inputs]
        text = schema.get_context_dependent_function(call.SerializeToString(), known)
        function = FunctionProto.FromString(text)
        if not function.node and not all(t is None or t.is_static for t in inputs):
            raise NotFixed("its definition by the standard depends on its sizes", FIX_SIZES)
    else:
        return None
    attributes = {
        a.name: a.default_value for a in schema.attributes.values() if a.default_value.name
    }
    attributes |= {a.name: a for a in call.attribute}
    protos = [_bind_attributes(n, attributes) for n in function.node]
    nodes = [read_node(n, i, None) for i, n in enumerate(protos)]
    versions = [o.version for o in function.opset_import if o.domain in STANDARD_DOMAINS]
    opset = max(versions, default=onnx.defs.onnx_opset_version())
    pairs = zip(function.input, inputs, strict=False)
    types = {name: replace(t, name=name) for name, t in pairs if t is not None}
    used = frozenset(name for n in nodes for name in (*n.inputs, *n.outputs))
    upgraded = upgrade_nodes(nodes, opset, Context(used, types))
    return Body(tuple(function.input), upgraded, tuple(function.output))


def _type_of(tensor: Tensor | None) -> TypeProto:
    if tensor is None:
        return TypeProto()
    element = helper.np_dtype_to_tensor_dtype(tensor.dtype)
    return helper.make_tensor_type_proto(element, spell_shape(tensor.shape))


def _bind_attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """Attributes that refer to those of the function get their values, or are left out."""
    bound = NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name not in given:
            continue
        fresh = AttributeProto()
        fresh.CopyFrom(given.get(attribute.ref_attr_name, attribute))
        fresh.name = attribute.name
        inner = [_bind_attributes(n, given) for n in fresh.g.node]
        if inner:
            del fresh.g.node[:]
            fresh.g.node.extend(inner)
        bound.attribute.append(fresh)
    return bound
