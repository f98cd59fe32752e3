"""Bytes that only move, or are compared."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify.bytes_moved import move_bytes

S, Z = np.float32(0.37).reshape(()), np.uint8(13).reshape(())
MOVED = {
    "pool": (Node("n", "MaxPool", ("f",), ("t",), {"kernel_shape": (2, 2), "pads": (1,) * 4}), {}),
    "transpose": (Node("n", "Transpose", ("f",), ("t",), {"perm": (0, 2, 3, 1)}), {}),
    "reshape": (Node("n", "Reshape", ("f", "c"), ("t",)), {"c": np.array([6, -1], np.int64)}),
    "twice": (Node("n", "Concat", ("f", "f"), ("t",), {"axis": 1}), {}),
}


def graph_of(build, node, scales=(S, S), zeros=(Z, Z), **constants):
    nodes = [
        Node("d", "DequantizeLinear", ("x", "s", "z"), ("f",)),
        node,
        Node("q", "QuantizeLinear", ("t", "u", "v"), ("r",)),
        Node("e", "Cast", ("r",), ("y",), {"to": 6}),
    ]
    known = {"s": scales[0], "u": scales[1], "z": zeros[0], "v": zeros[1]}
    return build({"x": ("uint8", (2, 3, 4, 5))}, nodes, ["y"], **known, **constants)


@pytest.mark.parametrize("case", MOVED)
def test_they_stay_bytes(case, build, assert_same):
    node, constants = MOVED[case]
    graph = graph_of(build, node, **constants)
    moved = move_bytes(graph)
    assert [n.op for n in moved.graph.nodes] == [node.op, "Cast"]
    assert moved.notes[0].text == f"{node.op} 'n' takes bytes as they are"
    assert_same(graph, moved.graph)


@pytest.mark.parametrize(
    "scale", [2.0**-126, 1e-30, 0.1, 1 / 3, 0.37, np.nextafter(np.float32(1), 0), 7e5, 2.0**100]
)
def test_each_byte_comes_back(scale):
    scale = np.float32(scale)
    for zero in range(256):
        q = np.arange(256) - zero
        back = np.rint((q.astype(np.float32) * scale) / scale)
        np.testing.assert_array_equal(back, q)


def test_nothing_is_left_of_nothing(build, assert_same):
    graph = graph_of(build, Node("n", "Identity", ("f",), ("t",)))
    graph = move_bytes(graph).graph
    assert [n.op for n in graph.nodes] == ["Identity", "Cast"]
    nodes = [
        Node("p", "Add", ("x", "x"), ("w",)),
        Node("d", "DequantizeLinear", ("w", "s", "z"), ("f",)),
        Node("q", "QuantizeLinear", ("f", "s", "z"), ("r",)),
        Node("e", "Cast", ("r",), ("y",), {"to": 6}),
    ]
    graph = build({"x": ("uint8", (2, 3))}, nodes, ["y"], s=S, z=Z)
    moved = move_bytes(graph)
    assert [n.op for n in moved.graph.nodes] == ["Add", "Cast"]
    assert_same(graph, moved.graph)


@pytest.mark.parametrize(
    ("node", "more"),
    [
        (MOVED["pool"][0], {"scales": (S, S * 2)}),
        (MOVED["pool"][0], {"zeros": (Z, Z + np.uint8(1))}),
        (MOVED["pool"][0], {"scales": (-S, -S)}),
        (MOVED["pool"][0], {"scales": (S * np.float32(1e-38), S * np.float32(1e-38))}),
        (Node("n", "Relu", ("f",), ("t",)), {}),
        (Node("n", "Pad", ("f", "c"), ("t",)), {"c": np.array([1] * 8, np.int64)}),
    ],
    ids=["scale", "zero", "negative", "subnormal", "relu", "pad"],
)
def test_others_are_restored(node, more, build):
    graph = graph_of(build, node, **more)
    assert move_bytes(graph).graph is graph
