"""Compiled conversions from and to types of eight bits and fewer, against ml_dtypes and onnx."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc.options import options_from_environment

TARGETS = [None, pytest.param("cuda:sm_80", marks=pytest.mark.cuda)]
FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
INTEGERS = ["INT4", "UINT4", "INT2", "UINT2"]


@pytest.fixture(params=TARGETS, ids=["cpu", "cuda"])
def run(request):
    """run(node, arrays): the outputs of a node, compiled."""

    def compiled(node, arrays, results):
        model = model_of(node, arrays, results)
        if request.param is None:
            return polyc.compile(model, threads=1)(*arrays)
        options = replace(options_from_environment(), emulated=True)
        return polyc.compile(model, target=request.param, options=options)(*arrays)

    return compiled


def code(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model_of(node, arrays, result):
    info = helper.make_tensor_value_info
    inputs = [info(n, code(a.dtype), a.shape) for n, a in zip(node.input, arrays, strict=True)]
    output = info(node.output[0], result, arrays[0].shape)
    graph = helper.make_graph([node], "g", inputs, [output])
    opset = [helper.make_opsetid("", onnx.defs.onnx_opset_version())]
    return helper.make_model(graph, opset_imports=opset)


def check(run, node, arrays, result):
    """The compiled node gives the values and types of onnx's reference."""
    with np.errstate(all="ignore"):
        (wanted,) = ReferenceEvaluator(node).run(None, dict(zip(node.input, arrays, strict=True)))
    got = np.asarray(run(node, arrays, result))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


_PLAIN = [0, 0.0625, 0.25, 0.75, 1, 1.25, 2.5, 3.5, 5, 6, 7, 17]
_BORDERS = [240, 247, 248, 249, 448, 463, 464, 465, 57344, 61439, 61440, 61441, 1e9]
_TINY = [2**-9, 2**-10, 1.5 * 2**-10, 2**-16, 2**-17, 1e-30]
NUMBERS = np.array([*_PLAIN, *_BORDERS, *_TINY], np.float32)
NUMBERS = np.concatenate([NUMBERS, -NUMBERS])


@pytest.mark.thorough
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", FLOATS)
def test_floats_round_and_saturate(run, target, saturate):
    to = TensorProto.DataType.Value(target)
    node = helper.make_node("Cast", ["x"], ["y"], to=to, saturate=saturate)
    special = [] if target == "FLOAT4E2M1" else [np.inf, -np.inf, np.nan]
    x = np.concatenate([NUMBERS, np.array(special, np.float32)])
    check(run, node, [x], to)
    with np.errstate(over="ignore"):
        check(run, node, [x.astype(np.float16)], to)


@pytest.mark.thorough
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_keep_their_lowest_bits(run, target):
    to = TensorProto.DataType.Value(target)
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    check(run, node, [np.arange(-20, 21, dtype=np.int32)], to)
    check(run, node, [np.linspace(-9.5, 17, 43, dtype=np.float32)], to)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two(run, mode, saturate):
    to = TensorProto.FLOAT8E8M0
    node = helper.make_node("Cast", ["x"], ["y"], to=to, round_mode=mode, saturate=saturate)
    special = [1.5, 3e38, 2.0**-126, 1e-39, 2.0**-127, 1e-45, 0.0, np.inf, np.nan, 1.7e38]
    x = np.concatenate([np.array(special, np.float32), np.abs(NUMBERS)])
    check(run, node, [x], to)


@pytest.mark.thorough
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "FLOAT8E8M0"])
def test_every_value_comes_back(run, source):
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(source))
    bits = 4 if source in ("FLOAT4E2M1", "INT4", "UINT4") else 2 if "INT2" in source else 8
    x = np.arange(2**bits).astype(np.uint8).view(dtype)
    for target in (TensorProto.FLOAT, TensorProto.FLOAT16):
        node = helper.make_node("Cast", ["x"], ["y"], to=target)
        with np.errstate(over="ignore"):
            check(run, node, [x], target)


@pytest.mark.thorough
@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS])
def test_quantised_by_blocks(run, target):
    to = TensorProto.DataType.Value(target)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 10)).astype(np.float32) * 3
    scale = 2.0 ** rng.integers(-2, 2, (3, 3)).astype(np.float32)
    flags = {"axis": 1, "block_size": 4, "output_dtype": to}
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], **flags)
    check(run, node, [x, scale.astype(np.float32)], to)
    dtype = helper.tensor_dtype_to_np_dtype(to)
    q = rng.integers(0, 4, (3, 10)).astype(np.float32).astype(dtype)
    back = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=4)
    check(run, back, [q, scale.astype(np.float32)], TensorProto.FLOAT)
    check(run, back, [q, scale.astype(np.float16)], TensorProto.FLOAT16)


def test_movement_and_bits(run):
    x = np.arange(35).astype(np.uint8).reshape(5, 7).view(ml_dtypes.float8_e5m2)
    node = helper.make_node("Transpose", ["x"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", code(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", code(x.dtype), x.T.shape)],
    )
    opset = [helper.make_opsetid("", onnx.defs.onnx_opset_version())]
    y = polyc.compile(helper.make_model(graph, opset_imports=opset), threads=1)(x)
    np.testing.assert_array_equal(y.view(np.uint8), x.T.view(np.uint8))
    bits = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.UINT8)
    np.testing.assert_array_equal(run(bits, [x], TensorProto.UINT8), x.view(np.uint8))


def test_constants_are_read_from_packed_data():
    packed = numpy_helper.from_array(np.arange(-8, 7).astype(ml_dtypes.int4), "w")
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["y"])],
        "g",
        [helper.make_tensor_value_info("s", TensorProto.FLOAT, ())],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (15,))],
        [packed],
    )
    opset = [helper.make_opsetid("", onnx.defs.onnx_opset_version())]
    model = polyc.compile(helper.make_model(graph, opset_imports=opset), threads=1)
    np.testing.assert_array_equal(model(np.float32(0.5)), np.arange(-8, 7) * np.float32(0.5))
