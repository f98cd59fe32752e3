"""Threads of a GPU have something to do, each something else."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.errors import IllegalSchedule
from tests.cuda.models import compile_model
from tests.cuda.test_barriers_needed import attention

pytestmark = pytest.mark.cuda


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def test_what_reads_parts_of_an_array_leaves_their_channels_apart():
    """32 new channels beside 256 old ones, as in a DenseNet: not all of them in 49 threads."""
    x, z = ops.input("x", (1, 256, 7, 7)), ops.input("z", (1, 32, 7, 7))
    joined = ops.concat([ops.relu(x), ops.abs(z)], axis=1)
    result = compile_model(normalised(joined), "sm_90a").compiled
    assert not [row.schedule for row in result.rows if row.schedule.startswith("join y x as")]
    assert any("threads would have work" in note.reason for note in result.not_fused)


def test_what_reads_a_part_that_is_there_already_shares_all_loops_with_the_other():
    """The new channels end their convolution's kernel; the old ones are copied beside the norm."""
    x = ops.input("x", (1, 256, 7, 7))
    new = ops.conv(ops.relu(x), normal(32, 256, 3, 3), pads=(1, 1, 1, 1))
    result = compile_model(normalised(ops.concat([x, new], axis=1)), "sm_90a").compiled
    assert [row.schedule.split(" as ")[0] for row in result.rows if "Relu_5" in row.name] == [
        "join i1 i2 i3"
    ]


def normalised(joined) -> Graph:
    """What a layer of a DenseNet begins with, and the channels that the next one reads again."""
    y = ops.relu(joined * normal(1, 288, 1, 1) + normal(1, 288, 1, 1))
    return Graph.of(y=ops.conv(y, normal(64, 288, 1, 1)), joined=joined)


def test_rows_that_a_sum_is_made_of_stay_with_it():
    """Threads share the row of a softmax; it is no loop that one of them would run alone."""
    graph = Graph.of(y=ops.softmax(ops.input("x", (64, 300)) * normal(300)))
    (row,) = compile_model(graph, "sm_90a").compiled.rows
    assert "combine" in row.schedule


def test_rows_whose_elements_are_sums_stay_apart_from_what_sums_them():
    """A sum cut into parts, as of few tiles, before a norm: 128 threads would have a row each."""
    product = ops.matmul(ops.input("x", (128, 3072)), normal(3072, 768))
    graph = Graph.of(y=ops.softmax(product + normal(768)))
    parts, total, rows = compile_model(graph, "sm_90a").compiled.rows
    assert parts.schedule.startswith("tile")
    assert total.schedule.startswith("join i j as")
    assert "combine" in rows.schedule


def test_a_write_that_several_threads_would_make_is_refused(monkeypatch):
    """Tiles of 128 columns, of which 20 are there: isl makes no loop over the four warps."""
    graph = Graph.of(y=attention())
    (kernel,) = compile_model(graph).compiled.program.kernels
    assert "only32" in str(kernel)
    monkeypatch.setattr("polyc.schedule.loops.find_value", lambda *_: None)
    with pytest.raises(IllegalSchedule, match="several threads write"):
        compile_model(graph)
