"""Sums that nobody reads: which are left out, and that all others are the same."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import Graph, Options, ops, pipeline
from polyc.scop.delinearise import delinearise
from polyc.scop.distribute import distribute
from polyc.scop.inline import inline_pointwise
from polyc.scop.lower import lower_graph
from polyc.scop.merge_copies import merge_copies
from polyc.scop.scop import Scop
from polyc.scop.trim_sums import trim_sums
from tests.scop.interpreter import interpret

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def crop(value, *sides: tuple[int, int]):
    starts, ends = zip(*sides, strict=True)
    return ops.slice(value, starts, ends, tuple(range(-len(sides), 0)))


def rewrite(graph: Graph) -> Scop:
    return delinearise(
        merge_copies(distribute(inline_pointwise(lower_graph(graph, streamed=None))))
    )


def counted(scop: Scop) -> int:
    """The instances of all sums."""
    return sum(int(s.domain.count_val().to_python()) for s in scop.statements if s.reduction)


def conv(*image: int, outputs: int = 3, window: int = 3):
    return ops.conv(ops.input("x", image), weights(outputs, image[1], window, window))


TAPS = 2 * 9
"""Products of an output: channels and places of a window."""


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        (Graph.of(y=crop(conv(1, 2, 9, 8), (0, 5), (2, 6))), 3 * 5 * 4 * TAPS),
        (Graph.of(y=crop(ops.relu(conv(1, 2, 9, 8)), (1, -1), (0, -2))), 3 * 5 * 4 * TAPS),
        (Graph.of(y=crop(conv(2, 2, 9, 8, outputs=5), (1, 3), (0, 7), (0, 6))), 4 * 7 * 6 * TAPS),
        (  # phases of 5 and 4 outputs, of which the last one of the longer is cut off
            Graph.of(
                y=crop(
                    ops.conv_transpose(ops.input("x", (1, 2, 4)), weights(2, 3, 3), strides=[2]),
                    (0, -1),
                )
            ),
            3 * 4 * 2 * (2 + 1),
        ),
        (Graph.of(y=ops.slice(conv(1, 2, 9, 8), 1, 6, 2, 2)), 3 * 5 * 6 * TAPS),  # 1, 3, 5
    ],
)
def test_what_is_cut_off_is_not_summed(graph, left):
    before = rewrite(graph)
    after = trim_sums(before)
    assert counted(after) == left < counted(before)
    x = RNG.standard_normal(before.arrays["x"].shape).astype(np.float32)
    np.testing.assert_array_equal(interpret(after, {"x": x})["y"], interpret(before, {"x": x})["y"])


@pytest.mark.parametrize(
    "graph",
    [
        Graph.of(y=conv(1, 2, 9, 8)),
        Graph.of(y=(both := conv(1, 2, 9, 8)), z=crop(both, (0, 5))),
        Graph.of(y=ops.concat([(part := conv(1, 2, 9, 8)), crop(part, (2, 4), (0, 6))], axis=2)),
        Graph.of(y=ops.gather(conv(1, 2, 9, 8), ops.input("i", (2,), "int64"), axis=3)),
    ],
)
def test_what_is_read_stays(graph):
    scop = rewrite(graph)
    assert trim_sums(scop) is scop


@pytest.mark.parametrize("trims", [True, False])
@pytest.mark.parametrize(
    ("window", "cut"), [(3, (0, -1)), (3, (1, 10**9)), (4, (1, -1)), (5, (1, -2))]
)
def test_transposed_convolutions_of_any_size(tmp_path, monkeypatch, window, cut, trims):
    """As tf2onnx writes padding "same": all of it, and a slice.

    Where sums that nobody reads stay, a tile has one row less of what is written than of sums.
    """
    if not trims:
        monkeypatch.setattr(pipeline, "trim_sums", lambda scop: scop)
    w = weights(4, 9, window)
    x = ops.input("x", ("n", 4, "h"))
    graph = Graph.of(y=crop(ops.conv_transpose(x, w, strides=[2]), cut))
    model = polyc.compile(graph, options=Options(cache_dir=tmp_path))
    for n, h in [(1, 1), (2, 3), (1, 24), (3, 25), (1, 26), (2, 131)]:
        given = RNG.standard_normal((n, 4, h)).astype(np.float32)
        whole = np.zeros((n, 9, 2 * h + window - 2))
        for k in range(h):
            part = np.einsum("nc,cow->now", given[:, :, k].astype("f8"), w)
            whole[:, :, 2 * k : 2 * k + window] += part
        np.testing.assert_allclose(model(given), whole[:, :, cut[0] : cut[1]], rtol=1e-5, atol=1e-5)
