"""One result whatever the number of threads, and however many calls run at once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc.printing import driver
from tests.e2e import steps_compute, steps_move
from tests.e2e.graph_builder import GraphBuilder
from tests.e2e.random_graphs import STEPS, random_graph

SEEDS = (3, 11, 17)


def large_graph() -> tuple[GraphBuilder, list]:
    """Convolution, softmax, layer norm and matrix product, each large enough for many threads."""
    rng, g = np.random.default_rng(0), GraphBuilder("large")

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    image = g.input(normal(1, 16, 40, 37))
    (wide,) = g.node("Conv", [image, g.constant(normal(24, 16, 3, 3) / 12)], exact=False)
    (active,) = g.node("Relu", [wide], exact=False)
    rows = g.constant(np.array([24, 38 * 35]))
    (flat,) = g.node("Reshape", [active, rows], exact=False)
    (soft,) = g.node("Softmax", [flat], exact=False, axis=-1)
    scale = g.constant(normal(38 * 35))
    (norm,) = g.node("LayerNormalization", [flat, scale], exact=False)
    (product,) = g.node("MatMul", [norm, g.constant(normal(38 * 35, 70) / 36)], exact=False)
    (total,) = g.node("ReduceSum", [flat], exact=False, keepdims=0)
    return g, [active, soft, product, total]


@pytest.fixture(autouse=True)
def _small_graphs_are_shared_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(driver, "SMALL_PROGRAM", 0)
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))  # where nothing is compiled otherwise


@pytest.fixture(scope="module")
def graphs() -> list[tuple[GraphBuilder, list]]:
    assert {s.__module__ for s in STEPS} == {steps_compute.__name__, steps_move.__name__}
    return [large_graph(), *(random_graph(seed) for seed in SEEDS)]


@pytest.mark.thorough
def test_the_number_of_threads_changes_no_bit(graphs: list) -> None:
    for graph, outputs in graphs:
        proto, results = graph.model(outputs), []
        for threads in (1, 2, 8):
            model = polyc.compile(proto, threads=threads)
            assert model.threads == threads
            results.append(model.run(graph.feeds))
        for other in results[1:]:
            for name, value in results[0].items():
                assert value.tobytes() == other[name].tobytes(), f"{graph.name}: {name}"


@pytest.mark.thorough
def test_calls_at_the_same_time_do_not_meet(graphs: list) -> None:
    for graph, outputs in graphs:
        model = polyc.compile(graph.model(outputs), threads=2)
        feeds = [_scaled(graph.feeds, 1 + k / 8) for k in range(6)]
        alone = [model.run(f) for f in feeds]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(model.run, feeds * 3))
        for k, result in enumerate(together):
            for name, value in alone[k % len(feeds)].items():
                assert value.tobytes() == result[name].tobytes(), f"{graph.name}: {name}, call {k}"


def test_a_large_graph_runs_in_parallel(graphs: list) -> None:
    graph, outputs = graphs[0]
    model = polyc.compile(graph.model(outputs), threads=2)
    assert len(re.findall(r"PC_SHARE\((?!1\))", model.source)) >= 4
    results = model.run(graph.feeds)
    for value in outputs:
        error = np.abs(results[value.name] - value.array).max() / np.abs(value.array).max()
        assert error < 1e-5, value.name


def _scaled(feeds: dict[str, np.ndarray], factor: float) -> dict[str, np.ndarray]:
    """Other contents of the same types; integers, which may be indices, stay."""
    return {n: x * x.dtype.type(factor) if x.dtype.kind == "f" else x for n, x in feeds.items()}
