"""Models for the tests of import and building, and the references that run them."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, helper

from polyc.graph.ir import Graph, Node

RUNTIME_OPSET = 23
"""The newest opset whose forms are those of `Graph` and that onnxruntime runs."""


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, np.ndarray | tuple],
    outputs: Sequence[str],
    opset: int = 17,
    **options: object,
) -> ModelProto:
    """A model; an input is given by an array like it, or by its shape (of float32)."""
    infos = []
    for name, like in inputs.items():
        dtype = like.dtype if isinstance(like, np.ndarray) else np.dtype(np.float32)
        shape = like.shape if isinstance(like, np.ndarray) else like
        infos.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
        )
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    initializer = options.pop("initializer", ())
    constants = [onnx.numpy_helper.from_array(v, k) for k, v in dict(initializer).items()]
    graph = helper.make_graph(nodes, "g", infos, results, constants)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **options)


def node_proto(node: Node) -> NodeProto:
    """A Node as protobuf again."""
    attributes = {
        k: onnx.numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v
        for k, v in node.attributes.items()
    }
    return helper.make_node(
        node.op, node.inputs, node.outputs, node.name, domain=node.domain, **attributes
    )


def model_of_graph(graph: Graph) -> ModelProto:
    """A Graph as a model again, whose nodes are read as newest forms."""
    nodes = [node_proto(n) for n in graph.nodes]
    tensors = graph.tensors
    infos = [
        helper.make_tensor_value_info(
            i, helper.np_dtype_to_tensor_dtype(tensors[i].dtype), tensors[i].shape
        )
        for i in graph.inputs
    ]
    results = [onnx.ValueInfoProto(name=o) for o in graph.outputs]
    constants = [
        onnx.numpy_helper.from_array(np.array(t.value), t.name)
        for t in tensors.values()
        if t.is_constant
    ]
    body = helper.make_graph(nodes, graph.name, infos, results, constants)
    imports = [helper.make_opsetid("", RUNTIME_OPSET)]
    return helper.make_model(body, opset_imports=imports, ir_version=10)


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model, by onnxruntime without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))
