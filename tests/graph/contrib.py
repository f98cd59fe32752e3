"""Models of one operator of com.microsoft, and the same in the standard's operators."""

import onnx
import onnx.parser
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def model_of(op, inputs, outputs, constants=(), **attributes):
    """One node on all inputs; those that are None are left out, and some may be constants."""
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(inputs)]
    known = [f"x{k}" for k in constants]
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if n and n not in known
    ]
    graph = helper.make_graph(
        [node],
        op,
        infos,
        [onnx.ValueInfoProto(name=o) for o in outputs if o],
        [numpy_helper.from_array(inputs[k], f"x{k}") for k in constants],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def by_standard(text, feeds):
    """What the onnx package makes of nodes that are written as text."""
    codes = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in feeds.items()}
    graph = onnx.parser.parse_graph(f"g () => (y) {{ {text} }}")
    graph.input.extend(
        helper.make_tensor_value_info(n, codes[n], x.shape) for n, x in feeds.items()
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ReferenceEvaluator(model).run(None, feeds)[0]
