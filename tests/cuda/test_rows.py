"""Softmax, norms and reductions of rows on a GPU: threads that combine what they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.threads import Phases
from polyc.api import CompiledModel
from polyc.errors import IllegalSchedule
from tests.programs import options
from tests.sampling import sampled, thorough

SHAPES = [(5, 100), (3, 7, 33), (2, 3000), (1, 130), (1100, 36)]


def build(graph: Graph, folder: Path, emulated: bool) -> CompiledModel:
    return polyc.compile(graph, target="cuda", options=options(folder, emulated=emulated))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", sampled(SHAPES, often=[(2, 3000)]), ids=str)
def test_softmax(shape, tmp_path, emulated):
    model = build(Graph.of(y=ops.softmax(ops.input("x", shape))), tmp_path, emulated)
    x = normal(*shape)
    x[0, ..., -1] = np.inf
    x[-1, ..., 3] = np.nan if shape[0] > 1 else 0
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(model(x), softmax(x), rtol=1e-5, atol=1e-7)
    (kernel,) = model.explain().kernels
    assert "| partial Softmax_0.t |" in kernel.schedule
    assert "pc_shuffle_xor" in model.source


@pytest.mark.parametrize("shape", sampled(SHAPES, often=[(3, 7, 33)]), ids=str)
def test_layer_norm(shape, tmp_path, emulated):
    scale, bias = normal(shape[-1]), normal(1, shape[-1])[0]
    y = ops.layer_normalization(ops.input("x", shape), scale, bias)
    model = build(Graph.of(y=y), tmp_path, emulated)
    x = normal(*shape).astype(np.float64) * 3 + 1
    centred = x - x.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias
    np.testing.assert_allclose(model(x.astype(np.float32)), wanted, atol=2e-5)
    assert len(model.explain().kernels) == 1


def test_reductions_of_several_dimensions_and_types(tmp_path, emulated):
    x, n = ops.input("x", (2, 33, 9, 11)), ops.input("n", (6, 70), "int64")
    graph = Graph.of(
        mean=ops.global_average_pool(x), where=ops.arg_max(n, axis=1), most=ops.reduce_max(n, (1,))
    )
    model = build(graph, tmp_path, emulated)
    feeds = {
        "x": normal(2, 33, 9, 11),
        "n": np.random.default_rng(0).integers(-5, 5, (6, 70)),
    }
    found = model.run(feeds)
    mean = feeds["x"].astype(np.float64).mean((2, 3), keepdims=True)
    np.testing.assert_allclose(found["mean"], mean, atol=1e-6)
    np.testing.assert_array_equal(found["where"], feeds["n"].argmax(1, keepdims=True))
    np.testing.assert_array_equal(found["most"], feeds["n"].max(1, keepdims=True))


def test_a_short_row_is_one_thread_s(tmp_path, emulated):
    model = build(Graph.of(y=ops.softmax(ops.input("x", (50, 7)))), tmp_path, emulated)
    np.testing.assert_allclose(model(normal(50, 7)), softmax(normal(50, 7)), atol=1e-7)
    assert "pc_shuffle_xor" not in model.source


@pytest.mark.cuda
def test_a_thread_that_reads_what_another_keeps_in_registers_is_refused(tmp_path, monkeypatch):
    """The proof sees a loop that combines as one of plain threads: each has its own part only."""
    from polyc.analysis import locality, threads

    def alone(access):
        return threads.executing_threads(access.execution)

    monkeypatch.setattr(locality, "holding_threads", alone)
    monkeypatch.setattr(Phases, "conflict", lambda self, *phases: False)
    with pytest.raises(IllegalSchedule, match="parts"):
        build(Graph.of(y=ops.softmax(ops.input("x", (5, 100)))), tmp_path, True)


def test_weights_of_a_dense_layer_lie_along_its_sums(tmp_path, emulated):
    """Threads share a sum, and read weights side by side, wherever its dimension is in the file."""
    x, w = normal(1, 260), normal(260, 70)
    model = build(Graph.of(y=ops.matmul(ops.input("x", x.shape), w)), tmp_path, emulated)
    np.testing.assert_allclose(model(x), x.astype(np.float64) @ w, rtol=1e-4, atol=1e-4)
    (kernel,) = model.explain().kernels
    assert "partial" in kernel.schedule
    assert "pc_load_f32x4(&constant" in model.source


@pytest.mark.parametrize("shape", [thorough((70001,)), (40003, 3)], ids=str)
def test_a_sum_that_one_block_would_be_long_at_is_shared_out(shape, tmp_path, emulated):
    """Partial sums by all multiprocessors, and then their sum: the same bits in any order."""
    model = build(Graph.of(y=ops.reduce_sum(ops.input("x", shape), axes=(0,))), tmp_path, emulated)
    x = normal(*shape)
    found = [model(x) for _ in range(3)]
    np.testing.assert_allclose(found[0], x.astype(np.float64).sum(0, keepdims=True), atol=2e-3)
    for again in found[1:]:
        np.testing.assert_array_equal(again, found[0])
    first, second = model.explain().kernels
    assert int(first.functions[0].grid.split()[0]) >= 13
    assert second.floor < first.floor
