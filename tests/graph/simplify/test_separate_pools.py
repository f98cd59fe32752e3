"""Large windows of a maximum or mean, one dimension after another."""

import numpy as np
import pytest

from polyc import compile
from polyc.graph.ir import Node
from polyc.graph.simplify.separate_pools import separate_pools


def pool(build, shape=(2, 3, 13, 11), dtype="float32", outputs=("y",), **attributes):
    node = Node("pool", "MaxPool", ("x",), outputs, {"kernel_shape": (5, 5), **attributes})
    return build({"x": (dtype, shape)}, [node], list(outputs))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": (2, 2, 2, 2)},
        {"pads": (1, 0, 3, 4)},
        {"kernel_shape": (4, 7), "pads": (3, 6, 0, 1), "strides": (1, 1)},
        {"dilations": (2, 1), "pads": (4, 1, 0, 2)},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER", "kernel_shape": (4, 4)},
        {"ceil_mode": 1, "pads": (2, 1, 2, 1)},
        {"strides": (2, 2), "pads": (2, 2, 2, 2)},
        {"strides": (1, 3), "ceil_mode": 1, "pads": (0, 1, 0, 1)},
    ],
)
def test_windows_of_images(attributes, build, assert_same, run_onnxruntime):
    graph = pool(build, **attributes)
    rewritten = separate_pools(graph)
    assert [n.op for n in rewritten.graph.nodes] == ["MaxPool", "MaxPool"]
    kernels = [n.get("kernel_shape") for n in rewritten.graph.nodes]
    height, width = attributes.get("kernel_shape", (5, 5))
    assert kernels == [(1, width), (height, 1)]
    assert "taken along each dimension" in rewritten.notes[0].text
    assert_same(graph, rewritten.graph, run=run_onnxruntime)


def test_volumes_and_bytes(build, assert_same, run_onnxruntime):
    graph = pool(build, (1, 2, 6, 5, 7), "float32", kernel_shape=(3, 1, 6), pads=(1, 0, 2, 1, 0, 3))
    after = separate_pools(graph).graph
    assert [n.get("kernel_shape") for n in after.nodes] == [(1, 1, 6), (3, 1, 1)]
    assert_same(graph, after, run=run_onnxruntime)
    graph = pool(build, (1, 2, 6, 31, 30), kernel_shape=(1, 9, 9), strides=(2, 1, 1))
    after = separate_pools(graph).graph
    assert [n.get("strides") for n in after.nodes] == [(1, 1, 1), (1, 1, 1), (2, 1, 1)]
    assert_same(graph, after, run=run_onnxruntime)
    graph = pool(build, dtype="int8")
    assert_same(graph, separate_pools(graph).graph, run=run_onnxruntime)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": (3, 3)},
        {"strides": (5, 5)},
        {"kernel_shape": (3, 3), "strides": (2, 2)},
        {"kernel_shape": (1, 20), "pads": (0, 10, 0, 9)},
        {"outputs": ("y", "indices")},
    ],
)
def test_what_gains_nothing_stays(attributes, build):
    graph = pool(build, **attributes)
    assert separate_pools(graph).graph is graph or not separate_pools(graph).notes


def test_sizes_that_are_open_are_as_large_as_their_hints(build):
    open_sizes = (1, 3, "h", "w")
    assert separate_pools(pool(build, open_sizes, pads=(2, 2, 2, 2))).notes
    assert not separate_pools(pool(build, open_sizes, kernel_shape=(3, 3), pads=(1, 1, 1, 1))).notes


def test_a_compiled_pool_has_the_nan_and_infinities_of_its_windows(build):
    graph = pool(build, pads=(2, 2, 2, 2))
    model = compile(graph, threads=1)
    assert any("along each dimension" in text for text in model.explain().rewrites)
    x = np.random.default_rng(0).standard_normal((2, 3, 13, 11)).astype(np.float32)
    x[0, 0, 3, 4], x[0, 1, 5, 5], x[1, 0, 0, 0] = np.nan, np.inf, -np.inf
    x[1, 2] = -np.inf
    padded = np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), (2, 3))
    np.testing.assert_array_equal(model(x), windows.max((-2, -1)))


@pytest.mark.parametrize("counts_pads", [0, 1])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": (1, 0, 3, 4)},
        {"auto_pad": "SAME_UPPER", "kernel_shape": (4, 5)},
        {"ceil_mode": 1, "pads": (2, 1, 2, 1), "strides": (1, 3)},
        {"kernel_shape": (9, 7), "strides": (2, 2), "pads": (4, 3, 4, 3)},
    ],
)
def test_a_mean_is_one_of_means(attributes, counts_pads, build, assert_same, run_onnxruntime):
    attributes = {"kernel_shape": (5, 5), "count_include_pad": counts_pads, **attributes}
    node = Node("pool", "AveragePool", ("x",), ("y",), attributes)
    graph = build({"x": ("float32", (2, 3, 13, 11))}, [node], ["y"])
    rewritten = separate_pools(graph)
    assert [n.op for n in rewritten.graph.nodes] == ["AveragePool", "AveragePool"]
    assert_same(graph, rewritten.graph, rtol=1e-5, run=run_onnxruntime)


def test_means_of_short_floats_are_rounded_once(build):
    node = Node("pool", "AveragePool", ("x",), ("y",), {"kernel_shape": (5, 5)})
    assert not separate_pools(build({"x": ("float16", (1, 3, 13, 11))}, [node], ["y"])).notes


def test_one_window_for_the_whole_image_stays(build):
    assert not separate_pools(pool(build, (1, 3, 7, 7), kernel_shape=(7, 7))).notes


def test_a_window_larger_than_any_image_takes_as_long_as_its_image(build):
    """As an EfficientNet's pooler of open sizes: its rows are summed, not the window's."""
    attributes = {"kernel_shape": (640, 640), "strides": (640, 640), "ceil_mode": 1}
    node = Node("pool", "AveragePool", ("x",), ("y",), attributes)
    graph = build({"x": ("float32", (1, 4, "h", "w"))}, [node], ["y"])
    model = compile(graph, threads=1)
    assert any("taken along each dimension" in str(note) for note in model.explain().rewrites)
    for size in ((1, 1), (7, 5), (16, 33)):
        x = np.random.default_rng(5).standard_normal((1, 4, *size)).astype(np.float32)
        expected = x.astype(np.float64).mean((2, 3), keepdims=True)
        np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
