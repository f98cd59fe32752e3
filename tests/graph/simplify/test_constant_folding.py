"""Constant folding: what is computed, and what is left because it would grow or is random."""

import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.constant_folding import fold_constants

X = {"x": ("float32", (2, 3))}


def test_constants_are_computed_through_several_nodes(build, assert_same):
    two, three = np.float32([2]), np.float32([3])
    nodes = [
        Node("m", "Mul", ("a", "b"), ("p",)),
        Node("e", "Exp", ("p",), ("q",)),
        Node("s", "Add", ("x", "q"), ("y",)),
    ]
    graph = build(X, nodes, ["y"], a=two, b=three)
    rewritten = fold_constants(graph)
    assert [n.op for n in rewritten.graph.nodes] == ["Add"]
    assert [n.text for n in rewritten.notes] == [
        "Mul 'm' computed at compile time",
        "Exp 'e' computed at compile time",
    ]
    assert_same(graph, rewritten.graph)


def test_an_output_may_become_a_constant(build, assert_same):
    graph = build(X, [Node("n", "Neg", ("a",), ("y",))], ["y"], a=np.float32([1, 2]))
    after = fold_constants(graph).graph
    assert not after.nodes
    np.testing.assert_array_equal(after.value("y"), [-1, -2])
    assert_same(graph, after)


def test_several_outputs_are_folded_together(build, assert_same):
    nodes = [
        Node("s", "Split", ("a",), ("p", "q"), {"axis": 0, "num_outputs": 2}),
        Node("t", "Add", ("x", "q"), ("y",)),
    ]
    graph = build(X, nodes, ["y", "p"], a=np.arange(6, dtype=np.float32).reshape(2, 3))
    after = fold_constants(graph).graph
    assert [n.op for n in after.nodes] == ["Add"]
    assert_same(graph, after)


def test_known_dimensions_of_a_symbolic_shape(build, assert_same):
    nodes = [
        Node("h", "Shape", ("x",), ("s",)),
        Node("g", "Gather", ("s", "one"), ("d",)),
        Node("l", "Slice", ("s", "from", "to"), ("e",)),
        Node("u", "Gather", ("s", "zero"), ("n",)),
    ]
    graph = build(
        {"x": ("float32", ("N", 4, 5))},
        nodes,
        ["d", "e", "n"],
        zero=np.int64(0).reshape(()),
        one=np.int64(1).reshape(()),
        **{"from": np.int64([-2]), "to": np.int64([9])},
    )
    after = fold_constants(graph).graph
    assert [n.name for n in after.nodes] == ["h", "u"]
    assert after.value("d") == 4
    assert after.value("e").tolist() == [4, 5]
    assert_same(graph, after)


def test_a_value_much_larger_than_its_inputs_stays_a_node(build):
    nodes = [
        Node("e", "Expand", ("a", "shape"), ("t",)),
        Node("s", "Add", ("x", "t"), ("y",)),
    ]
    graph = build(
        {"x": ("float32", (2048, 2048))},
        nodes,
        ["y"],
        a=np.float32([1]),
        shape=np.int64([2048, 2048]),
    )
    rewritten = fold_constants(graph)
    assert rewritten.graph is graph
    assert not rewritten.notes


def test_random_operators_are_never_folded():
    nodes = [
        Node("r", "RandomNormalLike", ("a",), ("t",)),
        Node("b", "Bernoulli", ("a",), ("u",)),
    ]
    half = np.float32([0.5, 0.5])
    table = {k: Tensor(k, half.dtype, half.shape) for k in ("t", "u")}
    table["a"] = Tensor("a", half.dtype, half.shape, half)
    assert not fold_constants(Graph("random", tuple(nodes), table, (), ("t", "u"))).notes
