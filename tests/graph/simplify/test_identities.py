"""Identities: each row of the table, and the neighbours that must stay."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify.identities import drop_identities

X = {"x": ("float32", (2, 3, 4))}


def ints(*values):
    return np.array(values, np.int64)


DROPPED = {
    "dropout": (Node("n", "Dropout", ("x",), ("t",)), {}),
    "cast": (Node("n", "Cast", ("x",), ("t",), {"to": 1}), {}),
    "transpose": (Node("n", "Transpose", ("x",), ("t",), {"perm": (0, 1, 2)}), {}),
    "reshape": (Node("n", "Reshape", ("x", "c"), ("t",)), {"c": ints(2, -1, 4)}),
    "expand": (Node("n", "Expand", ("x", "c"), ("t",)), {"c": ints(3, 1)}),
    "tile": (Node("n", "Tile", ("x", "c"), ("t",)), {"c": ints(1, 1, 1)}),
    "slice": (Node("n", "Slice", ("x", "c", "d"), ("t",)), {"c": ints(0, 0), "d": ints(9, 9)}),
    "pad": (Node("n", "Pad", ("x", "c"), ("t",)), {"c": ints(0, 0, 0, 0, 0, 0)}),
    "concat": (Node("n", "Concat", ("x",), ("t",), {"axis": 1}), {}),
    "split": (Node("n", "Split", ("x",), ("t",), {"axis": 1, "num_outputs": 1}), {}),
    "max": (Node("n", "Max", ("x",), ("t",)), {}),
    "clip": (Node("n", "Clip", ("x",), ("t",)), {}),
    "reduce": (Node("n", "ReduceSum", ("x",), ("t",), {"noop_with_empty_axes": 1}), {}),
    "pool": (Node("n", "MaxPool", ("x",), ("t",), {"kernel_shape": (1,)}), {}),
}


@pytest.mark.parametrize("case", DROPPED)
def test_what_does_nothing_is_dropped(case, build, assert_same):
    node, constants = DROPPED[case]
    graph = build(X, [node, Node("r", "Relu", ("t",), ("y",))], ["y"], **constants)
    rewritten = drop_identities(graph)
    assert [str(n) for n in rewritten.graph.nodes] == ["y = Relu(x)"]
    assert rewritten.notes[0].text.startswith(f"{node.op} 'n' dropped: ")
    assert_same(graph, rewritten.graph)


KEPT = {
    "training dropout": (
        Node("n", "Dropout", ("x", "c", "d"), ("t",)),
        {"c": np.float32(0.5).reshape(()), "d": np.bool_(True).reshape(())},
    ),
    "transpose": (Node("n", "Transpose", ("x",), ("t",)), {}),
    "reversal": (
        Node("n", "Slice", ("x", "c", "d", "", "e"), ("t",)),
        {"c": ints(9), "d": ints(-9), "e": ints(-1)},
    ),
    "pad": (Node("n", "Pad", ("x", "c"), ("t",)), {"c": ints(0, 0, 0, 0, 0, 1)}),
    "unit sum": (
        Node("n", "ReduceSum", ("x", "c"), ("t",), {"noop_with_empty_axes": 0}),
        {"c": ints(1)},
    ),
    "pool": (Node("n", "MaxPool", ("x",), ("t",), {"kernel_shape": (1,), "strides": (2,)}), {}),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_does_something_stays(case, build):
    node, constants = KEPT[case]
    graph = build(X, [node, Node("r", "Relu", ("t",), ("y",))], ["y"], **constants)
    assert drop_identities(graph).graph is graph


def test_an_output_takes_over_the_name(build, assert_same):
    nodes = [
        Node("r", "Relu", ("x",), ("t",)),
        Node("i", "Identity", ("t",), ("y",)),
        Node("e", "Exp", ("t",), ("z",)),
    ]
    graph = build(X, nodes, ["y", "z"])
    after = drop_identities(graph).graph
    assert [str(n) for n in after.nodes] == ["y = Relu(x)", "z = Exp(y)"]
    assert_same(graph, after)


def test_a_constant_output_takes_over_the_value(build, assert_same):
    graph = build(X, [Node("i", "Identity", ("c",), ("y",))], ["y"], c=np.float32([1, 2]))
    after = drop_identities(graph).graph
    assert not after.nodes
    assert_same(graph, after)


def test_a_copy_between_an_input_and_outputs_stays(build, assert_same):
    nodes = [Node("i", "Identity", ("x",), ("y",)), Node("j", "Identity", ("y",), ("z",))]
    graph = build(X, nodes, ["y", "z"])
    assert drop_identities(graph).graph is graph
    dropout = build(X, [Node("d", "Dropout", ("x",), ("y",))], ["y"])
    after = drop_identities(dropout).graph
    assert [n.op for n in after.nodes] == ["Identity"]
    assert drop_identities(after).graph is after
    assert_same(dropout, after)


@pytest.mark.parametrize(
    ("source", "middle", "target", "casts"),
    [
        ("float16", 1, 10, 0),  # float16 -> float32 -> float16
        ("float16", 1, 11, 1),  # float16 -> float32 -> float64
        ("int8", 7, 2, 1),  # int8 -> int64 -> uint8: wraps either way
        ("int32", 11, 1, 1),  # int32 -> float64 -> float32: one rounding
        ("bool", 1, 7, 1),
        ("int32", 1, 6, 2),  # float32 does not hold each int32
        ("int64", 11, 7, 2),  # nor float64 each int64, though NumPy calls it safe
        ("float32", 10, 1, 2),
        ("int8", 1, 2, 2),  # float -> uint8 is undefined for negative values
        ("float32", 11, 6, 2),
    ],
)
def test_cast_chains_merge_only_if_every_value_survives(
    source, middle, target, casts, build, assert_same
):
    nodes = [
        Node("a", "Cast", ("x",), ("t",), {"to": middle}),
        Node("b", "Cast", ("t",), ("u",), {"to": target}),
        Node("c", "Concat", ("u", "u"), ("y",), {"axis": 0}),
    ]
    graph = build({"x": (source, (5,))}, nodes, ["y"])
    after = drop_identities(graph).graph
    assert sum(n.op == "Cast" for n in after.nodes) == casts
    if source != "bool":
        assert_same(graph, after)


def test_transposes_compose(build, assert_same):
    perms = [(1, 2, 0), (1, 0, 2), (2, 1, 0)]
    names = ["x", "a", "b", "y"]
    nodes = [
        Node(f"t{k}", "Transpose", (names[k],), (names[k + 1],), {"perm": p})
        for k, p in enumerate(perms)
    ]
    graph = build(X, nodes, ["y"])
    after = drop_identities(graph).graph
    assert len(after.nodes) == 1
    assert_same(graph, after)


def test_inverse_transposes_cancel(build, assert_same):
    nodes = [
        Node("a", "Transpose", ("x",), ("t",), {"perm": (1, 2, 0)}),
        Node("b", "Transpose", ("t",), ("u",), {"perm": (2, 0, 1)}),
        Node("r", "Relu", ("u",), ("y",)),
    ]
    graph = build(X, nodes, ["y"])
    after = drop_identities(graph).graph
    assert [str(n) for n in after.nodes] == ["y = Relu(x)"]
    assert_same(graph, after)


def test_reshapes_of_all_kinds_merge(build, assert_same):
    nodes = [
        Node("a", "Flatten", ("x",), ("p",)),
        Node("b", "Unsqueeze", ("p", "one"), ("q",)),
        Node("c", "Reshape", ("q", "shape"), ("r",)),
        Node("d", "Squeeze", ("r", "zero"), ("y",)),
    ]
    graph = build(X, nodes, ["y"], one=ints(1), zero=ints(0), shape=ints(1, 4, 6))
    after = drop_identities(graph).graph
    assert [n.op for n in after.nodes] == ["Reshape"]
    assert_same(graph, after)


def test_a_symbolic_dimension_is_copied_by_the_merged_reshape(build, assert_same):
    nodes = [
        Node("a", "Unsqueeze", ("x", "c"), ("p",)),
        Node("b", "Reshape", ("p", "d"), ("y",)),
    ]
    graph = build({"x": ("float32", ("N", 6))}, nodes, ["y"], c=ints(1), d=ints(0, 2, 3))
    after = drop_identities(graph).graph
    assert [n.op for n in after.nodes] == ["Reshape"]
    assert after.value(after.nodes[0].inputs[1]).tolist() == [0, 2, 3]
    assert_same(graph, after)


def test_split_and_concat_cancel_if_complete_and_in_order(build, assert_same):
    split = Node("s", "Split", ("x",), ("a", "b"), {"axis": 2, "num_outputs": 2})
    joined = Node("c", "Concat", ("a", "b"), ("t",), {"axis": -1})
    swapped = Node("d", "Concat", ("b", "a"), ("u",), {"axis": -1})
    graph = build(X, [split, joined, swapped, Node("m", "Mul", ("t", "u"), ("y",))], ["y"])
    after = drop_identities(graph).graph
    assert [n.name for n in after.nodes] == ["s", "d", "m"]
    assert_same(graph, after)


def test_empty_operands_of_concat_are_dropped(build, assert_same):
    nodes = [Node("c", "Concat", ("x", "e", "x"), ("y",), {"axis": 1})]
    graph = build(X, nodes, ["y"], e=np.zeros((2, 0, 4), np.float32))
    after = drop_identities(graph).graph
    assert after.nodes[0].inputs == ("x", "x")
    assert_same(graph, after)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_over_extents_of_one(keepdims, build, assert_same):
    nodes = [
        Node("m", "ReduceMax", ("x", "c"), ("t",), {"keepdims": keepdims}),
        Node("r", "Neg", ("t",), ("y",)),
    ]
    graph = build({"x": ("float32", (2, 1, 3))}, nodes, ["y"], c=ints(1))
    after = drop_identities(graph).graph
    assert [n.op for n in after.nodes] == (["Neg"] if keepdims else ["Squeeze", "Neg"])
    assert_same(graph, after)
