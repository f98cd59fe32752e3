"""Transposes: by way of shared memory, with neighbours on both sides and no bank twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from tests.cuda import emulated as programs
from tests.cuda.models import compile_model
from tests.programs import options


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize(
    ("shape", "order"), [((3, 50, 70), (0, 2, 1)), ((33, 2, 64), (2, 1, 0))], ids=str
)
def test_transposes(shape, order, dtype, tmp_path, emulated):
    x, b = ops.input("x", shape, dtype), ops.input("b", [shape[k] for k in order], dtype)
    graph = Graph.of(y=ops.abs(ops.transpose(x, order)) + b)
    model = polyc.compile(graph, target="cuda", options=options(tmp_path, emulated=emulated))
    rng = np.random.default_rng(0)
    data, more = (
        rng.integers(-50, 50, s).astype(dtype) for s in (shape, [shape[k] for k in order])
    )
    np.testing.assert_array_equal(model(data, more), np.abs(data.transpose(order)) + more)
    (kernel,) = model.explain().kernels
    assert kernel.schedule.startswith("stage x by ")


@pytest.mark.cuda
def test_neighbours_on_both_sides_and_no_bank_twice(tmp_path: Path):
    if not programs.has_sanitizers(programs.COUNTS):
        pytest.skip("g++ has no sanitizers here")
    model = compile_model(Graph.of(y=ops.transpose(ops.relu(ops.input("x", (64, 96))), (1, 0))))
    program = programs.build(model.text, tmp_path, programs.COUNTS)
    x = np.random.default_rng(0).standard_normal((64, 96), dtype=np.float32)
    outcome = programs.run(program, model.buffers([x]), seed=1, workspace=64)
    assert not outcome.found
    counts = {array: found for (_, array), found in outcome.counts.items()}
    accesses, sectors, fewest = counts.pop("global")
    assert accesses == 2 * 64 * 96 // 32
    assert sectors == fewest
    ((accesses, parts, least),) = counts.values()
    assert accesses == 2 * 64 * 96 // 32
    assert parts == least, "some bank is met twice"


@pytest.mark.cuda
def test_what_is_small_or_reads_a_row_is_left_to_threads(tmp_path):
    def schedule(shape: tuple[int, ...], order: tuple[int, ...]) -> str:
        graph = Graph.of(y=ops.transpose(ops.relu(ops.input("x", shape)), order))
        chosen = options(tmp_path, emulated=True)
        return polyc.compile(graph, target="cuda", options=chosen).explain().kernels[0].schedule

    assert schedule((64, 31), (1, 0)).startswith("join ")
    assert schedule((4, 64, 64), (1, 0, 2)).startswith("join ")
