"""Attention's scores: one factor behind the product, no zero in front of the softmax."""

import numpy as np
import pytest

from polyc import ops
from polyc.graph.builder import graph_of
from polyc.graph.ir import Node
from polyc.graph.simplify import simplify
from polyc.graph.simplify.scores import simplify_scores

Q = {"q": ("float32", (2, 3, 4)), "k": ("float32", (2, 4, 5))}


def product(build, c, d):
    nodes = [Node("a", "Mul", ("q", "c"), ("qc",)), Node("b", "Mul", ("d", "k"), ("kd",)),
             Node("m", "MatMul", ("qc", "kd"), ("y",))]  # fmt: skip
    return build(Q, nodes, ["y"], c=np.asarray(c, np.float32), d=np.asarray(d, np.float32))


def test_factors_of_both_operands_move_behind(build, assert_same):
    graph = product(build, 0.5, [0.25])
    after = simplify_scores(graph).graph
    assert [n.op for n in after.nodes] == ["MatMul", "Mul"]
    assert after.value(after.nodes[1].inputs[1]) == 0.125
    assert_same(graph, after, rtol=1e-5)


@pytest.mark.parametrize(("c", "d"), [(2.0, 0.5), (0.0, 0.5), ([[0.5], [0.25], [1]], 0.5)])
def test_what_could_overflow_or_is_no_scalar_stays(build, c, d):
    graph = product(build, c, d)
    assert simplify_scores(graph).graph is graph


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_before_a_softmax_is_forgotten(build, assert_same, zero):
    nodes = [Node("a", "Add", ("z", "x"), ("s",)), Node("b", "Softmax", ("s",), ("y",))]
    zeros = np.full((3, 4), zero, np.float32)
    graph = build({"x": ("float32", (2, 3, 4))}, nodes, ["y"], z=zeros)
    after = simplify_scores(graph).graph
    assert [n.op for n in after.nodes] == ["Softmax"]
    assert_same(graph, after)


def test_a_zero_that_stretches_the_scores_stays(build):
    nodes = [Node("a", "Add", ("x", "z"), ("s",)), Node("b", "Softmax", ("s",), ("y",))]
    graph = build({"x": ("float32", (1, 4))}, nodes, ["y"], z=np.zeros((3, 4), np.float32))
    assert simplify_scores(graph).graph is graph


def test_attention_is_four_nodes():
    q, k, v = (ops.input(n, (1, 2, 6, 8)) for n in "qkv")
    graph, _ = simplify(graph_of({"y": ops.attention(q, k, v)}))
    assert [n.op for n in graph.nodes] == ["Transpose", "MatMul", "Mul", "Softmax", "MatMul"]
