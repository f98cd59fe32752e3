"""Dead code: nodes, chains of nodes, optional results; graph inputs stay."""

from polyc.graph.ir import Node
from polyc.graph.simplify.dead_code import remove_dead_code


def test_nodes_that_no_output_needs_go_and_inputs_stay(build, assert_same):
    nodes = [
        Node("a", "Relu", ("x",), ("y",)),
        Node("b", "Exp", ("z",), ("t",)),
        Node("c", "Neg", ("t",), ("u",)),
    ]
    graph = build({"x": ("float32", (2,)), "z": ("float32", (2,))}, nodes, ["y"])
    rewritten = remove_dead_code(graph)
    assert [n.name for n in rewritten.graph.nodes] == ["a"]
    assert rewritten.graph.inputs == ("x", "z")
    assert [n.text for n in rewritten.notes] == [
        "Exp 'b' removed: no output depends on it",
        "Neg 'c' removed: no output depends on it",
    ]
    assert_same(graph, rewritten.graph)


def test_unread_optional_results_are_not_computed(build, assert_same):
    nodes = [Node("p", "MaxPool", ("x",), ("y", "where"), {"kernel_shape": (2, 2)})]
    graph = build({"x": ("float32", (1, 2, 4, 4))}, nodes, ["y"])
    after = remove_dead_code(graph).graph
    assert after.nodes[0].outputs == ("y",)
    assert_same(graph, after)


def test_all_results_of_a_variadic_operator_stay(build):
    nodes = [Node("s", "Split", ("x",), ("a", "b"), {"num_outputs": 2})]
    graph = build({"x": ("float32", (4,))}, nodes, ["b"])
    rewritten = remove_dead_code(graph)
    assert rewritten.graph is graph
    assert not rewritten.notes
