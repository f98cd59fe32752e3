"""Exact runs of models of every kind, and what they say."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import polyc
from polyc import Graph, ops
from polyc.errors import RuntimeFailure
from tests.exact.runs import exactly
from tests.sampling import sampled, thorough
from tests.staged import model_of


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_small_model_says_what_was_run():
    x = ops.input("x", (3, 7))
    report = polyc.verify(Graph.of(y=ops.softmax(x @ weights(7, 5))), exact=True, target="avx2")
    assert report.agrees
    assert str(report) == (
        "6 calls in 3 runs modulo 2147483647, on 1 thread and 2 threads: all 90 elements of "
        "outputs as the statements say, exactly"
    )


def test_sizes_known_only_at_run_time_are_tried():
    x = ops.input("x", ("batch", "seq", 24))
    y = ops.softmax(ops.relu(x @ weights(24, 33)))
    report = exactly(Graph.of(y=y), dims={"seq": (2, 70)}, hint={"batch": 3, "seq": 31})
    assert report.agrees, report
    first, second, third = report.sizes
    assert sorted(first.values()) == [1, 2]
    assert sorted(second.values()) == [3, 31]
    assert all(1 <= n <= 40 for n in third.values())


@pytest.mark.parametrize("capacity", sampled([5, 64, 65, 100], often=[5, 64]))
def test_a_state_that_grows(capacity):
    past, given = ops.input("past", ("rows", 16)), ops.input("given", ("n", 16))
    rows = ops.concat([past, given], axis=0)
    graph = Graph.of(y=ops.softmax(given @ ops.transpose(rows)) @ rows, present=rows)
    dims = {"rows": (0, capacity), "n": (1, capacity)}
    report = exactly(graph, dims=dims, state={"past": "present"})
    assert report.agrees, report
    assert report.calls > 2 * report.runs


def test_a_state_that_stays_as_large():
    h, x = ops.input("h", (1, 12)), ops.input("x", (1, 9))
    after = ops.tanh(h @ weights(12, 12) + x @ weights(9, 12))
    report = exactly(Graph.of(y=after * 2.0, after=after), state={"h": "after"})
    assert report.agrees, report
    assert report.calls == report.runs * 2 * 3


def recurrent(op: str, gates: int, **attributes: object) -> onnx.ModelProto:
    names = ["x", "w", "r", "b"]
    shapes = [(7, 3, 10), (2, gates * 6, 10), (2, gates * 6, 6), (2, 2 * gates * 6)]
    node = helper.make_node(
        op, names, ["y", "y_h"], hidden_size=6, direction="bidirectional", **attributes
    )
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, shapes[0])]
    outputs = [value("y", TensorProto.FLOAT, (7, 2, 3, 6)), value("y_h", TensorProto.FLOAT, None)]
    tensors = [
        onnx.numpy_helper.from_array(weights(*s), n)
        for n, s in zip(names[1:], shapes[1:], strict=True)
    ]
    graph = helper.make_graph([node], op, inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    ("op", "gates"),
    [
        *(thorough(*many) for many in (("LSTM", 4), ("GRU", 3))),
        ("RNN", 1),
    ],
)
def test_loops_over_steps(op, gates):
    report = exactly(recurrent(op, gates))
    assert report.agrees, report


@pytest.mark.parametrize(
    "dtype",
    sampled(
        ["float16", "float8_e4m3fn", "bfloat16", "float64", "float6_e2m3fn"],
        often=["bfloat16", "float6_e2m3fn"],
    ),
)
def test_types(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x = ops.input("x", (5, 37), kind)
    y = ops.softmax(ops.cast(x, np.float32) @ weights(37, 11))
    report = exactly(Graph.of(y=y, back=ops.cast(y, kind)))
    assert report.agrees, report
    assert report.prime < 1 << 8 * kind.itemsize


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_integers_of_less_than_a_byte(dtype):
    """Negative ones have their sign in the bits that count: the rest of the byte is zero."""
    x = ops.input("x", (9, 5), np.dtype(getattr(ml_dtypes, dtype)))
    report = exactly(Graph.of(y=ops.cast(x, np.float64), z=ops.cast(x, np.int8)))
    assert report.agrees, report


def test_integers_and_booleans():
    x, i = ops.input("x", (6, 21)), ops.input("i", (4,), np.int64)
    picked = ops.gather(x, i, axis=0)
    report = exactly(Graph.of(y=picked, z=ops.cast(ops.cast(picked, np.int8), np.float32) * 0.5))
    assert report.agrees, report


def test_stages_are_run_one_by_one():
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["places"]),
        helper.make_node("Cast", ["places"], ["y"], to=TensorProto.FLOAT),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "found",
        [value("x", TensorProto.FLOAT, (3, 5))],
        [value("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    report = polyc.verify(model, exact=True, target="avx2")
    assert report.agrees
    assert report.elements > 0


def test_calls_that_are_refused_for_what_they_find_are_passed_over():
    """More true elements than updates: no statement has instances, and nothing is found again."""
    source = model_of("""g (float[n] x, bool[n] m, float[k] u) => (float[n] y) {
        found = NonZero(m) places = Transpose<perm = [1, 0]>(found)
        shape = Shape(places) first = Constant<value_ints = [0]>() count = Gather(shape, first)
        some = Slice(u, first, count, first) y = ScatterND(x, places, some) }""")
    assert polyc.verify(source, exact=True, target="avx2").agrees
    report = polyc.verify(source, exact=True, target="avx2", dims={"k": 99})
    assert report.agrees
    assert report.elements > 20


def test_a_wrong_result_is_an_error_that_names_it(monkeypatch):
    from polyc.printing.print_expr import Printer

    right = Printer.apply

    def wrong(printer, function, *rest):
        return right(printer, "min" if function == "max" else function, *rest)

    monkeypatch.setattr(Printer, "apply", wrong)
    x = ops.input("x", (3, 7))
    with pytest.raises(RuntimeFailure, match=r"output 'y' of node Relu_0: \d+ of 21 elements"):
        polyc.verify(Graph.of(y=ops.relu(x)), exact=True, target="avx2")
