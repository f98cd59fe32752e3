"""Gemm: factors and transpositions move into constants."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify.gemm import normalize_gemms

RNG = np.random.default_rng(2)
B = RNG.standard_normal((5, 4)).astype(np.float32)
C = RNG.standard_normal((5,)).astype(np.float32)
ATTRIBUTES = {"alpha": 0.5, "beta": 3.0, "transB": 1}


def test_everything_folds_into_constants(build, assert_same):
    nodes = [Node("g", "Gemm", ("x", "b", "c"), ("y",), ATTRIBUTES)]
    graph = build({"x": ("float32", (2, 4))}, nodes, ["y"], b=B, c=C)
    rewritten = normalize_gemms(graph)
    node = rewritten.graph.nodes[0]
    assert node.attributes == {}
    np.testing.assert_array_equal(rewritten.graph.value(node.inputs[1]), B.T / 2)
    assert rewritten.notes[0].text == "transB, alpha, beta of Gemm 'g' folded into constants"
    assert normalize_gemms(rewritten.graph).graph is rewritten.graph
    assert_same(graph, rewritten.graph, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variable_operands_keep_what_is_theirs(dtype, build, assert_same):
    nodes = [Node("g", "Gemm", ("a", "x", "c"), ("y",), {"transA": 1, **ATTRIBUTES})]
    types = {"x": (dtype, (3, 5)), "c": (dtype, (4, 3))}
    graph = build(types, nodes, ["y"], a=B.astype(dtype))
    after = normalize_gemms(graph).graph
    assert after.nodes[0].attributes == {"beta": 3.0, "transB": 1}
    assert_same(graph, after, rtol=1e-5)


def test_overflow_stays_an_attribute(build):
    nodes = [Node("g", "Gemm", ("x", "b"), ("y",), {"alpha": 1e3})]
    big = np.full((4, 5), 1e38, np.float32)
    graph = build({"x": ("float32", (2, 4))}, nodes, ["y"], b=big)
    assert normalize_gemms(graph).graph is graph


def test_a_large_shared_constant_is_not_copied(build):
    shared = np.zeros((256, 128), np.float32)
    nodes = [
        Node("g", "Gemm", ("x", "b"), ("y",), {"transB": 1}),
        Node("h", "Gather", ("b", "i"), ("z",)),
    ]
    types = {"x": ("float32", (2, 128)), "i": ("int64", (2,))}
    graph = build(types, nodes, ["y", "z"], b=shared)
    assert normalize_gemms(graph).graph is graph
