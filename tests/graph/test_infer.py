"""Types of whole graphs, and which nodes are evaluated away."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from polyc.errors import InvalidModel, NeedsValues, ShapeError
from polyc.graph.inference.folding import MAX_FOLDED
from polyc.graph.inference.infer import infer_graph
from polyc.graph.ir import Node, Tensor
from polyc.types.sizes import Size


def tensor(name, *shape, dtype=np.float32):
    return Tensor(name, np.dtype(dtype), shape)


def constant(name, value, dtype=np.int64):
    value = np.asarray(value, dtype)
    return Tensor(name, value.dtype, value.shape, value)


def node(op, inputs, outputs, **attributes):
    return Node(f"{op}_{outputs}", op, tuple(inputs.split()), tuple(outputs.split()), attributes)


def infer(nodes, tensors, outputs, inputs=("x",)):
    return infer_graph("g", nodes, {t.name: t for t in tensors}, inputs, outputs)


FLATTEN_BY_HAND = [
    node("Shape", "x", "s"),
    node("Gather", "s zero", "batch", axis=0),
    node("Unsqueeze", "batch first", "batch1"),
    node("Concat", "batch1 minus", "target", axis=0),
    node("Reshape", "x target", "y"),
]
CONSTANTS = [constant("zero", 0), constant("first", [0]), constant("minus", [-1])]


def test_shape_computation_vanishes_and_agrees_with_onnxruntime():
    graph = infer(FLATTEN_BY_HAND, [tensor("x", 2, 3, 4), *CONSTANTS], ["y"])
    assert [n.op for n in graph.nodes] == ["Reshape"]
    assert set(graph.tensors) == {"x", "target", "y"}
    np.testing.assert_array_equal(graph.value("target"), [2, -1])

    proto = helper.make_graph(
        [helper.make_node(n.op, n.inputs, n.outputs, **n.attributes) for n in FLATTEN_BY_HAND],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(c.name, TensorProto.INT64, c.shape, c.value) for c in CONSTANTS],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (y,) = session.run(None, {"x": np.zeros((2, 3, 4), np.float32)})
    assert graph.tensor("y").shape == y.shape
    assert graph.tensor("y").dtype == y.dtype


def test_nodes_that_read_an_input_are_kept():
    graph = infer([node("Relu", "x", "a"), node("Add", "a c", "y")],
                  [tensor("x", 2, 3), constant("c", [1, 2, 3], np.float32)], ["y"])  # fmt: skip
    assert [n.op for n in graph.nodes] == ["Relu", "Add"]
    assert str(graph.tensor("y")) == "y: float32[2, 3]"
    assert not graph.tensor("y").is_constant


def test_constant_output_is_a_tensor_without_node():
    graph = infer([node("Size", "x", "y")], [tensor("x", 2, 3)], ["y"])
    assert graph.nodes == ()
    assert graph.value("y") == 6
    assert graph.outputs == ("y",)


def test_static_part_of_a_symbolic_shape_is_known():
    nodes = [node("Shape", "x", "s", start=1), node("Reshape", "z s", "y"), node("Size", "x", "n")]
    graph = infer(nodes, [tensor("x", "N", 2, 3), tensor("z", 6)], ["y", "n"], ("x", "z"))
    assert graph.tensor("y").shape == (2, 3)
    assert [n.op for n in graph.nodes] == ["Reshape"]
    assert graph.tensor("n").entries.item() == Size.of("N") * 6


def test_filled_tensor_of_any_size_costs_no_memory():
    fill = node("ConstantOfShape", "s", "y", value=np.array([2.5], np.float32))
    graph = infer([fill], [tensor("x", 1), constant("s", [4 * MAX_FOLDED, 8])], ["y"])
    value = graph.value("y")
    assert value.shape == (4 * MAX_FOLDED, 8)
    assert value.strides == (0, 0)
    assert value[7, 7] == np.float32(2.5)


def test_large_results_are_left_to_the_graph():
    nodes = [node("Expand", "c small", "a"), node("Expand", "c large", "b")]
    known = [tensor("x", 1), constant("c", [1.0], np.float32)]
    known += [constant("small", [MAX_FOLDED]), constant("large", [MAX_FOLDED + 1])]
    graph = infer(nodes, known, ["a", "b"])
    assert graph.tensor("a").is_constant
    assert [n.outputs for n in graph.nodes] == [("b",)]


def test_work_on_a_huge_filled_operand_is_left_to_the_graph():
    nodes = [node("ConstantOfShape", "s", "a"), node("ReduceSum", "a", "y")]
    graph = infer(nodes, [tensor("x", 1), constant("s", [2**38])], ["y"])
    assert [n.op for n in graph.nodes] == ["ConstantOfShape", "ReduceSum"]
    assert graph.tensor("y").shape == (1,)


def test_random_values_are_never_folded():
    known = [tensor("x", 1), constant("c", [1.0, 2.0], np.float32)]
    known += [constant("r", 0.5, np.float32), constant("t", True, bool)]
    graph = infer([node("Dropout", "c r t", "y", seed=3)], known, ["y"])
    assert "RandomBits" in [n.op for n in graph.nodes]
    with pytest.raises(NeedsValues, match="differ from call to call"):
        infer([node("RandomNormal", "", "y", shape=[2])], known, ["y"])


def test_node_without_reference_implementation_is_kept():
    graph = infer(
        [node("Gelu", "c", "y")], [tensor("x", 1), constant("c", [1.0], np.float32)], ["y"]
    )
    assert [n.op for n in graph.nodes] == ["Gelu"]
    assert graph.tensor("y").shape == (1,)


def test_absent_inputs_and_outputs():
    clip = Node("c", "Clip", ("x", "", "top"), ("y",))
    pool = Node("p", "MaxPool", ("y",), ("z", ""), {"kernel_shape": [2]})
    graph = infer([clip, pool], [tensor("x", 1, 2, 4), constant("top", 1, np.float32)], ["z"])
    assert graph.tensor("z").shape == (1, 2, 3)
    assert "" not in graph.tensors


@pytest.mark.parametrize(
    ("nodes", "outputs", "text"),
    [
        ([node("Relu", "a", "y")], ["y"], r"Relu 'Relu_y' reads 'a', .* sort the nodes"),
        ([node("Relu", "x", "x")], ["x"], r"writes 'x' a second time; rename"),
        ([node("MaxPool", "x", "y y", kernel_shape=[1])], ["y"], r"writes 'y' a second time"),
        ([node("Relu", "x", "y")], ["z"], r"graph 'g': .* provides 'z'; correct"),
    ],
)
def test_inconsistent_names_are_reported(nodes, outputs, text):
    with pytest.raises(InvalidModel, match=text):
        infer(nodes, [tensor("x", 1, 2, 4)], outputs)


def test_broken_rule_names_the_node():
    with pytest.raises(ShapeError, match=r"Add 'Add_y': broadcast"):
        infer(
            [node("Add", "x c", "y")], [tensor("x", 2), constant("c", [1] * 3, np.float32)], ["y"]
        )


def count_calls(function):
    """(result, Python calls made): a measure of work that does not depend on the machine's load."""
    calls = 0

    def watch(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(watch)
    try:
        return function(), calls
    finally:
        sys.setprofile(None)


def test_ten_times_the_nodes_are_ten_times_the_work():
    def chain(count):
        nodes = []
        for i in range(count // 5):
            a, b = f"x{i}" if i else "x", f"x{i + 1}"
            nodes += [node("Shape", a, f"s{i}"), node("Gather", f"s{i} zero", f"g{i}", axis=0)]
            nodes += [node("Mul", f"g{i} two", f"m{i}"), node("Relu", a, f"r{i}")]
            nodes += [node("Add", f"r{i} half", b)]
        return nodes, f"x{count // 5}"

    known = [tensor("x", 4, 8), constant("zero", 0), constant("two", 2)]
    known += [constant("half", 0.5, np.float32)]
    calls = {}
    for count in (500, 5000):
        nodes, last = chain(count)
        graph, calls[count] = count_calls(lambda: infer(nodes, known, [last]))  # noqa: B023
        assert len(graph.nodes) == 2 * count // 5
    assert calls[5000] < 11 * calls[500]
