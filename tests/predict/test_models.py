"""Predictions of whole models: each launch has one, and a kernel that is kept has the same."""

from __future__ import annotations

import numpy as np

import polyc
from polyc.options import Options


def network(rows: int | str) -> polyc.Graph:
    """Two layers, the second one wider."""
    rng = np.random.default_rng(0)
    x = polyc.ops.input("x", (rows, 96))
    first, second = (rng.standard_normal(s).astype("f4") for s in ((96, 64), (64, 160)))
    return polyc.Graph.of(y=polyc.ops.softmax(polyc.ops.relu(x @ first) @ second))


def predictions(graph: polyc.Graph, options: Options) -> list[float | None]:
    return [k.predicted for k in polyc.compile(graph, options=options).explain().kernels]


def test_every_launch_is_predicted_and_kernels_that_are_kept_are_the_same(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    first = predictions(network(50), options)
    assert first
    assert all(one is not None and 0 < one < 1e-3 for one in first)
    again = Options(cache_dir=tmp_path, threads=1, memory_limit=10**9)  # another model, old kernels
    assert predictions(network(50), again) == first


def test_where_a_call_decides_nothing_is_predicted(tmp_path):
    assert set(predictions(network("n"), Options(cache_dir=tmp_path, threads=1))) == {None}
