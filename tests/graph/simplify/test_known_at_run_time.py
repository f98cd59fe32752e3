"""Rewrites that spare products of sizes known only at run time."""

import numpy as np
import pytest

from polyc import ops
from polyc.graph.builder import apply, graph_of, input_value
from polyc.graph.inference.evaluate import evaluate_node
from polyc.graph.inference.fix_sizes import fix_graph
from polyc.graph.simplify import simplify

RNG = np.random.default_rng(3)
W = RNG.standard_normal((8, 5)).astype(np.float32)
C = RNG.standard_normal(5).astype(np.float32)


def run(graph, feeds):
    """The outputs of a graph for the sizes of its feeds, by onnx's reference evaluator."""
    symbols = {}
    for name in graph.inputs:
        for d, n in zip(graph.tensors[name].shape, feeds[name].shape, strict=True):
            symbols |= {} if isinstance(d, int) else {str(d): n}
    fixed = fix_graph(graph, symbols)
    values = {n: t.value for n, t in fixed.tensors.items() if t.is_constant} | dict(feeds)
    for node in fixed.nodes:
        results = evaluate_node(node, [values[name] if name else None for name in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
    return [values[name] for name in fixed.outputs]


def simplified(value, feeds):
    """The operators that are left; what the graph computes stays what it was."""
    graph = graph_of({"y": value})
    after, _ = simplify(graph)
    for got, want in zip(run(after, feeds), run(graph, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return [node.op for node in after.nodes]


def sizes_of(x):
    shape = ops.shape_of(x)
    return [apply("Gather", [shape, np.int64(k)]) for k in range(2)]


def reshaped(x, *parts):
    return apply("Reshape", [x, ops.concat([ops.reshape(p, (1,)) for p in parts], axis=0)])


@pytest.mark.parametrize("bias", [True, False])
def test_rows_of_a_product_keep_their_dimensions(bias):
    x = input_value("x", ("b", "s", 8))
    b, s = sizes_of(x)
    flat = ops.reshape(x, (-1, 8))
    product = apply("Gemm", [flat, W, C] if bias else [flat, W])
    y = reshaped(product, b, s, np.int64(5))
    feeds = {"x": RNG.standard_normal((3, 4, 8)).astype(np.float32)}
    assert simplified(y, feeds) == (["MatMul", "Add"] if bias else ["MatMul"])


def test_heads_are_joined_before_a_product():
    x = input_value("x", ("b", "s", 2, 4))
    b, s = sizes_of(x)
    y = reshaped(apply("Gemm", [ops.reshape(x, (-1, 8)), W, C]), b, s, np.int64(5))
    feeds = {"x": RNG.standard_normal((3, 4, 2, 4)).astype(np.float32)}
    assert simplified(y, feeds) == ["Reshape", "MatMul", "Add"]


def test_rows_that_a_set_can_count_stay():
    x = input_value("x", (3, "s", 8))
    y = apply("Gemm", [ops.reshape(x, (-1, 8)), W, C])
    feeds = {"x": RNG.standard_normal((3, 4, 8)).astype(np.float32)}
    assert simplified(y, feeds) == ["Reshape", "Gemm"]


def positions(x, first, second, width):
    """x flattened, at i * width + j."""
    start, step = np.int64(0), np.int64(1)
    i = ops.unsqueeze(apply("Range", [start, first, step]), (1, 2))
    j = ops.unsqueeze(apply("Range", [start, second, step]), (0, 1))
    return apply("Gather", [ops.reshape(x, (-1,)), i * width + j])


def test_positions_that_count_all_elements_are_no_lookup():
    x = input_value("x", ("b", "s"))
    b, s = sizes_of(x)
    feeds = {"x": RNG.standard_normal((3, 4)).astype(np.float32)}
    assert simplified(positions(x, b, s, s), feeds) == ["Unsqueeze"]


def test_positions_of_something_else_stay_a_lookup():
    x = input_value("x", ("b", "s"))
    b, s = sizes_of(x)
    feeds = {"x": RNG.standard_normal((4, 4)).astype(np.float32)}
    assert "Gather" in simplified(positions(x, s, b, s), feeds)
    assert "Gather" in simplified(positions(x, b, s, b), feeds)
    assert "Gather" in simplified(positions(x, np.int64(2), s, s), feeds)
