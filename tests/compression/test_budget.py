"""Layers that stay floats: as few as a budget asks for, those that cost most first."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import CompressionReport, Graph, ops
from polyc.compression.budget import keep_fewest, rank
from polyc.errors import InvalidOption
from tests.compression.digits import accuracy, samples, separable


def outlier() -> Graph:
    """Two layers, of which one reads a channel that is 1,000 times as large as the others."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    large = np.ones(16, np.float32)
    large[3] = 1000
    h = ops.softmax(ops.input("x", (40, 16)) @ first)
    return Graph.of(y=(h * large) @ (second / large[:, None]))


def made(**how) -> CompressionReport:
    rng = np.random.default_rng(1)
    data = [rng.standard_normal((40, 16)).astype(np.float32) for _ in range(4)]
    return CompressionReport.of(polyc.quantise(outlier(), data, threads=1, **how))


def test_the_layer_that_costs_most_is_kept():
    everything = made(budget=1.0)
    assert not everything.kept
    (row,) = made(budget=0.05).kept
    assert row.operator == "MatMul"
    assert row.name == everything.layers[1].name
    assert everything.layers[1].own < 15 < everything.layers[0].own
    assert "it changes the outputs by" in row.why


@pytest.mark.thorough
def test_a_budget_of_accuracy():
    graph = separable(5.0)
    wanted = accuracy(polyc.compile(graph, threads=1))
    how = {"budget": 0.005, "accuracy": accuracy, "balanced": False, "threads": 1}
    proto = polyc.quantise(graph, samples(), **how)
    assert accuracy(polyc.compile(proto, threads=1)) >= wanted - 0.005
    report = CompressionReport.of(proto)
    assert 1 <= len(report.kept) < len(report.layers)
    assert any("0.005 is allowed" in note for note in report.notes)


def test_budgets_that_mean_nothing():
    with pytest.raises(InvalidOption, match="without a budget"):
        made(accuracy=lambda model: 1.0)
    for budget in (-1, float("nan"), float("inf")):
        with pytest.raises(InvalidOption, match="not negative"):
            made(budget=budget)
    with pytest.raises(InvalidOption, match="cannot be kept to"):
        made(budget=1e-9)


def test_the_fewest_that_do():
    ranked = [f"l{k}" for k in range(11)]
    for needed in range(len(ranked)):
        asked = []

        def loss(kept, needed=needed, asked=asked):
            asked.append(len(kept))
            return 0.0 if len(kept) >= needed else 1.0

        found = keep_fewest(ranked, loss, 0.5)
        assert found == (ranked[:needed], 0.0)
        assert len(asked) <= 8
    assert keep_fewest(ranked, lambda kept: 1.0, 0.5) is None
    assert keep_fewest(["one"], lambda kept: 1.0, 0.5) is None


def test_ranked_by_effect_over_gain():
    effects = {"a": 0.1, "b": 0.2, "c": 0.01}
    assert rank(effects, {"a": 0.1, "b": 0.4, "c": 0.5}) == ["a", "b", "c"]
    assert rank(effects, {}) == ["b", "a", "c"]
