"""Reductions and positions of extremes, with NaN, infinities, and nothing to reduce."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyc.graph.shapes.reduction import REDUCTIONS
from polyc.scop.lower.reductions.reduction import find_axes
from tests.scop.check import backend_cases, check_case, check_node

CASES = backend_cases(*REDUCTIONS, "ArgMax", "ArgMin")
VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.5, 3.25, np.inf, -np.inf, np.nan])


NUMPY = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
    "ReduceMax": lambda x, **k: np.max(x, initial=-np.inf, **k),
    "ReduceMin": lambda x, **k: np.min(x, initial=np.inf, **k),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_backend_case(case):
    scop = check_case(case)
    assert all(s.domain.is_box() for s in scop.statements)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(NUMPY)),
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
               elements=VALUES),
    st.booleans(),
    st.data(),
)  # fmt: skip
def test_against_numpy(op, x, keepdims, data):
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of the mean of nothing, which is NaN
        expected = NUMPY[op](x.astype(np.float64), axis=tuple(axes), keepdims=keepdims)
    scop = check_node(op, [x, np.array(axes)], {"keepdims": int(keepdims)},
                      expected=[np.asarray(expected, np.float32)], atol=1e-5)  # fmt: skip
    assert len(scop.statements) <= (5 if op == "ReduceLogSumExp" else 3)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                                "ReduceL1", "ReduceL2", "ReduceSumSquare"])  # fmt: skip
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_types(op, dtype):
    x = np.array([[3, 4, 12], [1, 2, 2]], dtype)
    scop = check_node(op, [x, np.array([1])], {"keepdims": 0})
    assert len(scop.statements) == 3


def test_log_sum_exp_neither_overflows_nor_vanishes():
    x = np.array([[1000, 1000], [-1000, -1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    expected = np.array([1000 + np.log(2), -1000 + np.log(2), -np.inf, np.inf], np.float32)
    scop = check_node("ReduceLogSumExp", [x, np.array([1])], {"keepdims": 0}, expected=[expected])
    assert len(scop.statements) == 5


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_bool_reduces_by_logic(op):
    x = np.array([[True, False], [True, True], [False, False]])
    expected = x.any(1) if op == "ReduceMax" else x.all(1)
    scop = check_node(op, [x, np.array([1])], {"keepdims": 0}, expected=[expected])
    assert {s.reduction for s in scop.statements} == {None, "or" if op == "ReduceMax" else "and"}


def test_nothing_to_reduce_is_pointwise():
    x = np.array([[1.0], [2.0]], np.float32)
    scop = check_node("ReduceSumSquare", [x, np.array([1])], expected=[x * x])
    assert [s.reduction for s in scop.statements] == [None]
    scop = check_node("ReduceL2", [-x, np.array([], np.int64)], {"noop_with_empty_axes": 1})
    assert [s.reduction for s in scop.statements] == [None]


def test_kept_iterators_are_plain_and_outside():
    x = np.ones((2, 3, 4), np.float32)
    update = check_node("ReduceSum", [x, np.array([1])]).statements[1]
    assert update.iterators == ("i0", "i2", "r1")
    assert update.reduction == "add"
    assert find_axes((2, 3, 4), (1,), True).into == ("i0", "0", "i2")


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=VALUES),
    st.sampled_from(["ArgMax", "ArgMin"]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_position_of_the_extreme(x, op, last, keepdims, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    find = np.argmax if op == "ArgMax" else np.argmin
    expected = find(x, axis=axis, keepdims=True)
    if last:
        expected = x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=True)
    if not keepdims:
        expected = np.squeeze(expected, axis)
    attributes = {"axis": axis, "keepdims": int(keepdims), "select_last_index": int(last)}
    scop = check_node(op, [x], attributes, expected=[expected])
    assert scop.arrays[scop.outputs[0]].dtype == np.int64
