"""Frames vanish: what reads a padded copy reads what was copied, where there is something."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.scop.expr import Within, walk
from polyc.scop.lower import lower_graph
from polyc.scop.remove_frames import remove_frames
from tests.scop.rewrites import check


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)


def window(x, pads):
    return ops.conv(x, normal(3, 2, 3, 3), pads=pads)


READERS = {
    "a convolution": lambda x: window(x, (1, 2, 1, 1)),
    "one that crops besides": lambda x: ops.conv(
        ops.pad(x, [0, 0, -1, 3, 0, 0, 2, -2]), normal(1, 2, 2, 2)
    ),
    "a pool with another fill": lambda x: ops.max_pool(
        x, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)
    ),
    "two that share a frame": lambda x: window(x, (1, 1, 1, 1)) + window(x, (2, 2, 0, 0)),
    "one frame around another": lambda x: ops.average_pool(
        ops.pad(ops.pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), [0, 0, 0, 1, 0, 0, 2, 0]), (2, 2)
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_readers_ask_whether_the_element_exists(name):
    graph = Graph.of(y=READERS[name](ops.input("x", (1, 2, 7, 6))))
    before = lower_graph(graph, streamed=None)
    after = check(remove_frames, before)
    assert not any("padded" in array for array in after.arrays)
    assert any(isinstance(e, Within) for s in after.statements for e in walk(s.value))


def test_a_frame_that_is_wanted_itself_stays():
    graph = Graph.of(y=ops.pad(ops.input("x", (2, 3)), [1, 0, 0, 2]))
    before = lower_graph(graph)
    assert check(remove_frames, before) == before
