"""Steps of optimisers: the standard's own cases, written out."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from polyc.errors import ShapeError
from polyc.graph.bodies import Names
from polyc.graph.expand.expand import expand_node
from polyc.graph.ir import Node, Tensor
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from tests.scop.check import all_cases

CASES = [c for c in all_cases() if c.model and c.model.graph.node[0].domain.endswith("training")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_of_the_standard(case):
    inputs, expected = case.data_sets[0]
    graph = import_onnx(case.model)
    feeds = {i.name: x for i, x in zip(case.model.graph.input, inputs, strict=True)}
    results = ReferenceEvaluator(export_onnx(graph)).run(None, feeds)
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_there_are_cases_of_all():
    assert {c.model.graph.node[0].op_type for c in CASES} >= {"Adagrad", "Adam", "Momentum"}


def test_a_tensor_without_its_gradient():
    names = ("r", "t", "x", "g")
    tensors = [Tensor(n, np.dtype(np.float32), ()) for n in names]
    node = Node("n", "Adam", names, ("y",), domain="ai.onnx.preview.training")
    with pytest.raises(ShapeError, match=r"Adam 'n'.*multiple of 4"):
        expand_node(node, tensors, Names())
