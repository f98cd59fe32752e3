"""Common subexpressions: equal nodes and constants merge, whatever differs in a bit does not."""

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.simplify import simplify
from polyc.graph.simplify.common_subexpressions import merge_common_subexpressions

X = {"x": ("float32", (2, 4))}


def merged(graph):
    return merge_common_subexpressions(graph).graph


def test_equal_nodes_merge_in_cascade(build, assert_same):
    nodes = [
        Node("a", "Exp", ("x",), ("p",)),
        Node("b", "Exp", ("x",), ("q",)),
        Node("c", "Neg", ("p",), ("r",)),
        Node("d", "Neg", ("q",), ("s",)),
        Node("e", "Mul", ("r", "s"), ("y",)),
    ]
    graph = build(X, nodes, ["y"])
    rewritten = merge_common_subexpressions(graph)
    assert [n.name for n in rewritten.graph.nodes] == ["a", "c", "e"]
    assert "Neg 'd' merged with 'c', which computes the same" in [n.text for n in rewritten.notes]
    assert_same(graph, rewritten.graph)


def test_operands_of_commutative_operators_are_unordered(build, assert_same):
    nodes = [
        Node("a", "Add", ("x", "z"), ("p",)),
        Node("b", "Add", ("z", "x"), ("q",)),
        Node("c", "Sub", ("x", "z"), ("r",)),
        Node("d", "Sub", ("z", "x"), ("s",)),
        Node("e", "Sum", ("p", "q", "r", "s"), ("y",)),
    ]
    graph = build({**X, "z": X["x"]}, nodes, ["y"])
    after = merged(graph)
    assert [n.name for n in after.nodes] == ["a", "c", "d", "e"]
    assert_same(graph, after)


def test_attributes_have_to_be_equal(build, assert_same):
    nodes = [
        Node("a", "Split", ("x",), ("a1", "a2"), {"axis": 1, "num_outputs": 2}),
        Node("b", "Split", ("x",), ("b1", "b2"), {"axis": 1, "num_outputs": 2}),
        Node("c", "Split", ("x",), ("c1", "c2"), {"axis": 0, "num_outputs": 2}),
        Node("d", "Transpose", ("x",), ("d1",), {"perm": [1, 0]}),
        Node("e", "Transpose", ("x",), ("e1",), {"perm": (1, 0)}),
        Node("f", "LeakyRelu", ("x",), ("f1",), {"alpha": 0.0}),
        Node("g", "LeakyRelu", ("x",), ("g1",), {"alpha": -0.0}),
    ]
    outputs = ["a1", "b2", "c1", "c2", "d1", "e1", "f1", "g1"]
    graph = build(X, nodes, outputs)
    after = merged(graph)
    assert [n.name for n in after.nodes] == ["a", "c", "d", "e1_copy", "f", "g"]
    assert_same(graph, after)


def test_attributes_may_be_arrays(build):
    shape = np.int64([2])
    nodes = [
        Node("a", "ConstantOfShape", ("s",), ("p",), {"value": np.float32([1])}),
        Node("b", "ConstantOfShape", ("s",), ("q",), {"value": np.float32([1])}),
        Node("c", "ConstantOfShape", ("s",), ("r",), {"value": np.float32([2])}),
        Node("d", "Sum", ("p", "q", "r"), ("y",)),
    ]
    after = merged(build({}, nodes, ["y"], s=shape))
    assert [n.name for n in after.nodes] == ["a", "c", "d"]


def test_constants_merge_by_content_but_keep_signed_zeros_and_types_apart(build, assert_same):
    constants = {
        "a": np.float32([0, 1, 2, 3]),
        "b": np.float32([0, 1, 2, 3]),
        "c": np.float32([-0.0, 1, 2, 3]),
    }
    nodes = [
        Node("m", "Sum", ("x", "a", "b", "c"), ("y",)),
        Node("k", "Shape", ("x",), ("s",)),
    ]
    graph = build(X, nodes, ["y", "s"], **constants)
    after = merged(graph)
    assert after.nodes[0].inputs == ("x", "a", "a", "c")
    assert_same(graph, after)


def test_outputs_keep_their_names(build, assert_same):
    nodes = [Node("a", "Exp", ("x",), ("p",)), Node("b", "Exp", ("x",), ("q",))]
    graph = build(X, nodes, ["q", "p"])
    after, _ = simplify(graph)
    assert [n.op for n in after.nodes] == ["Exp", "Identity"]
    assert_same(graph, after)


def test_random_nodes_stay_apart(build):
    nodes = [
        Node("a", "RandomNormalLike", ("x",), ("p",)),
        Node("b", "RandomNormalLike", ("x",), ("q",)),
    ]
    types = build({**X, "p": X["x"], "q": X["x"]}, [], [])
    graph = types.rewrite(nodes, outputs=["p", "q"])
    assert not merge_common_subexpressions(graph).notes
