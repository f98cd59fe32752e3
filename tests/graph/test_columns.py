"""Col2Im is a gather of what falls on each pixel, and a sum."""

import numpy as np
import pytest
from onnx import helper

from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from tests.graph.onnx_models import RUNTIME_OPSET, model_of, run


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ((5, 5), (1, 5), {}),
        ((5, 5), (5, 1), {}),
        ((7, 9), (3, 2), {"strides": [2, 3]}),
        ((6, 5), (2, 3), {"dilations": [2, 1], "pads": [1, 0, 2, 1]}),
        ((4, 5, 6), (1, 2, 3), {"strides": [1, 2, 1]}),
    ],
    ids=str,
)
def test_against_onnxruntime(image, block, attributes):
    rank = len(image)
    strides, dilations = (attributes.get(k, [1] * rank) for k in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    counts = [
        (n + pads[k] + pads[rank + k] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1
        for k, n in enumerate(image)
    ]
    shape = (2, 3 * int(np.prod(block)), int(np.prod(counts)))
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    constants = {"i": np.array(image), "b": np.array(block)}
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], **attributes)
    model = model_of([node], feeds, ["y"], 18, initializer=constants)
    graph = import_onnx(model)
    assert [n.op for n in graph.nodes] == ["Reshape", "Pad", "Gather", "ReduceSum"]
    (want,), (got,) = run(model, feeds), run(export_onnx(graph, RUNTIME_OPSET), feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_nan_stays_where_it_falls():
    x = np.ones((1, 4, 4), np.float32)
    x[0, 0, 0] = np.nan
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], strides=[2, 2])
    constants = {"i": np.array([4, 4]), "b": np.array([2, 2])}
    model = model_of([node], {"x": x}, ["y"], 18, initializer=constants)
    (y,) = run(export_onnx(import_onnx(model), RUNTIME_OPSET), {"x": x})
    assert np.isnan(y).sum() == 1
