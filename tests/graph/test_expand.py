"""Nodes that stand for others: functions of the standard, branches and steps that are known."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from polyc import ops
from polyc.errors import NeedsValues, UnsupportedOp
from polyc.graph.bodies import Names, instantiate
from polyc.graph.builder import apply_many, graph_of
from polyc.graph.ir import Body, Node
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from polyc.graph.unroll_steps import unroll_steps
from tests.graph.onnx_models import model_of
from tests.graph.onnx_models import run as run_onnxruntime

RNG = np.random.default_rng(5)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def run(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def check(nodes, feeds, outputs, opset=24, initializer=()):
    """The imported graph computes what the model does, in operators that have rules."""
    model = model_of(nodes, feeds, outputs, opset, initializer=initializer)
    model.ir_version = 10
    graph = import_onnx(model)
    expected = run(model, feeds)
    for got, want in zip(run(export_onnx(graph), feeds), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert len({n.name for n in graph.nodes}) == len(graph.nodes)
    return graph


# --- functions -----------------------------------------------------------------------------------


def test_a_function_of_the_standard_is_written_out():
    feeds = {"a": array(3, 4), "b": array(3, 4)}
    graph = check([helper.make_node("SwiGLU", ["a", "b"], ["y"], alpha=0.7)], feeds, ["y"], 28)
    assert [n.op for n in graph.nodes] == ["Swish", "Mul"]
    assert graph.nodes[0].attributes["alpha"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    "attributes", [{}, {"is_causal": 1}, {"scale": 0.3}, {"softcap": 2.0}], ids=str
)
def test_attention_is_two_products_and_a_softmax(attributes):
    feeds = {"q": array(2, 4, 5, 8), "k": array(2, 2, 7, 8), "v": array(2, 2, 7, 6)}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], **attributes)
    graph = check([node], feeds, ["y"])
    names = [n.op for n in graph.nodes]
    assert names.count("MatMul") == 2
    assert names.count("Softmax") == 1


def test_attention_with_a_cache_has_three_results():
    feeds = {"q": array(1, 2, 1, 8), "k": array(1, 2, 1, 8), "v": array(1, 2, 1, 8),
             "pk": array(1, 2, 6, 8), "pv": array(1, 2, 6, 8)}  # fmt: skip
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "keys", "values"])
    graph = check([node], feeds, ["y", "keys", "values"])
    assert graph.tensors["keys"].shape == (1, 2, 7, 8)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(reduction, weighted):
    feeds = {"x": array(3, 5, 2), "t": np.array([[0, 4], [1, 1], [3, 2]])}
    feeds |= {"w": np.abs(array(5))} if weighted else {}
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        check([helper.make_node(op, list(feeds), ["y"], reduction=reduction, ignore_index=1)],
              feeds, ["y"])  # fmt: skip


def test_only_what_is_asked_for_is_written_out():
    feeds = {"q": array(1, 2, 3, 4), "k": array(1, 2, 3, 4), "v": array(1, 2, 3, 4)}
    plain = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    more = helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "scores"])
    assert "scores" in check([more], feeds, ["y", "scores"]).tensors
    assert all(n.outputs for n in check([plain], feeds, ["y"]).nodes)


def test_two_calls_do_not_share_names():
    feeds = {"a": array(3), "b": array(3)}
    nodes = [helper.make_node("SwiGLU", ["a", "b"], ["t"], name="f"),
             helper.make_node("SwiGLU", ["t", "b"], ["y"], name="f")]  # fmt: skip
    assert len(check(nodes, feeds, ["y"], 28).nodes) == 4


def test_functions_in_python():
    q, k, v = (ops.input(n, (1, 4, 6, 8)) for n in "qkv")
    graph = graph_of({"y": ops.attention(q, k, v, is_causal=True)})
    feeds = {n: array(1, 4, 6, 8) for n in "qkv"}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    model = model_of([node], feeds, ["y"], 24)
    np.testing.assert_allclose(run(export_onnx(graph), feeds)[0], run(model, feeds)[0], rtol=1e-4)


def test_results_of_a_function_in_python():
    quantized, scale, zero = apply_many("DynamicQuantizeLinear", [ops.input("x", (3, 4))], 3)
    assert [v.dtype for v in (quantized, scale, zero)] == [np.uint8, np.float32, np.uint8]


# --- control flow --------------------------------------------------------------------------------


def branch(name, op, inputs):
    output = helper.make_empty_tensor_value_info(f"{name}_out")
    node = helper.make_node(op, inputs, [f"{name}_out"])
    return helper.make_graph([node], name, [], [output])


def choice(condition):
    return helper.make_node(
        "If", [condition], ["y"],
        then_branch=branch("a", "Exp", ["x"]), else_branch=branch("b", "Neg", ["x"]),
    )  # fmt: skip


@pytest.mark.parametrize(("chosen", "op"), [(True, "Exp"), (False, "Neg")])
def test_a_branch_that_is_known_is_taken(chosen, op):
    known = {"c": np.array(chosen)}
    graph = check([choice("c")], {"x": array(3)}, ["y"], initializer=known)
    assert [n.op for n in graph.nodes] == [op]


def test_a_condition_that_follows_from_shapes():
    nodes = [helper.make_node("Size", ["x"], ["n"]),
             helper.make_node("Greater", ["n", "two"], ["c"]), choice("c")]  # fmt: skip
    graph = check(nodes, {"x": array(3)}, ["y"], initializer={"two": np.array(2)})
    assert [n.op for n in graph.nodes] == ["Exp"]


def test_a_condition_that_is_data_is_refused():
    model = model_of([choice("c")], {"x": array(3), "c": np.array(True)}, ["y"], 20)
    with pytest.raises(UnsupportedOp, match=r"If.*condition is computed at run time"):
        import_onnx(model)


def test_branches_of_an_older_opset_are_brought_to_the_newest_form():
    body = helper.make_graph(
        [helper.make_node("Squeeze", ["x"], ["s"], axes=[1])], "a", [],
        [helper.make_empty_tensor_value_info("s")],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    model = model_of([node], {"x": array(3, 1)}, ["y"], 11, initializer={"c": np.array(True)})
    graph = import_onnx(model)
    assert [n.op for n in graph.nodes] == ["Squeeze"]
    assert graph.tensors["y"].shape == (3,)


def scan_body():
    """s, x -> s + x, (s + x) * w with w from around"""
    declare = helper.make_tensor_value_info
    vector = [declare(n, TensorProto.FLOAT, [4]) for n in ("s", "e", "next", "out")]
    nodes = [helper.make_node("Add", ["s", "e"], ["next"]),
             helper.make_node("Mul", ["next", "w"], ["out"])]  # fmt: skip
    return helper.make_graph(nodes, "body", vector[:2], vector[2:])


@pytest.mark.parametrize(
    "attributes",
    [{}, {"scan_input_directions": [1]}, {"scan_output_directions": [1]},
     {"scan_input_axes": [1], "scan_output_axes": [-1]}],
    ids=str,
)  # fmt: skip
def test_a_scan_is_its_steps(attributes):
    shape = (4, 5) if "scan_input_axes" in attributes else (5, 4)
    feeds = {"s0": array(4), "x": array(*shape), "w": array(4)}
    node = helper.make_node(
        "Scan", ["s0", "x"], ["last", "y"], body=scan_body(), num_scan_inputs=1, **attributes
    )
    model = model_of([node], feeds, ["last", "y"], 23)
    assert sum(n.op == "Add" for n in import_onnx(model).nodes) == 1
    graph = unroll_steps(import_onnx(model), everything=True)
    # onnx's evaluator knows neither axes nor directions
    pairs = zip(run_onnxruntime(model, feeds), run(export_onnx(graph), feeds), strict=True)
    for want, got in pairs:
        np.testing.assert_allclose(got, want, rtol=1e-6)
    assert sum(n.op == "Add" for n in graph.nodes) == 5


def loop_body(last):
    """i, going, s -> i < last, s + i, s * s"""
    declare = helper.make_tensor_value_info
    nodes = [helper.make_node("Constant", [], ["last"], value_int=last),
             helper.make_node("Less", ["i", "last"], ["more"]),
             helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Add", ["s", "f"], ["next"]),
             helper.make_node("Mul", ["s", "s"], ["square"])]  # fmt: skip
    return helper.make_graph(
        nodes, "body",
        [declare("i", TensorProto.INT64, []), declare("going", TensorProto.BOOL, []),
         declare("s", TensorProto.FLOAT, [3])],
        [declare("more", TensorProto.BOOL, []), declare("next", TensorProto.FLOAT, [3]),
         declare("square", TensorProto.FLOAT, [3])],
    )  # fmt: skip


@pytest.mark.parametrize(("limit", "last", "steps"), [(4, 99, 4), (9, 2, 3), (None, 1, 2)])
def test_a_loop_is_its_steps(limit, last, steps):
    known = {"limit": np.array(limit or 0), "start": np.array(True)}
    inputs = ["limit" if limit else "", "start", "x"]
    node = helper.make_node("Loop", inputs, ["y", "squares"], body=loop_body(last))
    model = model_of([node], {"x": array(3)}, ["y", "squares"], 21, initializer=known)
    graph = unroll_steps(import_onnx(model), everything=True)
    x = array(3)
    y, squares = run(export_onnx(graph), {"x": x})
    np.testing.assert_allclose(y, x + sum(range(steps)), rtol=1e-6)
    assert squares.shape == (steps, 3)
    assert sum(n.op == "Mul" for n in graph.nodes) == steps


def test_a_state_that_grows_is_written_out():
    declare = helper.make_tensor_value_info
    nodes = [helper.make_node("Concat", ["s", "w"], ["next"], axis=0),
             helper.make_node("Identity", ["going"], ["more"])]  # fmt: skip
    body = helper.make_graph(
        nodes, "body",
        [declare("i", TensorProto.INT64, []), declare("going", TensorProto.BOOL, []),
         declare("s", TensorProto.FLOAT, None)],
        [declare("more", TensorProto.BOOL, []), declare("next", TensorProto.FLOAT, None)],
    )  # fmt: skip
    node = helper.make_node("Loop", ["limit", "start", "x"], ["y"], body=body)
    known = {"limit": np.array(3), "start": np.array(True)}
    feeds = {"x": array(2), "w": array(3)}
    graph = check([node], feeds, ["y"], 21, initializer=known)
    assert [n.op for n in graph.nodes].count("Concat") == 3


def test_a_loop_whose_count_is_data_is_refused():
    node = helper.make_node("Loop", ["n", "", "x"], ["y", "squares"], body=loop_body(5))
    model = model_of([node], {"x": array(3), "n": np.array(2)}, ["y", "squares"], 21)
    with pytest.raises(NeedsValues, match=r"Loop.*number of steps") as caught:
        import_onnx(model)
    assert caught.value.inputs == ("n",)


# --- names ---------------------------------------------------------------------------------------


def test_an_output_that_is_an_input_is_copied():
    body = Body(("a",), (), ("a", "a"))
    nodes = instantiate(Node("f", "F", ("x",), ("y", "z")), body, Names({"x", "y", "z"}))
    assert [(n.op, n.inputs, n.outputs) for n in nodes] == [
        ("Identity", ("x",), ("y",)), ("Identity", ("x",), ("z",))]  # fmt: skip


def test_an_absent_input_is_absent_inside():
    body = Body(("a", "b", "c"), (Node("n", "Clip", ("a", "b", "c"), ("t",)),), ("t",))
    (node,) = instantiate(Node("f", "F", ("x", ""), ("y",)), body, Names({"x", "y"}))
    assert node.inputs == ("x", "", "")


def test_names_of_the_graph_are_not_taken_again():
    names = Names({"f.t", "x", "y"})
    nodes = (Node("n", "Exp", ("a",), ("t",)), Node("m", "Neg", ("t",), ("o",)))
    first, second = instantiate(Node("f", "F", ("x",), ("y",)), Body(("a",), nodes, ("o",)), names)
    assert first.outputs == ("f.t_",)
    assert second.inputs == ("f.t_",)
