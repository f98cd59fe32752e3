"""Taps of windows that never read an element."""

import numpy as np
import pytest

from polyc import compile
from polyc.graph.ir import Node
from polyc.graph.simplify.idle_taps import drop_idle_taps


def pool(build, op, shape, kernel, outputs=("y",), **attributes):
    node = Node("pool", op, ("x",), outputs, {"kernel_shape": kernel, **attributes})
    return build({"x": ("float32", shape)}, [node], list(outputs))


def conv(build, shape, weight, **attributes):
    node = Node("conv", "Conv", ("x", "w", "b"), ("y",), attributes)
    value = np.random.default_rng(1).standard_normal(weight).astype(np.float32)
    return build({"x": ("float32", shape)}, [node], ["y"], w=value, b=value[:, 0, 0, 0])


def kernel_of(rewritten):
    (node,) = rewritten.graph.nodes
    return node.get("kernel_shape")


@pytest.mark.parametrize(
    ("shape", "attributes", "kernel"),
    [
        ((1, 1), {"pads": (1, 1, 1, 1)}, (1, 1)),
        ((1, 7), {"pads": (1, 1, 1, 1)}, (1, 3)),
        ((2, 3), {"pads": (6, 6, 6, 6), "dilations": (6, 6)}, (1, 1)),
        ((7, 13), {"pads": (6, 6, 6, 6), "dilations": (6, 6)}, (3, 3)),
        ((7, 13), {"pads": (12, 12, 12, 12), "dilations": (12, 12)}, (1, 3)),
        ((4, 3), {"pads": (4, 3, 5, 2), "strides": (9, 2)}, (3, 3)),
        ((2, 2), {"pads": (0, 2, 3, 0), "strides": (4, 4)}, (2, 1)),
        ((2, 1), {"auto_pad": "SAME_UPPER", "strides": (2, 2)}, (2, 1)),
        ((1, 2), {"auto_pad": "SAME_LOWER", "strides": (2, 2)}, (1, 2)),
    ],
)
def test_convolutions_of_small_images(shape, attributes, kernel, build, assert_same):
    graph = conv(build, (2, 4, *shape), (6, 4, 3, 3), **attributes)
    rewritten = drop_idle_taps(graph)
    assert (kernel_of(rewritten) or (3, 3)) == kernel
    assert bool(rewritten.notes) == (kernel != (3, 3))
    assert_same(graph, rewritten.graph, rtol=1e-5)


def test_groups_keep_their_weights(build, assert_same):
    graph = conv(build, (1, 6, 1, 2), (9, 2, 5, 5), group=3, pads=(2, 2, 2, 2))
    rewritten = drop_idle_taps(graph)
    assert kernel_of(rewritten) == (1, 3)
    assert_same(graph, rewritten.graph, rtol=1e-5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_larger_than_the_image(op, build, assert_same, run_onnxruntime):
    graph = pool(build, op, (1, 3, 5, 4), (90, 64), ceil_mode=1, strides=(90, 64))
    rewritten = drop_idle_taps(graph)
    assert kernel_of(rewritten) == (5, 4)
    assert_same(graph, rewritten.graph, run=run_onnxruntime)


@pytest.mark.parametrize("seed", range(60))
def test_pools_of_any_kind(seed, build, assert_same, run_onnxruntime):
    rng = np.random.default_rng(seed)
    op = ("MaxPool", "AveragePool")[seed % 2]
    kernel = tuple(int(k) for k in rng.integers(1, 7, 2))
    pads = tuple(int(rng.integers(0, k)) for k in kernel * 2)
    strides = tuple(int(s) for s in rng.integers(1, 6, 2))
    attributes = {"pads": pads, "strides": strides, "ceil_mode": int(rng.integers(2))}
    if op == "AveragePool":
        attributes["count_include_pad"] = int(rng.integers(2))
    shape = (1, 2, *(int(n) for n in rng.integers(1, 6, 2)))
    try:
        graph = pool(build, op, shape, kernel, **attributes)
    except Exception as error:  # no window fits
        pytest.skip(str(error))
    rewritten = drop_idle_taps(graph)
    assert_same(graph, rewritten.graph, run=run_onnxruntime)


def test_a_mean_that_counts_pads_counts_them_still(build, assert_same, run_onnxruntime):
    graph = pool(
        build, "AveragePool", (1, 1, 3, 3), (9, 9), pads=(4, 4, 2, 2), ceil_mode=1,
        strides=(9, 9), count_include_pad=1,
    )  # fmt: skip
    assert_same(graph, drop_idle_taps(graph).graph, run=run_onnxruntime)


def test_what_is_said_of_the_window_is_shown(build):
    (note,) = drop_idle_taps(conv(build, (1, 4, 1, 1), (6, 4, 3, 3), pads=(1, 1, 1, 1))).notes
    assert note.text == "Conv 'conv': 3 x 3 taps of which only 1 x 1 ever read an element"


def test_open_images_and_weights_that_a_call_gives_stay(build):
    open_sizes = pool(build, "MaxPool", (1, 3, "h", 1), (3, 3), pads=(1, 1, 1, 1))
    assert not drop_idle_taps(open_sizes).notes
    node = Node("conv", "Conv", ("x", "w"), ("y",), {"pads": (1, 1, 1, 1)})
    types = {"x": ("float32", (1, 4, 1, 1)), "w": ("float32", (6, 4, 3, 3))}
    assert not drop_idle_taps(build(types, [node], ["y"])).notes


def test_a_pooler_as_wide_as_its_channels_costs_no_more_than_its_image(build):
    """As in an EfficientNet, whose last pool has the number of channels as its window."""
    graph = pool(
        build, "AveragePool", (1, 8, 7, 7), (1280, 1280), ceil_mode=1, strides=(1280, 1280)
    )
    model = compile(graph, threads=1)
    x = np.random.default_rng(3).standard_normal((1, 8, 7, 7)).astype(np.float32)
    x[0, 0, 2, 3], x[0, 1, 0, 0] = np.nan, np.inf
    expected = x.astype(np.float64).mean((2, 3), keepdims=True)
    np.testing.assert_allclose(model(x), expected, rtol=1e-5)
    assert model.explain().arena_bytes < 100_000
