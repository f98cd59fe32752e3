"""What consists of sizes, out to ONNX: nodes compute it as those did that the model had."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from polyc.errors import UnsupportedOp
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from polyc.types.sizes import Size

OPSET = 17
HEIGHTS = (1, 2, 5, 8, 97)


def model_of(nodes, outputs, inputs=(("x", TensorProto.FLOAT, ["n", 3, "h"]),), **constants):
    """A model of these nodes, whose outputs are given with their types and ranks."""
    named = constants.items()
    graph = helper.make_graph(
        nodes,
        "sizes",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(n, t, [None] * rank) for n, t, rank in outputs],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in named],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def both(model, feeds, values=()):
    """Results of the model, and of what is written of the graph that is read of it."""
    written = export_onnx(import_onnx(model, values=values), OPSET)
    onnx.checker.check_model(written, full_check=True)
    session = onnxruntime.InferenceSession(written.SerializeToString())
    return ReferenceEvaluator(model).run(None, feeds), session.run(None, feeds)


def copy_of(size):
    """A graph that returns a size, which no node computes, and reads x: float32[h]."""
    lists = np.dtype("int64"), (1,)
    tensors = [
        Tensor("x", np.dtype("float32"), ("h",)),
        Tensor("t", *lists, entries=np.array([size], object)),
        Tensor("y", *lists),
    ]
    copy = Node("c", "Identity", ("t",), ("y",))
    return Graph("copy", (copy,), {t.name: t for t in tensors}, ("x",), ("y",))


@pytest.mark.parametrize("h", HEIGHTS)
def test_sums_products_quotients_and_the_smaller_of_two(h):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "second"], ["h"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Sub", ["h", "three"], ["less"]),  # negative where h is 1 or 2
        helper.make_node("Mul", ["less", "n"], ["product"]),
        helper.make_node("Div", ["h", "two"], ["half"]),
        helper.make_node("Min", ["h", "four"], ["small"]),
        helper.make_node("Concat", ["less", "product", "half", "small", "three"], ["t"], axis=0),
        helper.make_node("Squeeze", ["half"], ["scalar"]),
        helper.make_node("Cast", ["scalar"], ["narrow"], to=TensorProto.INT32),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    numbers = {"first": [0], "second": [2], "two": [2], "three": [3], "four": [4]}
    model = model_of(
        nodes,
        [
            ("t", TensorProto.INT64, 1),
            ("narrow", TensorProto.INT32, 0),
            ("y", TensorProto.FLOAT, 3),
        ],
        **{name: np.int64(value) for name, value in numbers.items()},
    )
    x = np.random.default_rng(h).standard_normal((2, 3, h)).astype(np.float32)
    for want, got in zip(*both(model, {"x": x}), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


def test_a_quotient_of_what_is_negative_is_rounded_down():
    written = export_onnx(copy_of((Size.of("h") - 3) // 2 - 1), OPSET)
    for h in (1, 2, 3, 4):
        (y,) = ReferenceEvaluator(written).run(None, {"x": np.zeros(h, np.float32)})
        np.testing.assert_array_equal(y, [(h - 3) // 2 - 1])


@pytest.mark.parametrize("rows", [1, 3])
def test_sizes_that_an_input_says(rows):
    nodes = [
        helper.make_node("Concat", ["rows", "h"], ["shape"], axis=0),
        helper.make_node("Shape", ["x"], ["h"]),
        helper.make_node("Expand", ["x", "shape"], ["y"]),
        helper.make_node("Add", ["rows", "rows"], ["twice"]),
    ]
    model = model_of(
        [nodes[k] for k in (1, 0, 2, 3)],
        [("y", TensorProto.FLOAT, 2), ("twice", TensorProto.INT64, 1)],
        (("x", TensorProto.FLOAT, ["h"]), ("rows", TensorProto.INT64, [1])),
    )
    feeds = {"x": np.arange(5, dtype=np.float32), "rows": np.int64([rows])}
    for want, got in zip(*both(model, feeds, ["rows"]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_size_of_no_input_is_refused():
    with pytest.raises(UnsupportedOp, match="the size k is that of no tensor"):
        export_onnx(copy_of(Size.of("k") + 1))
