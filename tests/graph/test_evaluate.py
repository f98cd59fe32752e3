"""Values of constant nodes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.errors import ShapeError, UnsupportedOp
from polyc.graph.inference.evaluate import evaluate_node
from polyc.graph.ir import INTERNAL, Node


def evaluate(op, *arrays, outputs=("y",), **attributes):
    names = tuple("" if a is None else f"i{n}" for n, a in enumerate(arrays))
    return evaluate_node(Node("n1", op, names, outputs, attributes), arrays)


def test_values_agree_with_numpy():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    cases = [
        (evaluate("Transpose", x, perm=(2, 0, 1)), x.transpose(2, 0, 1)),
        (evaluate("Clip", x, None, np.float32(5)), np.minimum(x, 5)),
        (evaluate("Gather", x, np.array([0, -1]), axis=1), x[:, [0, -1]]),
        (evaluate("Cast", x, to=7), x.astype(np.int64)),
        (evaluate("Identity", x), x),
        (evaluate("Constant", value_floats=(1.0, 2.5)), np.array([1, 2.5], np.float32)),
        (evaluate("ConstantOfShape", np.array([2, 0])), np.zeros((2, 0), np.float32)),
        (evaluate("ReduceSum", x, np.array([], np.int64), noop_with_empty_axes=1), x),
    ]
    for (got,), expected in cases:
        np.testing.assert_array_equal(got, expected, strict=True)


def test_where_the_true_ones_of_a_constant_are():
    totals, wanted = np.array([[0, 1, 1, 2], [1, 1, 1, 1]]), np.array([3])
    node = Node("n1", "Places", ("t", "w"), ("y",), {}, domain=INTERNAL)
    (places,) = evaluate_node(node, (totals, wanted))
    np.testing.assert_array_equal(places, [[1, 3, 3], [0, 3, 3]])  # the last where there are fewer


def test_runs_of_a_constant_are_merged():
    keys, half = np.array([[9, 4, 7, 4, 5], [1, 0, -(2**31), 3, 2]], np.int32), np.int32([2])
    node = Node("n1", "Merged", ("k", "h"), ("y",), {}, domain=INTERNAL)
    (places,) = evaluate_node(node, (keys, half))
    np.testing.assert_array_equal(places, [[0, 2, 1, 3, 4], [3, 0, 1, 2, 4]])


def test_several_outputs_keep_their_order():
    x = np.arange(5)
    parts = evaluate("Split", x, np.array([1, 4]), outputs=("a", "b"))
    np.testing.assert_array_equal(parts[0], x[:1])
    np.testing.assert_array_equal(parts[1], x[1:])
    values, _, deviation = evaluate(
        "LayerNormalization", np.float32([[1, 3]]), np.float32([1, 1]), outputs=("y", "", "d"),
        epsilon=0.0,
    )  # fmt: skip
    np.testing.assert_allclose(values, [[-1, 1]])
    np.testing.assert_allclose(deviation, [[1]])


def test_shapes_are_checked_first():
    with pytest.raises(ShapeError, match=r"Add 'n1': broadcast dimensions"):
        evaluate("Add", np.zeros(2), np.zeros(3))


def test_failures_of_the_evaluator_are_reported():
    with pytest.raises(
        UnsupportedOp, match=r"Gelu 'n1': cannot be evaluated .*; replace its result"
    ):
        evaluate("Gelu", np.float32([1]))


def test_a_value_of_another_shape_than_inferred_is_refused():
    # Behind position 0 the standard clamps a backward slice to position 0, NumPy to nothing.
    far = [np.array([v]) for v in (-100, -100, 0, -1)]
    with pytest.raises(UnsupportedOp, match=r"Slice 'n1': the reference evaluator returned"):
        evaluate("Slice", np.arange(3), *far)
