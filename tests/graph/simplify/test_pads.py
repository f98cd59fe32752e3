"""Pads: merged where the window operator pads with the same value."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify.pads import merge_pads

X = {"x": ("float32", (1, 2, 6, 7))}
W = np.random.default_rng(1).standard_normal((3, 2, 3, 3)).astype(np.float32)


def padded(
    build, node, amounts=(0, 0, 1, 0, 0, 0, 2, 1), value=None, mode="constant", dtype="float32"
):
    inputs = ("x", "amounts") + (("value",) if value is not None else ())
    nodes = [Node("pad", "Pad", inputs, ("t",), {"mode": mode}), node]
    constants = {"amounts": np.int64(amounts)}
    if value is not None:
        constants["value"] = np.asarray(value, dtype)
    if node.op == "Conv":
        constants["w"] = W
    return build({"x": (dtype, X["x"][1])}, nodes, ["y"], **constants)


def conv(**attributes):
    return Node("conv", "Conv", ("t", "w"), ("y",), attributes)


def pool(op, **attributes):
    return Node("pool", op, ("t",), ("y",), {"kernel_shape": (3, 3), **attributes})


@pytest.mark.parametrize(
    ("node", "pads"),
    [
        (conv(), (1, 0, 2, 1)),
        (conv(pads=(1, 1, 0, 0), strides=(2, 2)), (2, 1, 2, 1)),
        (conv(auto_pad="VALID", dilations=(2, 1)), (1, 0, 2, 1)),
        (pool("AveragePool"), (1, 0, 2, 1)),
        (pool("AveragePool", pads=(0, 1, 0, 1), count_include_pad=1), (1, 1, 2, 2)),
    ],
)
def test_zeros_merge_into_convolutions_and_averages(node, pads, build, assert_same):
    graph = padded(build, node)
    rewritten = merge_pads(graph)
    assert [n.op for n in rewritten.graph.nodes] == [node.op]
    assert rewritten.graph.nodes[0].get("pads") == pads
    assert rewritten.notes[0].text == f"Pad 'pad' merged into {node.op} '{node.name}'"
    assert_same(graph, rewritten.graph, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "value"), [("float32", -np.inf), ("int8", -128), ("uint8", 0)])
def test_the_lowest_value_merges_into_maximum(dtype, value, build, assert_same, run_onnxruntime):
    graph = padded(build, pool("MaxPool"), value=value, dtype=dtype)
    after = merge_pads(graph).graph
    assert [n.op for n in after.nodes] == ["MaxPool"]
    assert after.nodes[0].get("pads") == (1, 0, 2, 1)
    # The reference evaluator misplaces the pads of MaxPool where they differ.
    assert_same(graph, after, run=run_onnxruntime)


def test_axes_name_the_padded_dimensions(build, assert_same):
    nodes = [Node("pad", "Pad", ("x", "amounts", "", "axes"), ("t",)), conv()]
    graph = build(X, nodes, ["y"], amounts=np.int64([1, 2, 0, 1]), axes=np.int64([-1, 2]), w=W)
    after = merge_pads(graph).graph
    assert after.nodes[0].get("pads") == (2, 1, 1, 0)
    assert_same(graph, after, rtol=1e-5)


@pytest.mark.parametrize(
    "case",
    [
        {"node": conv(), "value": 1.0},
        {"node": conv(), "value": -0.0},
        {"node": conv(), "mode": "reflect"},
        {"node": conv(), "amounts": (0, 0, 1, 0, 0, 0, -1, 0)},
        {"node": conv(auto_pad="SAME_UPPER")},
        {"node": pool("AveragePool", pads=(1, 1, 1, 1))},
        {"node": pool("AveragePool", ceil_mode=1)},
        {"node": pool("MaxPool"), "value": 0.0},
        {"node": pool("MaxPool"), "value": np.finfo(np.float32).min},
        {"node": pool("MaxPool"), "value": -np.inf, "amounts": (0, 0, 3, 0, 0, 0, 0, 0)},
    ],
)
def test_other_pads_stay(case, build):
    graph = padded(build, **case)
    assert merge_pads(graph).graph is graph


def test_batch_and_channel_pads_stay(build):
    nodes = [Node("pad", "Pad", ("x", "amounts"), ("t",)), pool("AveragePool")]
    graph = build(X, nodes, ["y"], amounts=np.int64([0, 1, 0, 0, 0, 0, 0, 0]))
    assert merge_pads(graph).graph is graph
