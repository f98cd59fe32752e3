"""TopK: ranks are a permutation, with ties and NaN too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.scop.check import backend_cases, check_case, check_node


@pytest.mark.parametrize("case", backend_cases("TopK"), ids=lambda case: case.name)
def test_backend_case(case):
    check_case(case)


@settings(max_examples=25, deadline=None)
@given(hnp.array_shapes(max_dims=3, max_side=5), st.data())
def test_against_a_stable_sort(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(0, shape[axis]))
    largest = data.draw(st.integers(0, 1))
    dtype = data.draw(st.sampled_from(["float32", "int8", "uint8", "int64"]))
    x = np.random.default_rng(7).integers(0, 4, shape).astype(dtype)
    order = np.argsort(-x.astype(np.int64) if largest else x, axis=axis, kind="stable")
    chosen = np.take(order, range(count), axis=axis)
    expected = [np.take_along_axis(x, chosen, axis), chosen]
    attributes = {"axis": axis, "largest": largest}
    check_node("TopK", [x, np.array([count])], attributes, 2, expected=expected)


@pytest.mark.parametrize(("largest", "order"), [(1, [1, 4, 3, 0, 2]), (0, [2, 0, 3, 1, 4])])
def test_a_nan_is_the_largest(largest, order):
    x = np.array([1, np.nan, -np.inf, np.inf, np.nan], np.float32)
    chosen = np.array(order)
    attributes = {"largest": largest}
    check_node("TopK", [x, np.array([5])], attributes, 2, expected=[x[chosen], chosen])
