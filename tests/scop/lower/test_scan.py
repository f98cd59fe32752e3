"""Running totals are recurrences: as many statement instances as elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyc.errors import UnsupportedOp
from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.interpreter import points_of


@pytest.mark.parametrize("case", backend_cases("CumSum", "CumProd"), ids=lambda case: case.name)
def test_backend_case(case):
    assert len(check_case(case).statements) == 2


@settings(max_examples=40)
@given(
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    st.sampled_from(["CumSum", "CumProd"]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_against_numpy(shape, op, reverse, exclusive, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 5 + 0.5
    running, neutral = (np.cumsum, 0) if op == "CumSum" else (np.cumprod, 1)
    expected = np.flip(x, axis) if reverse else x
    if exclusive:
        start = np.full_like(np.take(expected, [0] * min(shape[axis], 1), axis), neutral)
        most = np.take(expected, range(max(shape[axis] - 1, 0)), axis)
        expected = np.concatenate([start, most], axis)
    expected = running(expected, axis)
    expected = np.flip(expected, axis) if reverse else expected
    attributes = {"reverse": int(reverse), "exclusive": int(exclusive)}
    scop = check_node(op, [x, np.array(axis)], attributes, expected=[expected])
    assert sum(len(points_of(s.domain)) for s in scop.statements) == x.size


def test_the_axis_must_be_known():
    tensors = [Tensor("x", np.dtype("f4"), (3,)), Tensor("a", np.dtype("i8"), ()),
               Tensor("y", np.dtype("f4"), (3,))]  # fmt: skip
    node = Node("sum", "CumSum", ("x", "a"), ("y",))
    graph = Graph("g", (node,), {t.name: t for t in tensors}, ("x", "a"), ("y",))
    with pytest.raises(UnsupportedOp, match=r"CumSum 'sum'.*axis.*'a'"):
        lower_graph(graph)
