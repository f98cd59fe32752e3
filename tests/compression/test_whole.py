"""Nodes that polyc writes out in a form of its own stay whole in a model that becomes smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper

import polyc
from tests.sampling import thorough

RNG = np.random.default_rng(11)
ROWS, LENGTHS = 32, (6, 1, 9)


def model_of(
    nodes: Sequence[NodeProto],
    outputs: Mapping[str, int],
    **constants: np.ndarray,
) -> onnx.ModelProto:
    """x: float32[t, 32] -> outputs of float32, by their ranks."""
    graph = helper.make_graph(
        nodes,
        "whole",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", ROWS])],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r)
            for n, r in outputs.items()
        ],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32) / 4


def node(op: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), f"{op}_of_{outputs}", **attributes)


PRODUCT = node("MatMul", "x w", "h")


def recurrent(op: str) -> onnx.ModelProto:
    gates = {"GRU": 3, "LSTM": 4}[op] * 8
    nodes = [
        PRODUCT,
        node("Unsqueeze", "h one", "steps"),
        node(op, "steps wx wh", "all", hidden_size=8),
        node("Squeeze", "all ends", "rows"),
        node("MatMul", "rows v", "y"),
    ]
    weights = {"w": drawn(ROWS, 16), "wx": drawn(1, gates, 16), "wh": drawn(1, gates, 8)}
    axes = {"one": np.int64([1]), "ends": np.int64([1, 2])}
    return model_of(nodes, {"y": 2}, **weights, **axes, v=drawn(8, 4))


def largest() -> onnx.ModelProto:
    nodes = [
        PRODUCT,
        node("Shape", "h", "s"),
        node("Gather", "s zero", "t"),
        node("Min", "t four", "k"),
        node("TopK", "h k", "y places", axis=0),
    ]
    numbers = {"zero": np.int64([0]), "four": np.int64([4])}
    return model_of(nodes, {"y": 2}, w=drawn(ROWS, 16), **numbers)


def found() -> onnx.ModelProto:
    """What is positive, of which a call finds how much there is, twice beside itself."""
    nodes = [
        PRODUCT,
        node("Greater", "h limit", "mask"),
        node("NonZero", "mask", "places"),
        node("Transpose", "places", "at", perm=[1, 0]),
        node("GatherND", "h at", "values"),
        node("Shape", "places", "s"),
        node("Gather", "s one", "count"),
        node("Concat", "count one", "column", axis=0),
        node("Reshape", "values column", "narrow"),
        node("Concat", "narrow narrow", "y", axis=1),
    ]
    return model_of(nodes, {"y": 2}, w=drawn(ROWS, 16), limit=np.float32(0), one=np.int64([1]))


def branches() -> onnx.ModelProto:
    """Bodies that read tensors and weights of the graph around them."""
    sides = {}
    for key, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        inside = [helper.make_node(op, ["h"], [key]), node("MatMul", f"{key} v", f"{key}_y")]
        result = helper.make_tensor_value_info(f"{key}_y", TensorProto.FLOAT, None)
        sides[key] = helper.make_graph(inside, key, [], [result])
    nodes = [
        PRODUCT,
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total limit", "c"),
        node("If", "c", "z", **sides),
        node("Identity", "z", "y"),
    ]
    weights = {"w": drawn(ROWS, 16), "v": drawn(16, 4)}
    return model_of(nodes, {"y": 2}, **weights, limit=np.float32(0))


MODELS = {
    "GRU": lambda: recurrent("GRU"),
    "LSTM": lambda: recurrent("LSTM"),
    "TopK": largest,
    "NonZero": found,
    "If": branches,
}


@pytest.mark.parametrize("name", ["GRU", thorough("LSTM"), thorough("TopK"), "NonZero", "If"])
@pytest.mark.parametrize("how", ["4 bits", thorough("bytes"), "pruned"])
def test_the_rest_is_smaller(name, how):
    model = MODELS[name]()
    samples = [{"x": drawn(t, ROWS) * 4} for t in LENGTHS]
    if how == "4 bits":
        small = polyc.quantise_weights(model)
    elif how == "bytes":
        small = polyc.quantise(model, samples, threads=1)
    else:
        small = polyc.prune(model, 0.2)
    onnx.checker.check_model(small)
    assert name in {n.op_type for n in small.graph.node}
    compiled = polyc.compile(small, target="cpu", threads=1)
    before, after = (onnxruntime.InferenceSession(m.SerializeToString()) for m in (model, small))
    for feeds in samples:
        (wanted,), (theirs,) = before.run(["y"], feeds), after.run(["y"], feeds)
        if name != "NonZero":  # of which others may be positive
            assert theirs.shape == wanted.shape
            assert np.abs(theirs - wanted).max() < 0.6 * np.abs(wanted).max()
        ours = compiled.run(feeds)["y"]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=0.02 if how == "bytes" else 1e-4)
