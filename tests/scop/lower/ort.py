"""onnxruntime as a reference for one node, where onnx's own evaluator has gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

OPSET = 22


def run_onnxruntime(
    op: str,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    n_outputs: int = 1,
) -> list[np.ndarray]:
    """What onnxruntime computes for one node, unoptimised; an absent input is None."""
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    outputs = [f"y{k}" for k in range(n_outputs)]
    node = helper.make_node(op, names, outputs, **(attributes or {}))
    given = {n: v for n, v in zip(names, inputs, strict=True) if n}
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in given.items()
    ]
    graph = helper.make_graph([node], op, declared, [onnx.ValueInfoProto(name=n) for n in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, given)
