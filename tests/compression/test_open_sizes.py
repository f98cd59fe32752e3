"""Models of any length, smaller: they stay of any length, also in other engines."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import polyc
from bench.zoo.gpt2 import Gpt2, gpt2
from polyc import Graph, ops
from polyc.compression.calibration.network import Network, measure
from polyc.compression.onnx_form import compile_plain
from polyc.errors import InvalidData
from polyc.run.reference import relative_error
from tests.sampling import thorough

SIZES = Gpt2(layers=1, heads=2, width=32, vocabulary=50, positions=64)
LENGTHS = ((3, 1), (1, 5), (7, 2))
"""Tokens of a call and tokens before it."""

COMPRESSED = {
    "4 bits": lambda model: polyc.quantise_weights(model),
    "bytes": lambda model: polyc.quantise(model, [feeds(*at) for at in LENGTHS], threads=1),
    "pruned": lambda model: polyc.prune(model, 0.1),
}


@cache
def model() -> onnx.ModelProto:
    return gpt2(SIZES).model


def feeds(tokens: int, past: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(tokens)
    row = 1, SIZES.heads, past, SIZES.width // SIZES.heads
    cache = {name: random.standard_normal(row, np.float32) for name in SIZES.states}
    return {"input_ids": random.integers(0, SIZES.vocabulary, (1, tokens)), **cache}


def logits(proto: onnx.ModelProto, at: tuple[int, int]) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return np.asarray(session.run(["logits"], feeds(*at))[0])


@pytest.mark.parametrize("how", ["4 bits", thorough("bytes"), "pruned"])
def test_a_decoder_of_any_length(how):
    small = COMPRESSED[how](model())
    onnx.checker.check_model(small)
    compiled = polyc.compile(small, target="cpu", threads=1)
    for at in LENGTHS:
        wanted, theirs = logits(model(), at), logits(small, at)
        ours = compiled.run(feeds(*at))["logits"]
        assert ours.shape == theirs.shape == wanted.shape
        assert relative_error(ours, wanted) < 0.2
        # Where bytes are rounded, another order of a float sum may give the next one.
        assert relative_error(ours, theirs) < (0.05 if how == "bytes" else 1e-5)


def test_channels_of_images_of_any_size():
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((8, 3, 3, 3), np.float32),
        "v": random.standard_normal((4, 8, 3, 3), np.float32),
        "first": np.int64([0]),
        "rest": np.int64([-1]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="one"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "v"], ["c"], name="two"),
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("Gather", ["s", "first"], ["n"], name="batch"),
        helper.make_node("Concat", ["n", "rest"], ["t"], name="list", axis=0),
        helper.make_node("Reshape", ["c", "t"], ["y"], name="rows"),
    ]
    graph = helper.make_graph(
        nodes,
        "images",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "k"])],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    small = polyc.prune(proto, 0.5, structured=True)
    assert [list(w.dims) for w in small.graph.initializer][:2] == [[4, 3, 3, 3], [4, 4, 3, 3]]
    compiled = polyc.compile(small, target="cpu", threads=1)
    session = onnxruntime.InferenceSession(small.SerializeToString())
    for shape in ((1, 3, 5, 7), (3, 3, 12, 6)):
        x = random.standard_normal(shape, np.float32)
        (theirs,) = session.run(None, {"x": x})
        np.testing.assert_allclose(compiled(x), theirs, rtol=1e-4, atol=1e-4)


def test_networks_are_compiled_for_any_size_where_samples_differ():
    graph = Graph.of(y=ops.exp(ops.input("x", ("n", 3))))
    asked = []

    def compile_here(graph, sizes):
        asked.append(dict(sizes))
        return compile_plain(graph, sizes, threads=1)

    network, rows = Network(graph, compile_here), (2, 2, 5, 2, 1)
    values = [{"x": np.full((n, 3), n, np.float32)} for n in rows]
    for feeds, result in zip(values, network.run(values), strict=True):
        np.testing.assert_allclose(result["y"], np.exp(feeds["x"]), rtol=1e-5)
    assert asked == [{"n": 2}, {}]
    with pytest.raises(InvalidData, match="sample 0 does not fit the model"):
        list(Network(graph, compile_here).run([{"x": np.zeros((2, 4), np.float32)}]))


def test_sums_of_sizes_follow_from_a_sample():
    x, mask = ops.input("x", ("n", 3)), ops.input("mask", ("past + n",))
    graph = Graph.of(y=ops.exp(x), z=ops.exp(mask))
    sample = {"x": np.zeros((2, 3), np.float32), "mask": np.zeros(5, np.float32)}
    assert measure(graph, sample) == {"n": 2}
