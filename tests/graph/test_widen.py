"""Narrow types: which operators compute in wide ones, and where values are rounded."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.graph.simplify import simplify
from polyc.graph.widen import widen
from polyc.scop.expr import Cast, walk
from polyc.scop.inline import inline_pointwise
from polyc.scop.lower import lower_graph
from polyc.types.element_types import BFLOAT16, FLOAT16, FLOAT32

NARROW = [FLOAT16, BFLOAT16]


def widened(**outputs):
    return widen(simplify(Graph.of(**outputs))[0])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_an_operator_computes_in_float32(dtype):
    x = ops.input("x", (4, 8), dtype)
    graph = widened(y=ops.softmax(x))
    assert [n.op for n in graph.nodes] == ["Cast", "Softmax", "Narrow"]
    assert graph.tensor(graph.nodes[1].outputs[0]).dtype == FLOAT32
    assert graph.tensor("y").dtype == dtype


def test_constants_are_converted_when_compiling():
    x = ops.input("x", (4, 8), FLOAT16)
    graph = widened(y=x @ ops.constant(np.full((8, 2), 0.1, np.float16)))
    assert [n.op for n in graph.nodes] == ["Cast", "MatMul", "Narrow"]
    weight = graph.tensor(graph.nodes[1].inputs[1])
    np.testing.assert_array_equal(weight.value, np.full((8, 2), 0.1, np.float16).astype("f4"))


def test_movement_stays_narrow():
    x = ops.input("x", (4, 8), FLOAT16)
    graph = widened(y=ops.transpose(x))
    assert [n.op for n in graph.nodes] == ["Transpose"]


def test_other_graphs_stay_as_they_are():
    graph = Graph.of(y=ops.relu(ops.input("x", (4,), "float32")))
    assert widen(graph) is graph


def roundings(graph):
    """Conversions to float16 in what is left after inlining."""
    scop = inline_pointwise(lower_graph(graph))
    found = (e for s in scop.statements for e in walk(s.value))
    return sum(isinstance(e, Cast) and e.dtype == FLOAT16 for e in found)


def test_a_chain_rounds_once():
    x = ops.input("x", (64,), FLOAT16)
    assert roundings(widened(y=ops.tanh(ops.exp(x) * 0.3) + 1.0)) == 1


def test_a_cast_of_the_model_rounds():
    x = ops.input("x", (64,), FLOAT32)
    y = ops.cast(ops.cast(ops.exp(x), np.float16), np.float32) * 3.0
    assert roundings(widened(y=y)) == 1
