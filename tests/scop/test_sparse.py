"""Sums over what is not zero of a constant: which, and that they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.scop.expr import loads, offset_range
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Scop
from polyc.scop.sparse.weights import find_entries
from polyc.scop.sparse.zeros import compress_zeros
from tests.scop.interpreter import interpret

RNG = np.random.default_rng(0)
LANES = 8


def thin(*shape: int, zeros: float = 0.9) -> np.ndarray:
    """Weights of which so many are zero, with one row that has none of its own."""
    w = np.where(RNG.random(shape) < zeros, 0, RNG.standard_normal(shape)).astype(np.float32)
    w[(0,) * (len(shape) - 1)] = 0
    return w


def conv(image, w, **more) -> Graph:
    return Graph.of(y=ops.conv(ops.input("x", image), w, **more))


def product(rows, w) -> Graph:
    return Graph.of(y=ops.relu(ops.input("x", (rows, w.shape[0]), w.dtype) @ w))


def update(scop: Scop):
    return next(s for s in scop.statements if s.reduction)


def tables(scop: Scop) -> list[str]:
    return [name for name in scop.arrays if "entries" in name or "place" in name]


@pytest.mark.parametrize(
    "graph",
    [
        product(16, thin(37, 11)),
        product(9, thin(5, 3, zeros=1.0)),
        conv((2, 6, 5, 17), thin(7, 6, 1, 1)),
        conv((1, 5, 9, 16), thin(6, 5, 3, 3), pads=[1] * 4),
        conv((1, 4, 9, 31), thin(6, 4, 3, 3), pads=[1] * 4, strides=[2, 2]),
        conv((1, 4, 9, 33), thin(6, 4, 1, 1), strides=[2, 2]),
        conv((1, 4, 20, 35), thin(6, 2, 3, 2), group=2, strides=[1, 3], dilations=[2, 2]),
        conv((1, 6, 40), thin(5, 6, 4)),
    ],
)
def test_sums_over_entries_are_the_same(graph):
    before = lower_graph(graph, streamed=None)
    thinned = compress_zeros(before, LANES)
    after = thinned.scop
    assert tables(after)
    (note,) = thinned.notes
    constants = [v for v in (before.arrays[n].value for n in before.arrays) if v is not None]
    assert (note.left, note.size) == (sum(map(np.count_nonzero, constants)), constants[0].size)
    made = [a.value for n, a in after.arrays.items() if n not in before.arrays]
    assert note.stored == sum(v.nbytes for v in made if v is not None)
    (name,) = before.inputs
    feeds = {name: RNG.standard_normal(before.arrays[name].shape).astype(np.float32)}
    expected, found = (interpret(scop, feeds)["y"] for scop in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        product(16, thin(37, 11, zeros=0.5)),  # too few zeros
        product(1, thin(37, 11)),  # no loop for vectors
        product(16, np.pad(np.ones((37, 1), np.float32), ((0, 0), (0, 19)))),  # one full row
        conv((1, 16, 9, 16), thin(16, 1, 3, 3), group=16, pads=[1] * 4),  # rows share nothing
    ],
)
def test_other_products_stay_as_they_are(graph):
    before = lower_graph(graph, streamed=None)
    assert compress_zeros(before, LANES).scop is before
    assert compress_zeros(before, 0).scop is before


def test_minimal_filtering_gives_way_to_fewer_products():
    w = thin(32, 32, 3, 3)
    graph = conv((1, 32, 16, 16), w, pads=[1] * 4)
    direct, tiles = lower_graph(graph, lanes=16), lower_graph(graph)
    assert len(direct.statements) < len(tiles.statements)
    assert tables(compress_zeros(direct, 16).scop)


def test_rows_keep_the_order_of_their_terms():
    table = np.array([[0, 3, 0, 5], [0, 0, 0, 0], [1, 0, np.nan, -0.0]], np.float32)
    entries = find_entries(table)
    assert entries.counts.tolist() == [2, 0, 2]
    assert entries.order[[0, 2]].tolist() == [[1, 3], [0, 2]]
    assert entries.longest == 2


def test_positions_are_said_to_lie_where_they_do():
    direct = lower_graph(conv((1, 5, 9, 16), thin(6, 5, 3, 3)), streamed=None)
    scop = compress_zeros(direct, LANES).scop
    (load,) = (e for e in update(scop).loads if e.dynamic)
    for dimension, expr in load.dynamic:
        ends = offset_range(expr)
        (table,) = loads(expr)
        value = scop.arrays[table.array].value
        assert ends == (value.min(), value.max())
        assert value.dtype == np.uint8
        assert dimension in (1, 2, 3)


TINY = np.float32(1e-40)


def subnormal(*shape: int) -> np.ndarray:
    """Weights of which about a third are no normal numbers, of both signs."""
    w = RNG.standard_normal(shape).astype(np.float32)
    return np.where(RNG.random(shape) < 0.3, np.sign(w) * TINY, w)


@pytest.mark.parametrize(
    "graph",
    [
        product(5, subnormal(37, 11)),
        product(5, subnormal(37, 11).T.copy().T),
        product(5, subnormal(37, 11).astype(np.float64) * 1e-270),
        conv((1, 5, 9, 16), subnormal(6, 5, 3, 3), pads=[1] * 4),
        conv((1, 6, 9, 16), subnormal(6, 1, 3, 3), group=6, bias=subnormal(6)),
    ],
)
def test_weights_too_small_for_normal_numbers_are_zeros(graph):
    before = lower_graph(graph, streamed=None)
    thinned = compress_zeros(before, LANES)
    factors = {load.array for load in loads(update(before).value)}
    known = {name: array.value for name, array in before.arrays.items() if array.value is not None}
    (w,) = (value for name, value in known.items() if name in factors)
    small = (w != 0) & (np.abs(w) < np.finfo(w.dtype).smallest_normal)
    for name, value in known.items():
        wanted = np.where(small, 0, value) if name in factors else value
        np.testing.assert_array_equal(thinned.scop.arrays[name].value, wanted)
    (note,) = thinned.notes
    assert f"takes {small.sum():,} of {w.size:,} weights" in str(note)


def test_weights_that_are_added_as_well_stay_as_they_are():
    w = ops.constant(subnormal(7, 5))
    graph = Graph.of(y=ops.input("x", (4, 7)) @ w, z=ops.input("b", (7, 5)) + w)
    before = lower_graph(graph, streamed=None)
    assert compress_zeros(before, LANES).scop is before
