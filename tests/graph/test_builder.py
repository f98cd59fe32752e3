"""Expressions written in Python become graphs that compute what NumPy computes."""

import numpy as np
import pytest

from polyc import ops
from polyc.errors import InvalidModel, ShapeError
from polyc.graph.builder import Value, apply, graph_of
from polyc.graph.ir import Graph
from polyc.graph.shapes import is_supported
from tests.graph.onnx_models import model_of_graph, run


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).uniform(0.5, 2, shape).astype(np.float32)


A, B, W = array(4, 8), array(4, 8), array(8, 3)


def compute(expression: Value, **feeds: np.ndarray) -> np.ndarray:
    (result,) = run(model_of_graph(Graph.of(y=expression)), feeds)
    return result


def test_the_first_example():
    x = ops.input("x", (4, 8))
    graph = Graph.of(y=ops.relu(x @ W - 5))
    assert [n.op for n in graph.nodes] == ["MatMul", "Sub", "Relu"]
    assert str(graph.tensor("y")) == "y: float32[4, 3]"
    (y,) = run(model_of_graph(graph), {"x": A})
    np.testing.assert_allclose(y, np.maximum(A.astype(float) @ W - 5, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a**b,
        lambda a, b: -a + 2 - b,
        lambda a, b: 3 - a,
        lambda a, b: 2 * a / 4,
        lambda a, b: 1 / a,
        lambda a, b: 2**a,
        lambda a, b: a @ W,
        lambda a, b: W.T @ np.ones((8, 4), np.float32) @ a,
        lambda a, b: B - a,
    ],
)
def test_operators_mean_what_numpy_means(formula):
    a, b = ops.input("a", (4, 8)), ops.input("b", (4, 8))
    expression = formula(a, b)
    feeds = {n: v for n, v in {"a": A, "b": B}.items() if n in Graph.of(y=expression).inputs}
    expected = formula(A.astype(np.float64), B.astype(np.float64))
    np.testing.assert_allclose(compute(expression, **feeds), expected, rtol=1e-5)


X = array(1, 4, 6, 6)
ONE = np.ones(4, np.float32)
x = ops.input("x", X.shape)
FUNCTIONS = [
    (ops.softmax(x, axis=1), lambda v: np.exp(v) / np.exp(v).sum(1, keepdims=True)),
    (ops.reduce_mean(x, axes=(2, 3), keepdims=False), lambda v: v.mean((2, 3))),
    (ops.reduce_sum(x), lambda v: v.sum(keepdims=True)),
    (ops.arg_max(x, axis=3), lambda v: v.argmax(3, keepdims=True)),
    (x + ops.one_hot(np.arange(6), 6), lambda v: v + np.eye(6)),
    (ops.cum_sum(x, axis=2), lambda v: v.cumsum(2)),
    (ops.reshape(x, (2, -1)), lambda v: v.reshape(2, -1)),
    (ops.transpose(x, (0, 2, 3, 1)), lambda v: v.transpose(0, 2, 3, 1)),
    (ops.squeeze(x, 0), lambda v: v[0]),
    (ops.unsqueeze(x, (0, 5)), lambda v: v[None, ..., None]),
    (ops.expand(x, (3, 1, 1, 1)), lambda v: np.broadcast_to(v, (3, 4, 6, 6))),
    (ops.concat([x, x], axis=1), lambda v: np.concatenate([v, v], 1)),
    (ops.split(x, parts=2, axis=1)[1], lambda v: v[:, 2:]),
    (ops.split(x, (1, 3), axis=1)[0], lambda v: v[:, :1]),
    (ops.slice(x, (1, 5), (4, 0), axes=(1, 2), steps=(1, -2)), lambda v: v[:, 1:4, 5:0:-2]),
    (ops.pad(x, (1, 2), 9, axes=(3,)), lambda v: np.pad(v, [(0, 0)] * 3 + [(1, 2)],
                                                          constant_values=9)),
    (ops.tile(x, (2, 1, 1, 2)), lambda v: np.tile(v, (2, 1, 1, 2))),
    (ops.trilu(x, k=1), lambda v: np.triu(v, 1)),
    (ops.gather(x, np.array([2, 0]), axis=1), lambda v: v[:, [2, 0]]),
    (ops.where(ops.greater(x, 1), x, 0.0), lambda v: np.where(v > 1, v, 0)),
    (ops.clip(x, 0.75, 1.5), lambda v: v.clip(0.75, 1.5)),
    (ops.clip(x, high=1.5), lambda v: v.clip(None, 1.5)),
    (ops.cast(x, np.int32), lambda v: v.astype(np.int32)),
    (ops.max(x, 1.0, np.float32(1.25)), lambda v: np.maximum(v, 1.25)),
    (ops.mod(x, 0.75, fmod=True), lambda v: np.fmod(v, 0.75)),
    (ops.global_average_pool(x), lambda v: v.mean((2, 3), keepdims=True)),
    (ops.max_pool(x, (2, 2), strides=(2, 2)), lambda v: v.reshape(1, 4, 3, 2, 3, 2).max((3, 5))),
    (ops.conv(x, np.eye(4, dtype=np.float32)[:, :, None, None], ONE), lambda v: v + 1),
    (ops.einsum("nchw->nc", x), lambda v: v.sum((2, 3))),
    (ops.gemm(x_matrix := ops.flatten(x), x_matrix, trans_b=True, alpha=0.5),
     lambda v: 0.5 * (v.reshape(1, -1) @ v.reshape(1, -1).T)),
    (ops.batch_normalization(x, ONE, ONE, ONE, ONE, epsilon=3), lambda v: (v - 1) / 2 + 1),
    (ops.rms_normalization(x, np.ones(6, np.float32), epsilon=0.0),
     lambda v: v / np.sqrt((v**2).mean(3, keepdims=True))),
    (x * ops.full((6,), 2.5), lambda v: v * 2.5),
    (x + ops.cast(ops.arange(0, 6), np.float32), lambda v: v + np.arange(6)),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "reference"), FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_functions_mean_what_numpy_means(expression, reference):
    expected = reference(X.astype(np.float64))
    actual = compute(expression, x=X)
    assert actual.shape == expected.shape == expression.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


UNARY = [name for name in ops.elementwise.__dict__ if name in ops.__all__]


@pytest.mark.parametrize("name", UNARY)
def test_each_function_of_the_elementwise_table_has_a_supported_operator(name):
    function = getattr(ops, name)
    assert function.__doc__
    formula = function.__doc__
    if formula.startswith("ONNX "):
        assert is_supported(formula.split()[1].rstrip(","))


def test_a_shared_expression_is_one_node():
    a = ops.input("a", (4,))
    shared = ops.exp(a)
    graph = Graph.of(y=shared + shared, z=ops.sqrt(shared))
    assert sorted(n.op for n in graph.nodes) == ["Add", "Exp", "Sqrt"]


def test_inputs_come_in_order_of_creation():
    first, second = ops.input("second", (4,)), ops.input("first", (4,))
    assert Graph.of(y=second - first).inputs == ("second", "first")


@pytest.mark.thorough
def test_an_expression_may_be_longer_than_pythons_stack():
    value = start = ops.input("x", (2,))
    for _ in range(5000):
        value = apply("Relu", [value])
    assert len(graph_of({"y": value}).nodes) == 5000
    assert start.op == ""


def test_one_expression_may_be_two_outputs():
    y = ops.exp(ops.input("x", (2,)))
    graph = Graph.of(a=y, b=y)
    assert [n.op for n in graph.nodes] == ["Exp", "Identity"]
    assert graph.outputs == ("a", "b")


def test_an_input_may_be_an_output_under_another_name():
    assert [n.op for n in Graph.of(y=ops.input("x", (2,))).nodes] == ["Identity"]


def test_what_is_computed_from_constants_is_a_constant():
    doubled = ops.constant(np.array([1.0, 2.0])) * 2
    assert doubled.type.value.tolist() == [2, 4]
    x = ops.input("x", (2, 6))
    flat = ops.reshape(x, ops.concat([ops.shape_of(x, end=1), np.array([3, -1])], axis=0))
    assert flat.shape == (2, 3, 2)


def test_a_constant_does_not_follow_its_array():
    data = np.ones(3, np.float32)
    value = ops.constant(data, "ones")
    data[0] = 7
    assert value.type.value.tolist() == [1, 1, 1]
    assert value.name == "ones"


def test_sizes_may_be_symbols():
    y = ops.relu(ops.input("x", ("N", 8)) @ W)
    assert y.shape == ("N", 3)


def test_names_do_not_collide():
    a = ops.input("relu_0", (2,))
    graph = Graph.of(y=ops.exp(ops.relu(a)))
    assert len(set(graph.tensors)) == 3


def test_misfits_are_reported_where_they_are_written():
    a = ops.input("a", (2, 3))
    with pytest.raises(ShapeError):
        a @ ops.input("b", (4, 5))
    with pytest.raises(ShapeError):
        ops.logical_and(a, a)
    with pytest.raises(ShapeError, match="-1"):
        ops.input("c", (-1,))
    with pytest.raises(ShapeError, match="'d'"):
        ops.input("d", (2.5,))


def test_names_are_given_once():
    a, again = ops.input("a", (2,)), ops.input("a", (2,))
    with pytest.raises(InvalidModel, match="'a'"):
        Graph.of(y=a + again)
    with pytest.raises(InvalidModel, match="'a'"):
        Graph.of(a=ops.relu(a))
    with pytest.raises(InvalidModel, match="at least one output"):
        Graph.of()
    with pytest.raises(InvalidModel, match="empty name"):
        ops.input("", (2,))
    with pytest.raises(InvalidModel, match="only numbers"):
        ops.constant(["a"])
