"""Arrays larger than all caches are stored past them, whatever their address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.target.machine import KIB, detect_target
from tests.programs import options


@pytest.mark.parametrize("offset", [0, 1])
def test_stores_of_a_large_result(tmp_path: Path, offset: int):
    target = replace(detect_target(), l3=4 * KIB)
    x = ops.input("x", (37, 301))
    model = polyc.compile(Graph.of(y=ops.relu(x) * 2.0), target=target, options=options(tmp_path))
    assert "pc_stream_" in model.source
    data = np.random.default_rng(0).standard_normal((37, 301), dtype=np.float32)
    memory = np.full(37 * 301 + 2, 7, np.float32)
    out = memory[offset : offset + data.size].reshape(data.shape)
    model(data, out=out)
    np.testing.assert_array_equal(out, np.maximum(data, 0) * 2)
    assert memory[-1] == 7


def test_what_fits_a_cache_is_stored_there(tmp_path: Path):
    target = replace(detect_target(), l3=4 * KIB)
    graph = Graph.of(y=ops.relu(ops.input("x", (5, 7))))
    model = polyc.compile(graph, target=target, options=options(tmp_path))
    assert "pc_stream_" not in model.source
