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


def tokens_of(x, channels=3):
    """The pixels of an image as rows."""
    return ops.transpose(ops.reshape(x, (0, channels, -1)), (0, 2, 1))


def test_pixels_become_tokens_after_the_transposition():
    x = input_value("x", ("n", 3, "h", "w"))
    feeds = {"x": RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)}
    assert simplified(tokens_of(x), feeds) == ["Transpose", "Reshape"]


def test_tokens_become_pixels_before_the_transposition():
    x = input_value("x", ("n", 3, "h", "w"))
    feeds = {"x": RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)}
    rows = ops.relu(tokens_of(x))
    back = apply("Reshape", [ops.transpose(rows, (0, 2, 1)), ops.shape_of(x)])
    operators = simplified(back, feeds)
    assert operators.index("Relu") < operators.index("Transpose", 1) == len(operators) - 1
    assert operators.count("Transpose") == operators.count("Reshape") == 2


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), ("n", 3, 4, 5), ("n", 3, "h", 1)])
def test_pixels_that_can_be_counted_stay_as_they_are(shape):
    x = input_value("x", shape)
    sizes = [d if isinstance(d, int) else k + 2 for k, d in enumerate(shape)]
    feeds = {"x": RNG.standard_normal(sizes).astype(np.float32)}
    assert simplified(tokens_of(x), feeds)[-2:] == ["Reshape", "Transpose"]


def test_a_reshape_that_others_read_stays():
    x = input_value("x", ("n", 3, "h", "w"))
    flat = ops.reshape(x, (0, 3, -1))
    graph = graph_of({"y": ops.transpose(flat, (0, 2, 1)), "z": flat})
    assert [node.op for node in simplify(graph)[0].nodes] == ["Reshape", "Transpose"]


def test_rows_that_are_not_of_an_image_stay():
    """[n 3 h w] as [n 3h w]: the transposition moves what is still together."""
    x = input_value("x", ("n", 3, "h", "w"))
    feeds = {"x": RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)}
    sizes = apply("Gather", [ops.shape_of(x), np.array([0, 3])])
    shape = apply("Gather", [ops.concat([sizes, np.array([-1])], axis=0), np.array([0, 2, 1])])
    moved = ops.transpose(apply("Reshape", [x, shape]), (0, 2, 1))
    assert simplified(moved, feeds)[-2:] == ["Reshape", "Transpose"]


def group_norm(x, groups, channels=6):
    """As PyTorch exports it: the elements of a group are a row."""
    flat = ops.reshape(x, (0, groups, -1))
    ones = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    rows = apply("InstanceNormalization", [flat, *ones], epsilon=1e-5)
    return apply("Reshape", [rows, ops.shape_of(x)])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups_of_channels_are_normalised_where_they_lie(groups):
    x = input_value("x", ("n", 6, "h", "w"))
    graph = graph_of({"y": group_norm(x, groups)})
    after, _ = simplify(graph)
    (norm,) = (n for n in after.nodes if n.op == "InstanceNormalization")
    assert [str(d) for d in after.tensors[norm.inputs[0]].shape[1:]] == [
        str(groups), str(6 // groups), "h", "w"
    ]  # fmt: skip
    feeds = {"x": RNG.standard_normal((2, 6, 4, 5)).astype(np.float32)}
    for got, want in zip(run(after, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_groups_whose_elements_can_be_counted_stay_as_they_are():
    x = input_value("x", ("n", 6, "h", 5))
    after, _ = simplify(graph_of({"y": group_norm(x, 2)}))
    (norm,) = (n for n in after.nodes if n.op == "InstanceNormalization")
    assert after.tensors[norm.inputs[0]].rank == 3
