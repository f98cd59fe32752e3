"""Tensors that come from shapes and positions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.scop.check import backend_cases, check_case, check_node

OPS = "Constant ConstantOfShape Range Shape Size EyeLike Trilu OneHot"


@pytest.mark.parametrize("case", backend_cases(*OPS.split()), ids=lambda case: case.name)
def test_backend_case(case):
    assert len(check_case(case).statements) == (1 if case.data_sets[0][1][0].size else 0)


@settings(max_examples=20, deadline=None)
@given(
    hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4),
    st.integers(-3, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([np.float32, np.int64, np.bool_]),
)
def test_trilu(shape, k, upper, known, dtype):
    x = np.ones(shape, dtype)
    if dtype == np.float32:
        x[...] = np.nan  # is 0 where it is cut off
    expected = np.triu(x, k) if upper else np.tril(x, k)
    shift = np.array(k)
    graph = [x, shift]
    scop = check_node("Trilu", graph, {"upper": int(upper)}, constant_inputs=(1,) * known,
                      expected=[expected])  # fmt: skip
    assert len(scop.statements) == (1 if x.size else 0)


def test_one_hot_of_positions_outside_is_off():
    indices, values = np.array([[0, 3], [-1, 4], [-5, 2]]), np.array([2.0, 5.0])
    expected = np.full((3, 4, 2), 2.0)
    expected[[0, 0, 1, 2], [0, 3, 3, 2], [0, 1, 0, 1]] = 5
    inputs = [indices, np.array(4), values]
    scop = check_node("OneHot", inputs, {"axis": 1}, expected=[expected])
    assert len(scop.statements) == 1


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_eye(dtype, k):
    code = {np.int32: 6, np.float32: 1, np.float64: 11, np.bool_: 9}[dtype]
    x = np.zeros((3, 4), np.float32)
    expected = np.eye(3, 4, k, dtype)
    scop = check_node("EyeLike", [x], {"k": k, "dtype": code}, expected=[expected])
    assert not any(scop.statements[0].loads)


def test_a_filled_shape_takes_no_memory():
    scop = check_node("ConstantOfShape", [np.array([100, 100])], {})
    (constant,) = (a for a in scop.arrays.values() if a.kind == "constant")
    assert constant.shape == ()
