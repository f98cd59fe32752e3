"""Gather by constants is a view where the positions are affine, else it reads by data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import RuntimeFailure
from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from polyc.scop.lower.movement.known_places import find_affine
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.interpreter import interpret

X = np.arange(24, dtype=np.float32).reshape(4, 6)
CASES = backend_cases("Gather", "GatherElements", "GatherND")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_backend_case(case):
    (statement,) = check_case(case).statements
    assert any(load.dynamic for load in statement.loads)


@pytest.mark.parametrize(
    ("positions", "view"),
    [(2, True), (-1, True), ([1, 3, 5], True), ([5, 3, 1], True), ([-2, -1], True), ([4], True),
     ([[0, 1], [2, 3]], True), ([0, 1, 3], False), ([-1, 0, 1], False)],
)  # fmt: skip
def test_gather_by_constants(positions, view):
    indices = np.array(positions, np.int64)
    scop = check_node("Gather", [X, indices], {"axis": 1}, constant_inputs=(1,))
    (statement,) = scop.statements
    assert view != any(load.dynamic for load in statement.loads)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-4, 3), max_size=4), st.sampled_from(["int32", "int64"]))
def test_gather_by_data(positions, dtype):
    indices = np.array(positions, dtype).reshape(-1, 1)
    scop = check_node("Gather", [X, indices], expected=[np.take(X, indices, axis=0)])
    assert len(scop.statements) == (1 if positions else 0)


def test_an_index_outside_stops_the_run():
    with pytest.raises(RuntimeFailure, match="4 elements"):
        check_node("Gather", [X, np.array([0, 4])], expected=[X[:2]])


@pytest.mark.parametrize(
    ("values", "formula"),
    [([[1, 3, 5], [7, 9, 11]], "1 + 6*i + 2*j"), ([[4, 4]], "4 + 0*j"), ([0, 1, 3], None),
     ([], "0"), (7, "7")],
)  # fmt: skip
def test_find_affine(values, formula):
    array = np.array(values, np.int64)
    assert find_affine(array, ["i", "j"][-array.ndim or 2 :]) == formula


def test_data_behind_a_view_is_copied_first():
    tensors = [Tensor("x", X.dtype, (4, 6)), Tensor("t", X.dtype, (6, 4)),
               Tensor("i", np.dtype(np.int64), (2,)), Tensor("y", X.dtype, (2, 4))]  # fmt: skip
    nodes = (Node("t", "Transpose", ("x",), ("t",)), Node("g", "Gather", ("t", "i"), ("y",)))
    graph = Graph("g", nodes, {t.name: t for t in tensors}, ("x", "i"), ("y",))
    scop = lower_graph(graph)
    assert [s.origin for s in scop.statements] == [("g",), ("g",)]
    result = interpret(scop, {"x": X, "i": np.array([5, -6])})
    np.testing.assert_array_equal(result["y"], X.T[[5, 0]])
