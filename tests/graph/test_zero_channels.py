"""Channels that zeros make needless are gone, and what is computed is what ONNX Runtime says."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import polyc
from polyc import Graph, Options, ops
from polyc.graph.builder import Value
from polyc.graph.onnx.export import export_onnx
from polyc.graph.simplify import simplify
from polyc.graph.zero_channels import products
from polyc.graph.zero_channels.drop import choose_rewrites
from tests.graph.simplify.conftest import assert_well_formed

rng = np.random.default_rng(7)


def drawn(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def zeroed(w: np.ndarray, *gone: int, axis: int = 0) -> np.ndarray:
    w = w.copy()
    np.moveaxis(w, axis, 0)[list(gone)] = 0
    return w


def dropped(graph: Graph) -> Graph:
    return simplify(graph, 2, rewrites=choose_rewrites(True))[0]


def run(graph: Graph, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    model = export_onnx(graph, opset=22).SerializeToString()
    return onnxruntime.InferenceSession(model, options).run(None, feeds)[0]


def check(graph: Graph, **sizes: int) -> list[tuple[int, ...]]:
    """What is dropped changes nothing; the shapes of the weights that are left, in order."""
    feeds = {
        name: drawn(*(d if isinstance(d, int) else sizes[str(d)] for d in graph.tensor(name).shape))
        for name in graph.inputs
    }
    less = dropped(graph)
    assert_well_formed(less)
    assert less.inputs == graph.inputs
    assert [less.tensor(y).shape for y in less.outputs] == [
        graph.tensor(y).shape for y in graph.outputs
    ]
    want = run(graph, feeds)
    np.testing.assert_allclose(run(less, feeds), want, rtol=1e-4, atol=1e-4)
    products = [n for n in less.nodes if n.op in ("Conv", "ConvTranspose", "Gemm", "MatMul")]
    return [less.tensor(n.inputs[1]).shape for n in products]


X = (2, 3, 9, 7)


def test_channels_of_zeros_go_with_their_bias():
    w, b = zeroed(drawn(16, 3, 3, 3), 1, 4, 5), zeroed(drawn(16), 1, 4)
    h = ops.relu(ops.conv(ops.input("x", X), w, b, pads=(1, 1, 1, 1)))
    y = ops.conv(ops.leaky_relu(h), drawn(8, 16, 3, 3), pads=(1, 1, 1, 1))
    assert check(Graph.of(y=y)) == [(14, 3, 3, 3), (8, 14, 3, 3)]


def sigmoids() -> Value:
    """[2, 6, 7, 5], of which channels 0 and 3 are other numbers than zero."""
    w = zeroed(drawn(6, 3, 3, 3), 0, 3)
    return ops.sigmoid(ops.conv(ops.input("x", X), w, drawn(6)))


@pytest.mark.parametrize("bias", [True, False])
def test_a_channel_that_is_another_number_goes_into_the_next_bias(bias):
    v, c = drawn(5, 6, 1, 1), drawn(5) if bias else None
    y = ops.conv(sigmoids(), v, c)
    assert check(Graph.of(y=y)) == [(4, 3, 3, 3), (5, 4, 1, 1)]


def test_a_frame_of_zeros_around_another_number_keeps_it(monkeypatch):
    graph = Graph.of(y=ops.conv(sigmoids(), drawn(5, 6, 3, 3), pads=(0, 1, 0, 0)))
    assert check(graph) == [(6, 3, 3, 3), (5, 6, 3, 3)]
    monkeypatch.setattr(products, "is_padded", lambda node: False)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(graph)


def test_channels_that_nobody_multiplies_by_anything_go():
    w, v = drawn(6, 3, 3, 3), zeroed(drawn(5, 6, 3, 3), 1, 2, axis=1)
    h = ops.tanh(ops.conv(ops.input("x", X), w, drawn(6)))
    assert check(Graph.of(y=ops.conv(h, v, pads=(1, 1, 1, 1)))) == [(4, 3, 3, 3), (5, 4, 3, 3)]


def test_a_sum_of_branches_loses_what_all_of_them_lose():
    x = ops.input("x", X)
    one = ops.conv(x, zeroed(drawn(8, 3, 3, 3), 0, 1, 2), pads=(1, 1, 1, 1))
    other = ops.conv(x, zeroed(drawn(8, 3, 1, 1), 1, 2, 3))
    y = ops.conv(ops.relu(one + other), drawn(4, 8, 1, 1))
    assert check(Graph.of(y=y)) == [(6, 3, 3, 3), (6, 3, 1, 1), (4, 6, 1, 1)]
    # What somebody else reads, or is given by an input, has all of its channels.
    shapes = check(Graph.of(y=y, z=one))
    assert shapes[0] == (8, 3, 3, 3)
    z = ops.conv(ops.relu(one + ops.input("z", (2, 8, 9, 7))), drawn(4, 8, 1, 1))
    assert check(Graph.of(y=z)) == [(8, 3, 3, 3), (4, 8, 1, 1)]


def test_depthwise_pools_and_a_flat_end():
    w = zeroed(drawn(8, 3, 3, 3), 0, 1)
    h = ops.relu(ops.conv(ops.input("x", (2, 3, 9, 9)), w, zeroed(drawn(8), 0, 1)))
    deep, c = zeroed(drawn(8, 1, 3, 3), 5), zeroed(drawn(8), 0, 5)
    h = ops.relu(ops.conv(h, deep, c, group=8, pads=(1, 1, 1, 1)))
    h = ops.max_pool(h, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    h = ops.average_pool(h, kernel_shape=(2, 2), pads=(1, 0, 0, 0))
    y = ops.gemm(ops.flatten(h), drawn(8 * 4 * 3, 5), drawn(5))
    shapes = check(Graph.of(y=y))
    assert shapes == [(6, 3, 3, 3), (6, 1, 3, 3), (6 * 4 * 3, 5)]


@pytest.mark.parametrize("flat", ["reshape", "mean", "global"])
def test_ends_of_networks(flat):
    w = zeroed(drawn(8, 3, 3, 3), 2, 7)
    h = ops.relu(ops.conv(ops.input("x", ("n", 3, 6, 5)), w))
    if flat == "reshape":
        h = ops.reshape(ops.global_average_pool(h), (-1, 8))
    elif flat == "mean":
        h = ops.reduce_mean(h, axes=(2, 3), keepdims=False)
    else:
        h = ops.squeeze(ops.global_max_pool(h), axes=(2, 3))
    y = ops.gemm(h, drawn(5, 8), drawn(5), trans_b=True)
    assert check(Graph.of(y=y), n=2) == [(6, 3, 3, 3), (6, 5)]


def test_joined_channels():
    """Each part of a concatenation keeps its own, and one that is no product's keeps all."""
    x = ops.input("x", X)
    one = ops.relu(ops.conv(x, zeroed(drawn(4, 3, 1, 1), 3)))
    other = ops.conv(x, zeroed(drawn(5, 3, 3, 3), 0, 1), pads=(1, 1, 1, 1))
    h = ops.concat([one, x, other], axis=1)
    v = zeroed(drawn(6, 12, 3, 3), 1, 5, axis=1)
    shapes = check(Graph.of(y=ops.conv(h, v, pads=(1, 1, 1, 1))))
    assert shapes == [(2, 3, 1, 1), (3, 3, 3, 3), (6, 8, 3, 3)]
    rows = ops.concat([one, ops.conv(x, zeroed(drawn(4, 3, 1, 1), 2, 3))], axis=2)
    shapes = check(Graph.of(y=ops.conv(rows, drawn(6, 4, 1, 1))))
    assert shapes == [(3, 3, 1, 1), (3, 3, 1, 1), (6, 3, 1, 1)]


def test_gates_and_parts():
    """What half of a product's channels gate the other half by goes with them."""
    w = zeroed(drawn(10, 12), 0, 5, axis=1)
    gate, h = ops.split(ops.input("x", (3, 10)) @ w, (6, 6), axis=1)
    y = ops.mul(ops.sigmoid(gate), h) @ zeroed(drawn(6, 4), 2)
    assert check(Graph.of(y=y)) == [(10, 10), (5, 4)]
    h = ops.relu(ops.conv(ops.input("x", X), zeroed(drawn(8, 3, 1, 1), 1, 2)))
    gate = ops.sigmoid(ops.conv(ops.global_average_pool(h), drawn(8, 8, 1, 1), drawn(8)))
    y = ops.conv(h * gate, drawn(4, 8, 1, 1))
    assert check(Graph.of(y=y)) == [(6, 3, 1, 1), (6, 6, 1, 1), (4, 6, 1, 1)]
    first, last = ops.split(h, (3, 5), axis=1)
    y = ops.conv(first, drawn(4, 3, 1, 1)) + ops.conv(last, np.zeros((4, 5, 1, 1), np.float32))
    assert check(Graph.of(y=y)) == [(2, 3, 1, 1), (4, 1, 1, 1), (4, 1, 1, 1)]
    top, rest = ops.split(h, (4, 5), axis=2)
    y = ops.conv(top, drawn(2, 8, 1, 1)), ops.conv(rest, drawn(2, 8, 1, 1))
    assert check(Graph.of(y=y[0], z=y[1])) == [(6, 3, 1, 1), (2, 6, 1, 1), (2, 6, 1, 1)]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_larger_images(mode):
    h = ops.relu(ops.conv(ops.input("x", X), zeroed(drawn(8, 3, 1, 1), 1, 2)))
    h = ops.resize(h, scales=np.array([1, 1, 2, 2], np.float32), mode=mode)
    y = ops.conv(h, drawn(4, 8, 3, 3), pads=(1, 1, 1, 1))
    assert check(Graph.of(y=y)) == [(6, 3, 1, 1), (4, 6, 3, 3)]


def test_perceptrons_whatever_their_form():
    x = ops.input("x", (2, 3, 10))
    h = ops.gelu((x @ zeroed(drawn(10, 12), 0, 5, 6, axis=1)) + zeroed(drawn(12), 0, 5))
    y = ops.mul(h, drawn(12)) @ zeroed(drawn(12, 6), 11)
    assert check(Graph.of(y=y)) == [(10, 9), (9, 6)]
    turned = ops.transpose(h, perm=(2, 0, 1))
    y = ops.transpose(turned, perm=(1, 2, 0)) @ drawn(12, 6)
    assert check(Graph.of(y=y)) == [(10, 10), (10, 6)]


def test_one_layer_after_another_in_rounds():
    """What only a dropped channel needed is dropped as well."""
    w, v, u = drawn(6, 3, 1, 1), drawn(6, 6, 1, 1), zeroed(drawn(4, 6, 1, 1), 0, axis=1)
    v[1:, 2] = 0  # channel 2 is read by channel 0 alone, which nobody reads
    h = ops.relu(ops.conv(ops.relu(ops.conv(ops.input("x", X), w)), v))
    assert check(Graph.of(y=ops.conv(h, u))) == [(5, 3, 1, 1), (5, 5, 1, 1), (4, 5, 1, 1)]


def test_one_channel_is_left():
    h = ops.relu(ops.conv(ops.input("x", X), np.zeros((4, 3, 1, 1), np.float32)))
    assert check(Graph.of(y=ops.conv(h, drawn(2, 4, 1, 1)))) == [(1, 3, 1, 1), (2, 1, 1, 1)]


def test_what_is_not_understood_keeps_all():
    w = zeroed(drawn(6, 3, 1, 1), 0, 1)
    h = ops.conv(ops.input("x", X), w)
    for y in (
        ops.softmax(h, axis=1),
        ops.conv(h, drawn(6, 2, 1, 1), group=3),
        ops.pad(h, (0, 1, 0, 0, 0, 0, 0, 0)),
        ops.mul(h, ops.input("z", (6, 1, 1))),
        ops.mul(h, ops.input("z", (2, 1, 9, 7))),
        ops.reduce_sum(h, axes=(1,)),
        ops.reshape(h, (2, 2, 3, 9, 7)),
    ):
        assert check(Graph.of(y=y))[0] == (6, 3, 1, 1)


def test_the_mean_of_nothing_is_no_number():
    """Whatever the weights are, where a size may be zero."""
    for n, known in (("n", 1), (0, 0)):
        h = ops.input("x", (2, n, 4)) @ zeroed(drawn(4, 6), 0, axis=1)
        graph = Graph.of(y=ops.reduce_mean(h, axes=(1,)) @ drawn(6, 2))
        with np.errstate(all="ignore"):
            assert check(graph, n=3) == [(4, 6 - known), (6 - known, 2)]


def random_network(seed: int) -> Graph:
    """Convolutions with zeros, and what can stand between: for each seed another order."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        w = rng.standard_normal(shape).astype(np.float32) / 3
        for axis in (0, 1) if w.ndim > 1 else (0,):
            np.moveaxis(w, axis, 0)[rng.random(w.shape[axis]) < 0.4] = 0
        return w

    h = ops.input("x", (2, 3, 8, 8))
    sources = [ops.conv(h, weights(6, 3, 1, 1), weights(6)) for _ in range(2)]
    for _ in range(6):
        h = sources[rng.integers(len(sources))]
        kind, k = rng.integers(9), 2 * rng.integers(2) + 1
        pads = (k // 2,) * 4
        count = h.shape[1]
        if kind == 0:
            h = ops.relu(h)
        elif kind == 1:
            h = ops.clip(h, -0.5, 0.7) * weights(count, 1, 1) + weights(count, 1, 1)
        elif kind == 2:
            h = ops.conv(h, weights(count, 1, k, k), weights(count), group=count, pads=pads)
        elif kind == 3:
            h = ops.average_pool(h, kernel_shape=(3, 3), pads=(1, 1, 1, 1),
                                 count_include_pad=bool(rng.integers(2)))  # fmt: skip
        elif kind == 4:
            h = ops.max_pool(h, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
        elif kind == 5:
            same = [s for s in sources if s.shape == h.shape]
            h = h + same[rng.integers(len(same))]
        elif kind == 6:
            h = ops.concat([h, sources[rng.integers(len(sources))]], axis=1)
        else:
            bias = weights(6) if rng.integers(2) else None
            h = ops.conv(h, weights(6, count, k, k), bias, pads=pads)
        sources.append(h)
    flat = ops.flatten(ops.max_pool(sources[-1], kernel_shape=(4, 4), strides=(4, 4)))
    return Graph.of(y=ops.gemm(flat, weights(int(flat.shape[1]), 5), weights(5)))


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed):
    check(random_network(seed))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_networks(seed):
    check(random_network(seed))


def test_compiled_networks_and_the_option():
    w, b = zeroed(drawn(16, 3, 3, 3), 1, 4, 5), zeroed(drawn(16), 1, 4, 5)
    h = ops.relu(ops.conv(ops.input("x", X), w, b, pads=(1, 1, 1, 1)))
    graph = Graph.of(y=ops.conv(h, drawn(8, 16, 3, 3)))
    x = drawn(*X)
    less = polyc.compile(graph, threads=1)
    assert "3 of 16 channels of Conv 'Conv_0' dropped" in str(less.explain())
    np.testing.assert_allclose(less(x), run(graph, {"x": x}), rtol=1e-4, atol=1e-4)
    x[0, 0, 4, 4] = np.nan
    whole = polyc.compile(graph, threads=1, options=Options(sparse=False))
    assert "dropped" not in str(whole.explain())
    np.testing.assert_array_equal(np.isnan(whole(x)), np.isnan(run(graph, {"x": x})))
