"""Sums of depthwise windows of bytes in float32: where, and that they are the same integers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc.options import Options
from polyc.pipeline import cluster_model
from polyc.target.machine import Target
from polyc.trace import Trace
from polyc.types.element_types import FLOAT32, INT32
from tests.machines import need_named

CHANNELS = 32


def depthwise(window: int, weights: np.ndarray, zero: int, size: int = 12) -> onnx.ModelProto:
    """y = float(ConvInteger(x, w)) / 2 + s, and the integers themselves."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, CHANNELS, size, size))]
    constants = [
        numpy_helper.from_array(weights.astype(np.int8), "w"),
        numpy_helper.from_array(np.uint8(zero), "zero"),
        numpy_helper.from_array(np.float32(2), "two"),
    ]
    pads = [window // 2] * 4
    nodes = [
        helper.make_node("ConvInteger", ["x", "w", "zero"], ["s"], group=CHANNELS, pads=pads),
        helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["f", "two"], ["half"]),
        helper.make_node("Mul", ["s", "s"], ["square"]),
    ]
    shape = (1, CHANNELS, size, size)
    outputs = [
        helper.make_tensor_value_info("half", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("square", TensorProto.INT32, shape),
    ]
    graph = helper.make_graph(nodes, "depthwise", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def sums(model: onnx.ModelProto) -> set[np.dtype]:
    """The types in which a model sums up."""
    scop = cluster_model(model, Target.named("avx512"), Options(), Trace()).scop
    return {scop.arrays[s.array].dtype for s in scop.statements if s.reduction == "add"}


@pytest.mark.parametrize("target", ["avx512", "avx2", "baseline"])
@pytest.mark.parametrize("zero", [0, 128, 255])
@pytest.mark.parametrize("kind", ["random", "largest"])
def test_windows_are_summed_up_in_floats_exactly(target, zero, kind):
    random = np.random.default_rng(zero)
    shape = (CHANNELS, 1, 3, 3)
    if kind == "random":
        weights = random.integers(-128, 128, shape)
        x = random.integers(0, 256, (1, CHANNELS, 12, 12), dtype=np.uint8)
    else:
        weights = np.full(shape, -128)
        x = np.full((1, CHANNELS, 12, 12), 255 if zero < 128 else 0, np.uint8)
    model = depthwise(3, weights, zero)
    assert sums(model) == {FLOAT32}
    found = polyc.compile(model, target=need_named(target)).run({"x": x})
    half, square = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(found["half"], half)
    np.testing.assert_array_equal(found["square"], square)


def test_sums_that_may_be_too_large_stay_integers():
    """33 x 33 bytes times bytes can be 35 million, and float32 has integers up to 16.8."""
    random = np.random.default_rng(0)
    model = depthwise(33, random.integers(-128, 128, (CHANNELS, 1, 33, 33)), 0, size=40)
    assert sums(model) == {INT32}
    x = np.full((1, CHANNELS, 40, 40), 255, np.uint8)
    found = polyc.compile(model).run({"x": x})
    for name, wanted in zip(
        ("half", "square"), ReferenceEvaluator(model).run(None, {"x": x}), strict=True
    ):
        np.testing.assert_array_equal(found[name], wanted)
