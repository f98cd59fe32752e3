"""The demo's model and its NumPy yardstick, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.commands.demo import check, judged, resnet50
from polyc.commands.numpy_baseline import make_evaluator
from polyc.errors import RuntimeFailure, UnsupportedOp
from polyc.run.reference import relative_error

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model():
    return resnet50(seed=3)


def test_the_model_is_resnet50_with_random_weights(model):
    onnx.checker.check_model(model)
    assert [i.name for i in model.graph.input] == ["gpu_0/data_0"]
    assert sum(n.op_type == "Conv" for n in model.graph.node) == 53
    assert model.graph.node[-1].op_type == "Softmax"
    assert not any(n.op_type == "ConstantOfShape" for n in model.graph.node)
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    filters = [w for w in weights.values() if w.ndim == 4]
    assert all(abs(w.std() * np.sqrt(w[0].size) - 1) < 0.1 for w in filters)
    norms = [n for n in model.graph.node if n.op_type == "BatchNormalization"]
    assert all((weights[n.input[4]] > 0).all() for n in norms)
    again = resnet50(seed=3)
    assert again.SerializeToString(deterministic=True) == model.SerializeToString(
        deterministic=True
    )


def test_numpy_computes_what_onnxruntime_does(model):
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    feeds = {"gpu_0/data_0": x}
    name, outputs = judged(model, feeds)
    ((output, expected),) = outputs.items()
    assert name == "ONNX Runtime"
    assert expected.std() > 1e-6  # not the uniform distribution of a dead network
    ours = make_evaluator(model)(feeds)
    assert relative_error(ours, expected) < 1e-4
    assert check(model, {output: ours}, feeds)[1] < 1e-4
    with pytest.raises(RuntimeFailure, match="ResNet-50 differs from ONNX Runtime by 1"):
        check(model, {output: 2 * expected}, feeds)


def test_grouped_convolutions_in_numpy():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 6, 9, 8)).astype(np.float32)
    weights = generator.standard_normal((9, 2, 3, 3)).astype(np.float32)
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", x.shape), ("y", None))
    ]
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=3, pads=[1] * 4, strides=[2, 1])
    graph = helper.make_graph(
        [node], "g", infos[:1], infos[1:], [numpy_helper.from_array(weights, "w")]
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    (expected,) = judged(model, {"x": x})[1].values()
    np.testing.assert_allclose(make_evaluator(model)({"x": x}), expected, rtol=1e-4, atol=1e-5)


def test_options_that_the_yardstick_does_not_read_are_refused():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])
    for op, options in (
        ("MaxPool", {"ceil_mode": 1, "kernel_shape": [2, 2]}),
        ("AveragePool", {"pads": [1] * 4, "kernel_shape": [2, 2]}),
        ("Conv", {"dilations": [2, 2]}),
    ):
        graph = helper.make_graph(
            [helper.make_node(op, ["x", "w"], ["y"], name="n", **options)], "g", [info], [info]
        )
        with pytest.raises(UnsupportedOp, match=f"node 'n': the NumPy yardstick knows {op} with"):
            make_evaluator(helper.make_model(graph))


def test_an_operator_that_the_yardstick_lacks_is_named():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Erf", ["x"], ["y"], name="n")], "g", [info], [out])
    with pytest.raises(UnsupportedOp, match="node 'n': the NumPy yardstick has no Erf"):
        make_evaluator(helper.make_model(graph))
