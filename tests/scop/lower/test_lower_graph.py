"""A graph becomes a scop: inputs and outputs in order, and refusals that say what to do."""

import numpy as np
import pytest

from polyc.errors import UnsupportedOp
from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from polyc.scop.lower.context import LOWERINGS
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size
from tests.scop.interpreter import interpret

F32 = np.dtype(np.float32)


def graph_of(nodes, tensors, inputs, outputs):
    return Graph("g", tuple(nodes), {t.name: t for t in tensors}, tuple(inputs), tuple(outputs))


def floats(*names, shape=(3,)):
    return [Tensor(name, F32, shape) for name in names]


def test_a_written_temporary_becomes_the_output():
    nodes = [Node("r", "Relu", ("x",), ("h",)), Node("n", "Neg", ("h",), ("y",))]
    scop = lower_graph(graph_of(nodes, floats("x", "h", "y"), ["x"], ["y", "h"]))
    assert [s.origin for s in scop.statements] == [("r",), ("n",)]
    assert {name: a.kind for name, a in scop.arrays.items()} == {
        "x": "input", "h": "output", "y": "output"
    }  # fmt: skip
    x = np.array([-1, 2, -3], np.float32)
    result = interpret(scop, {"x": x})
    assert (result[scop.outputs[0]] == [0, -2, 0]).all()
    assert (result[scop.outputs[1]] == [0, 2, 0]).all()


def test_views_inputs_constants_and_repeated_outputs_are_copied():
    constant = Tensor("c", F32, (2,), np.array([5, 6], np.float32))
    tensors = [*floats("x", "y", shape=(2, 3)), Tensor("t", F32, (3, 2)), constant]
    nodes = [Node("a", "Abs", ("x",), ("y",)),
             Node("t", "Transpose", ("y",), ("t",), {"perm": [1, 0]})]  # fmt: skip
    scop = lower_graph(graph_of(nodes, tensors, ["x"], ["x", "y", "t", "c", "y"]))
    assert len(set(scop.outputs)) == 5
    assert [scop.arrays[o].kind for o in scop.outputs] == ["output"] * 5
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    result = [interpret(scop, {"x": x})[o] for o in scop.outputs]
    for found, expected in zip(result, [x, abs(x), abs(x).T, constant.value, abs(x)], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_inputs_keep_their_order_and_unsafe_names_are_mended():
    nodes = [Node("layer/0:add", "Add", ("b.1", "for"), ("1 out",))]
    scop = lower_graph(graph_of(nodes, floats("b.1", "for", "1 out"), ["for", "b.1"], ["1 out"]))
    assert scop.inputs == ("for", "b_1")
    assert scop.outputs == ("t1_out",)
    assert scop.statements[0].name == "S_layer_0_add"


def test_a_scalar_has_a_statement_without_iterators():
    nodes = [Node("n", "Neg", ("x",), ("y",))]
    scop = lower_graph(graph_of(nodes, floats("x", "y", shape=()), ["x"], ["y"]))
    assert scop.statements[0].iterators == ()
    assert interpret(scop, {"x": np.array(2, np.float32)})["y"] == -2


def test_an_empty_tensor_has_no_statement():
    nodes = [Node("n", "Neg", ("x",), ("y",))]
    scop = lower_graph(graph_of(nodes, floats("x", "y", shape=(0, 3)), ["x"], ["y"]))
    assert scop.statements == ()
    assert interpret(scop, {"x": np.zeros((0, 3), np.float32)})["y"].shape == (0, 3)


@pytest.mark.parametrize(
    ("node", "tensors", "message"),
    [
        (Node("n", "Frobnicate", ("x",), ("y",)), floats("x", "y"),
         r"Frobnicate 'n': operator Frobnicate has no lowering.*replace it"),
        (Node("n", "Relu", ("x",), ("y",), {}, "com.x"), floats("x", "y"),
         r"Relu 'n': operator Relu of domain 'com.x'"),
        (Node("n", "Cast", ("x",), ("y",)), [*floats("x"), Tensor("y", np.dtype("c8"), (3,))],
         r"Cast 'n': tensor 'y' has the element type complex64.*Cast"),
    ],
)  # fmt: skip
def test_refusals(node, tensors, message):
    with pytest.raises(UnsupportedOp, match=message), assume([SizeRange("size_n")]):
        lower_graph(graph_of([node], tensors, ["x"], ["y"]))


def test_a_formula_that_divides_by_a_size_is_refused(monkeypatch):
    def lower(ctx, node):
        ctx.bind("y", ctx.ref("x").through("{ [i0] -> [i0 mod size_n] }", (Size.of("size_n"),)))

    monkeypatch.setitem(LOWERINGS, "Relu", lower)
    graph = graph_of([Node("n", "Relu", ("x",), ("y",))],
                     floats("x", "y", shape=(Size.of("size_n"),)), ["x"], ["y"])  # fmt: skip
    message = "Relu 'n': .* the sizes known only at run time"
    with pytest.raises(UnsupportedOp, match=message), assume([SizeRange("size_n")]):
        lower_graph(graph)


def test_a_constant_output_of_another_type_is_refused():
    number = Tensor("y", np.dtype(np.complex64), (2,), np.zeros(2, np.complex64))
    with pytest.raises(UnsupportedOp, match=r"output 'y'.*complex64.*Cast"):
        lower_graph(graph_of([], [number], [], ["y"]))
