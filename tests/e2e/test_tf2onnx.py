"""Slices and booleans as tf2onnx writes them: compiled once, for any size."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyc
from polyc import Options
from polyc.errors import ShapeError
from polyc.run.cpu_model import CpuModel
from tests.e2e.graph_builder import run_onnxruntime
from tests.sampling import thorough

FAR = 10**9
RNG = np.random.default_rng(0)


def model(nodes, inputs, outputs, **constants) -> onnx.ModelProto:
    """A model of floats whose dimensions have these names."""
    info = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in some.items()]
        for some in (inputs, outputs)
    ]
    held = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "tf2onnx", *info, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def crop() -> onnx.ModelProto:
    """x[:, :, : shape(y)[2], : shape(y)[3]], with all that is asked of the ends on the way."""
    node = helper.make_node
    nodes = [
        node("Shape", ["y"], ["all"]),
        node("Slice", ["all", "two", "four", "zero"], ["two_sizes"]),
        node("Cast", ["two_sizes"], ["sizes"], to=TensorProto.INT32),
        node("Concat", ["zeros", "sizes"], ["ends"], axis=0),
        node("Cast", ["ends"], ["as_floats"], to=TensorProto.FLOAT),
        node("Max", ["as_floats", "most"], ["at_most"]),
        node("Cast", ["at_most"], ["clipped"], to=TensorProto.INT32),
        node("Equal", ["clipped", "far"], ["to_the_end"]),
        node("Less", ["steps", "zero32"], ["backwards"]),
        node("And", ["to_the_end", "backwards"], ["to_the_front"]),
        node("Where", ["to_the_front", "far_back", "clipped"], ["chosen"]),
        node("Slice", ["x", "starts", "chosen", "axes", "steps"], ["z"]),
    ]
    return model(
        nodes,
        {"x": ["n", 3, "a", "b"], "y": ["n", 2, "h", "w"]},
        {"z": ["n", 3, None, None]},
        two=np.array([2]),
        four=np.array([4]),
        zero=np.array([0]),
        zero32=np.array([0], np.int32),
        zeros=np.zeros(2, np.int32),
        most=np.array([FAR, FAR, -FAR, -FAR], np.float32),
        far=np.int32(FAR),
        far_back=np.int32(-FAR),
        starts=np.zeros(4, np.int32),
        axes=np.arange(4, dtype=np.int32),
        steps=np.ones(4, np.int32),
    )


def test_a_crop_to_the_size_of_another_tensor(tmp_path):
    compiled = polyc.compile(crop(), options=Options(cache_dir=tmp_path, threads=1))
    assert isinstance(compiled, CpuModel)
    assert compiled.outputs[0].shape == ("n", 3, "min(a, h)", "min(b, w)")
    for n, a, b, h, w in [(1, 5, 7, 4, 7), (2, 1, 9, 3, 2), (1, 8, 8, 9, 9)]:
        x = RNG.standard_normal((n, 3, a, b)).astype(np.float32)
        y = np.zeros((n, 2, h, w), np.float32)
        np.testing.assert_array_equal(compiled(x, y), x[:, :, :h, :w])


@pytest.mark.parametrize(("op", "absorbing"), [("And", False), ("Or", True)])
def test_what_no_input_decides_is_folded(tmp_path, op, absorbing):
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Equal", ["s", "five"], ["equal"]),
        node(op, ["equal", "known"], ["chosen"]),
        node("Where", ["chosen", "first", "second"], ["to"]),
        node("Reshape", ["x", "to"], ["z"]),
    ]
    first, second = (2, -1) if absorbing else (-1, 2), (-1, 2) if absorbing else (2, -1)
    chosen = model(
        nodes,
        {"x": ["n", 4]},
        {"z": [2, None]},
        five=np.array(5),
        known=np.array([absorbing, absorbing]),
        first=np.array(first),
        second=np.array(second),
    )
    compiled = polyc.compile(chosen, options=Options(cache_dir=tmp_path, threads=1))
    assert isinstance(compiled, CpuModel)
    x = RNG.standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_array_equal(compiled(x), x.reshape(2, 10))


def test_an_end_of_a_billion_is_the_end(tmp_path):
    """In all calls of what has no more elements than that, which is what the model is right for."""
    nodes = [helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["z"])]
    chosen = model(
        nodes,
        {"x": ["n", "h"]},
        {"z": [None, None]},
        starts=np.array([1, FAR]),
        ends=np.array([FAR, -FAR]),
        axes=np.array([0, 1]),
        steps=np.array([1, -2]),
    )
    compiled = polyc.compile(chosen, options=Options(cache_dir=tmp_path, threads=1))
    assert "min" not in str(compiled.outputs)
    assert [str(size) for size in compiled.sizes] == ["h 1 to 1000000000", "n 1 to 1000000000"]
    for n, h in [(1, 1), (4, 6), (7, 9)]:
        x = RNG.standard_normal((n, h)).astype(np.float32)
        np.testing.assert_array_equal(compiled(x), x[1:, ::-2])
    long = np.broadcast_to(np.float32(1), (FAR + 1, 1))
    with pytest.raises(ShapeError, match="n"):
        compiled(long)


@pytest.mark.parametrize("end", [FAR, 2**31 - 1])
def test_the_last_rows_and_some_columns(tmp_path, end):
    """Which sizes are the smaller ones is five cases, of which the proof needs those of rows."""
    nodes = [helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["z"])]
    chosen = model(
        nodes,
        {"x": ["n", "h", "w"]},
        {"z": [None, None, None]},
        starts=np.array([-3, -7]),
        ends=np.array([end, 5]),
        axes=np.array([1, 2]),
    )
    compiled = polyc.compile(chosen, options=Options(cache_dir=tmp_path, threads=1))
    assert isinstance(compiled, CpuModel)
    for h, w in [(1, 1), (2, 9), (3, 7), (8, 12)]:
        x = RNG.standard_normal((2, h, w)).astype(np.float32)
        np.testing.assert_array_equal(compiled(x), x[:, -3:, -7:5])


BLOCKS = {
    "SpaceToDepth": [(2, 1, 4, 6), (1, 5, 2, 2), (3, 2, 6, 8)],
    "DepthToSpace": [(2, 4, 3, 1), (1, 12, 2, 2), (3, 8, 1, 5)],
}


@pytest.mark.parametrize("mode", ["DCR", thorough("CRD")])
@pytest.mark.parametrize("op", BLOCKS)
def test_blocks_of_an_open_number_of_channels(tmp_path, op, mode):
    """Dilated convolutions of an open batch, which stands where channels do meanwhile."""
    attributes = {"blocksize": 2} | ({"mode": mode} if op == "DepthToSpace" else {})
    nodes = [helper.make_node(op, ["x"], ["z"], **attributes)]
    chosen = model(nodes, {"x": ["n", "c", "h", "w"]}, {"z": [None] * 4})
    compiled = polyc.compile(chosen, options=Options(cache_dir=tmp_path, threads=1))
    assert isinstance(compiled, CpuModel)
    assert compiled.outputs[0].shape[1] == ("4*c" if op == "SpaceToDepth" else "floor(c/4)")
    for shape in BLOCKS[op]:
        x = RNG.standard_normal(shape).astype(np.float32)
        (wanted,) = run_onnxruntime(chosen, {"x": x})
        np.testing.assert_array_equal(compiled(x), wanted)
    if op == "DepthToSpace":
        with pytest.raises(ShapeError):
            compiled(np.zeros((1, 6, 2, 2), np.float32))
