"""Export: what is written is valid ONNX, and reads back as the same graph."""

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from polyc.graph.inference.infer import infer_graph
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx

WEIGHTS = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)


def sample() -> Graph:
    nodes = [
        Node("m", "MatMul", ("x", "w"), ("t",)),
        Node("r", "LeakyRelu", ("t",), ("u",), {"alpha": 1}),
        Node("c", "Clip", ("u", "", "top"), ("v",)),
        Node("s", "Split", ("v",), ("p", "q", "y"), {"axis": 1, "num_outputs": 3}),
        Node("z", "ConstantOfShape", ("one",), ("o",), {"value": np.float32([3])}),
        Node("a", "Add", ("p", "q"), ("z",)),
    ]
    known = {
        "x": Tensor("x", np.dtype("float32"), ("N", 4)),
        "w": Tensor("w", WEIGHTS.dtype, WEIGHTS.shape, WEIGHTS),
        "top": Tensor("top", np.dtype("float32"), (), np.asarray(0.5, np.float32)),
        "one": Tensor("one", np.dtype("int64"), (1,), np.int64([1])),
    }
    return infer_graph("sample", nodes, known, ["x"], ["y", "z", "o"])


def test_the_model_is_valid_and_computes_the_same():
    model = export_onnx(sample())
    onnx.checker.check_model(model, full_check=True)
    x = np.random.default_rng(6).standard_normal((5, 4)).astype(np.float32)
    y, z, o = ReferenceEvaluator(model).run(None, {"x": x})
    expected = np.minimum(x @ WEIGHTS, np.float32(0.5))
    np.testing.assert_allclose(y, expected[:, 2:], rtol=1e-6)
    np.testing.assert_allclose(z, expected[:, :1] + expected[:, 1:2], rtol=1e-6)
    np.testing.assert_array_equal(o, [3])


def test_reading_back_gives_the_same_graph():
    graph = sample()
    again = import_onnx(export_onnx(graph))
    assert again == graph
    np.testing.assert_array_equal(again.value("w"), WEIGHTS)


def test_an_input_may_be_an_output():
    x = Tensor("x", np.dtype("float32"), (2,))
    graph = Graph("through", (), {"x": x}, ("x",), ("x",))
    value = np.float32([1, 2])
    (result,) = ReferenceEvaluator(export_onnx(graph)).run(None, {"x": value})
    np.testing.assert_array_equal(result, value)
