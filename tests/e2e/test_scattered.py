"""What is written where an index says: each update costs what it writes, in its order."""

import re

import numpy as np
import pytest

from polyc import Options, compile
from polyc.graph.ir import Node
from tests.graph.simplify.conftest import build_graph

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
PICKED = re.compile(r"(c\d+)_end = \1 \+ \(")
"""A loop of one iteration, which data picks."""

rng = np.random.default_rng(11)


def scatter_nd(x, indices, updates, reduction):
    y = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        place = tuple(indices[at])
        y[place] = updates[at] if reduction == "none" else UFUNCS[reduction](y[place], updates[at])
    return y


def scatter_elements(x, indices, updates, reduction, axis):
    y = x.copy()
    for at in np.ndindex(*indices.shape):
        place = (*at[:axis], indices[at], *at[axis + 1 :])
        y[place] = updates[at] if reduction == "none" else UFUNCS[reduction](y[place], updates[at])
    return y


def make(op, shape, indices, updates, dtype="float32", **attributes):
    node = Node("scatter", op, ("x", "i", "u"), ("y",), attributes)
    types = {"x": (dtype, shape), "i": ("int64", indices), "u": (dtype, updates)}
    return build_graph(types, [node], ["y"])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("reduction", ["none", *UFUNCS])
@pytest.mark.parametrize(
    ("shape", "count", "depth"),
    [
        ((50, 24), 3000, 1),  # positions in blocks, for threads
        ((37,), 40_000, 1),  # no rows to write
        ((9, 11, 5), 700, 2),
        ((7, 6, 5), 90, 3),
        ((513, 33), 17, 1),
        ((4, 16), 1, 1),
    ],
)
def test_slices(shape, count, depth, reduction, threads):
    if reduction == "none":  # in no order that is told: no place twice
        count = min(count, int(np.prod(shape[:depth])))
        flat = rng.permutation(int(np.prod(shape[:depth])))[:count]
    else:
        flat = rng.integers(0, int(np.prod(shape[:depth])), count)
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1)
    indices = np.where(rng.random(indices.shape) < 0.3, indices - shape[:depth], indices)
    x = rng.uniform(0.9, 1.1, shape).astype(np.float32)
    updates = rng.uniform(0.99, 1.01, (count, *shape[depth:])).astype(np.float32)
    graph = make("ScatterND", shape, indices.shape, updates.shape, reduction=reduction)
    model = compile(graph, options=Options(threads=threads))
    assert len(PICKED.findall(model.source)) >= (count > 1)
    expected = scatter_nd(*(a.astype(np.float64) for a in (x,)), indices, updates, reduction)
    np.testing.assert_allclose(model(x, indices, updates), expected, rtol=2e-4)


@pytest.mark.parametrize("reduction", ["none", *UFUNCS])
@pytest.mark.parametrize(
    ("shape", "smaller", "axis"),
    [
        ((300, 40), (200, 40), 0),
        ((40, 300), (40, 200), 1),
        ((6, 50, 20), (6, 80, 13), 1),
        ((6, 50, 20), (4, 50, 9), 2),
        ((2000,), (1500,), 0),
    ],
)
def test_elements(shape, smaller, axis, reduction):
    if reduction == "none":
        smaller = tuple(min(a, b) for a, b in zip(shape, smaller, strict=True))
        order = np.argsort(rng.random(shape), axis=axis)
        indices = order[tuple(map(slice, smaller))].copy()
    else:
        indices = rng.integers(-shape[axis], shape[axis], smaller)
    x = rng.uniform(0.9, 1.1, shape).astype(np.float32)
    updates = rng.uniform(0.99, 1.01, smaller).astype(np.float32)
    graph = make(
        "ScatterElements", shape, smaller, smaller, axis=axis, reduction=reduction
    )  # fmt: skip
    model = compile(graph)
    assert PICKED.search(model.source)
    expected = scatter_elements(x.astype(np.float64), indices, updates, reduction, axis)
    np.testing.assert_allclose(model(x, indices, updates), expected, rtol=2e-4)


def test_sums_are_those_of_the_updates_in_their_order():
    """Whatever the number of threads: bit by bit."""
    indices = rng.integers(0, 20, (5000, 1))
    x, updates = np.zeros((20, 16), np.float32), rng.standard_normal((5000, 16)).astype(np.float32)
    expected = np.zeros_like(x)
    np.add.at(expected, indices[:, 0], updates)
    graph = make("ScatterND", x.shape, indices.shape, updates.shape, reduction="add")
    for threads in (1, 2, 4):
        model = compile(graph, options=Options(threads=threads))
        np.testing.assert_array_equal(model(x, indices, updates), expected)


def test_nan_and_infinity_stay_where_they_are_written():
    x = np.zeros((64, 32), np.float32)
    indices = rng.permutation(64)[:40, None]
    updates = rng.standard_normal((40, 32)).astype(np.float32)
    updates[3, 5], updates[7, 0], updates[9, 31] = np.nan, np.inf, -np.inf
    for reduction in ("none", "add", "max"):
        graph = make("ScatterND", x.shape, indices.shape, updates.shape, reduction=reduction)
        with np.errstate(invalid="ignore"):
            expected = scatter_nd(x, indices, updates, reduction)
        np.testing.assert_array_equal(compile(graph)(x, indices, updates), expected)


def test_open_sizes():
    graph = make("ScatterND", ("n", 16), ("k", 1), ("k", 16), reduction="add")
    model = compile(graph)
    assert PICKED.search(model.source)
    for n, count in ((1, 1), (5, 2), (37, 1000), (1000, 3)):
        x = rng.standard_normal((n, 16)).astype(np.float32)
        indices = rng.integers(0, n, (count, 1))
        updates = rng.standard_normal((count, 16)).astype(np.float32)
        expected = scatter_nd(x.astype(np.float64), indices, updates, "add")
        np.testing.assert_allclose(model(x, indices, updates), expected, rtol=1e-4, atol=1e-4)
