"""Scatter: each output element asks who writes it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import RuntimeFailure
from tests.scop.check import backend_cases, check_case, check_node

CASES = backend_cases("ScatterElements", "ScatterND", "TensorScatter", "ReverseSequence")
RNG = np.random.default_rng(4)
REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_backend_case(case):
    check_case(case)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_elements_by_any_reduction(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    reduction = data.draw(st.sampled_from(["none", *REDUCTIONS]))
    smaller = [data.draw(st.integers(0, n)) for n in shape]
    x = RNG.standard_normal(shape).astype(np.float32)
    extent = shape[axis]
    if reduction == "none":  # no duplicates
        order = np.argsort(RNG.random(shape), axis=axis)
        indices = order[tuple(slice(n) for n in smaller)]
    else:
        indices = RNG.integers(-extent, extent, smaller)
    updates = RNG.standard_normal(smaller).astype(np.float32)
    expected = x.copy()
    for at in np.ndindex(*smaller):
        place = list(at)
        place[axis] = indices[at]
        old = expected[tuple(place)]
        new = updates[at]
        expected[tuple(place)] = REDUCTIONS[reduction](old, new) if reduction != "none" else new
    attributes = {"axis": axis, "reduction": reduction}
    check_node("ScatterElements", [x, indices, updates], attributes, expected=[expected])


def test_fewer_updates_than_elements_across_the_axis():
    x, update = np.array([[1, 2]], np.float32), np.array([[5]], np.float32)
    expected = np.array([[5, 2]], np.float32)
    check_node("ScatterElements", [x, np.array([[0]]), update], {"axis": 0}, expected=[expected])


@pytest.mark.parametrize("reduction", ["none", *REDUCTIONS])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_slices_by_any_reduction(reduction, depth):
    x = RNG.integers(-9, 9, (4, 5, 3)).astype(np.int32)
    count = 2 * 3
    flat = RNG.permutation(int(np.prod(x.shape[:depth])))[: min(count, 4)]
    if reduction != "none":
        flat = np.concatenate([flat, flat])[:count]
    flat = flat[: len(flat) // 2 * 2]
    indices = np.stack(np.unravel_index(flat, x.shape[:depth]), -1).reshape(2, -1, depth)
    updates = RNG.integers(-9, 9, (*indices.shape[:-1], *x.shape[depth:])).astype(np.int32)
    expected = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        place = tuple(indices[at])
        new = updates[at]
        old = expected[place]
        expected[place] = REDUCTIONS[reduction](old, new) if reduction != "none" else new
    attributes = {"reduction": reduction}
    check_node("ScatterND", [x, indices - x.shape[0] * 0, updates], attributes, expected=[expected])


@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_an_index_outside_stops_the_run(op):
    x, updates = np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32)
    indices = np.array([[3, 0]] if op == "ScatterElements" else [[3]])
    with pytest.raises(RuntimeFailure, match="3 elements"):
        check_node(op, [x, indices, updates], expected=[x])


def test_nothing_to_write():
    x, none = np.ones((3, 2), np.float32), np.zeros((0, 2), np.float32)
    check_node("ScatterElements", [x, np.zeros((0, 2), np.int64), none], expected=[x])
    check_node("ScatterND", [x, np.zeros((0, 1), np.int64), none], expected=[x])


def test_a_cache_that_is_full_stops_the_run():
    past, update = np.zeros((2, 4, 3), np.float32), np.ones((2, 2, 3), np.float32)
    with pytest.raises(RuntimeFailure, match="3 elements"):
        check_node("TensorScatter", [past, update, np.array([0, 3])], expected=[past])


@pytest.mark.parametrize("start", [0, 2, 3])
def test_a_circular_cache(start):
    past, update = np.zeros((1, 4, 3), np.float32), np.ones((1, 2, 3), np.float32)
    expected = past.copy()
    expected[:, [start, (start + 1) % 4]] = 1
    where = np.array([start])
    check_node("TensorScatter", [past, update, where], {"mode": "circular"}, expected=[expected])
