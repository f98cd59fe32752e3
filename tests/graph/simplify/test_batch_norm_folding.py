"""Batch norms and per-channel maps: folded into the weights before them, or split in two."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify import simplify
from polyc.graph.simplify.batch_norm_folding import fold_batch_norms

RNG = np.random.default_rng(3)
NORM = ("gamma", "beta", "mean", "var")


def weights(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def norm_constants(channels):
    values = {name: weights(channels) for name in NORM}
    return {**values, "var": np.abs(values["var"]) + np.float32(0.1)}


def norm(source, **attributes):
    return Node(
        "bn", "BatchNormalization", (source, *NORM), ("y",), {"epsilon": 1e-3, **attributes}
    )


LINEAR = {
    "conv": ("Conv", ("x", "w", "b"), {}, (2, 4, 5, 6), (6, 4, 3, 3), 6),
    "conv without bias": (
        "Conv",
        ("x", "w"),
        {"pads": (1, 1, 1, 1)},
        (2, 4, 5, 6),
        (6, 4, 3, 3),
        6,
    ),
    "grouped conv": ("Conv", ("x", "w", "b"), {"group": 2}, (2, 4, 5), (6, 2, 3), 6),
    "transposed": ("ConvTranspose", ("x", "w", "b"), {}, (2, 4, 5, 6), (4, 6, 3, 3), 6),
    "grouped transposed": ("ConvTranspose", ("x", "w"), {"group": 2}, (2, 4, 5), (4, 3, 3), 6),
    "gemm": ("Gemm", ("x", "w", "b"), {"beta": 0.5, "alpha": 2.0}, (3, 4), (4, 6), 6),
    "transposed gemm": ("Gemm", ("x", "w"), {"transB": 1}, (3, 4), (6, 4), 6),
}


@pytest.mark.parametrize("case", LINEAR)
def test_a_batch_norm_folds_into_a_linear_operator(case, build, assert_same, run_onnxruntime):
    op, inputs, attributes, x, w, channels = LINEAR[case]
    nodes = [Node("linear", op, inputs, ("t",), attributes), norm("t")]
    constants = {"w": weights(*w), **norm_constants(channels)}
    if "b" in inputs:
        constants["b"] = weights(channels)
    graph = build({"x": ("float32", x)}, nodes, ["y"], **constants)
    rewritten = fold_batch_norms(graph)
    assert [n.op for n in rewritten.graph.nodes] == [op]
    assert rewritten.notes[0].text == f"batch norm 'bn' folded into {op} 'linear'"
    # The reference evaluator has no grouped ConvTranspose in one dimension.
    assert_same(graph, rewritten.graph, rtol=2e-5, run=run_onnxruntime)


def test_a_batch_norm_folds_into_a_product_by_a_constant(build, assert_same):
    nodes = [Node("m", "MatMul", ("x", "w"), ("t",)), norm("t")]
    graph = build({"x": ("float32", (3, 4))}, nodes, ["y"], w=weights(4, 6), **norm_constants(6))
    after = fold_batch_norms(graph).graph
    assert [n.op for n in after.nodes] == ["MatMul", "Add"]
    assert fold_batch_norms(after).graph is after
    assert_same(graph, after, rtol=2e-5)


def test_a_chain_of_maps_folds_one_after_another(build, assert_same):
    nodes = [
        Node("c", "Conv", ("x", "w"), ("t",)),
        Node("m", "Mul", ("t", "s"), ("u",)),
        Node("a", "Add", ("b", "u"), ("v",)),
        Node("d", "Div", ("v", "two"), ("z",)),
        Node("e", "Sub", ("b", "z"), ("n",)),
        norm("n"),
    ]
    graph = build(
        {"x": ("float32", ("N", 4, 5, 5))},
        nodes,
        ["y"],
        w=weights(6, 4, 1, 1),
        s=weights(6, 1, 1),
        b=weights(1, 6, 1, 1),
        two=np.float32([2]),
        **norm_constants(6),
    )
    rewritten = fold_batch_norms(graph)
    assert [n.op for n in rewritten.graph.nodes] == ["Conv"]
    assert [n.text.split(" folded")[0] for n in rewritten.notes] == [
        "Mul 'm'",
        "Add 'a'",
        "Div 'd'",
        "Sub 'e'",
        "batch norm 'bn'",
    ]
    assert_same(graph, rewritten.graph, rtol=2e-5)


def test_the_last_dimension_is_the_channel_of_a_matrix_product(build, assert_same):
    nodes = [
        Node("m", "MatMul", ("x", "w"), ("t",)),
        Node("s", "Mul", ("t", "s"), ("u",)),
        Node("a", "Add", ("u", "b"), ("y",)),
    ]
    types = {"x": ("float32", (2, 3, 4))}
    graph = build(types, nodes, ["y"], w=weights(4, 6), s=weights(6), b=weights(6))
    after = fold_batch_norms(graph).graph
    assert [n.op for n in after.nodes] == ["MatMul", "Add"]
    assert_same(graph, after, rtol=2e-5)


def test_a_batch_norm_alone_becomes_two_nodes(build, assert_same):
    types = {"x": ("float32", ("N", 3, 4, 5))}
    graph = build(types, [norm("x")], ["y"], **norm_constants(3))
    rewritten = fold_batch_norms(graph)
    assert [n.op for n in rewritten.graph.nodes] == ["Mul", "Add"]
    scale = rewritten.graph.tensor(rewritten.graph.nodes[0].inputs[1])
    assert scale.shape == (3, 1, 1)
    assert_same(graph, rewritten.graph, rtol=2e-5)


def kept_cases():
    conv = Node("c", "Conv", ("x", "w"), ("t",))
    yield "two readers", [conv, norm("t"), Node("r", "Relu", ("t",), ("z",))], ["y", "z"]
    yield "an output", [conv, Node("m", "Mul", ("t", "s"), ("y",))], ["y", "t"]
    yield "not along channels", [conv, Node("m", "Mul", ("t", "row"), ("y",))], ["y"]
    yield "a broadcast", [conv, Node("m", "Mul", ("t", "wide"), ("y",))], ["y"]
    yield "variable", [conv, Node("m", "Mul", ("t", "v"), ("y",))], ["y"]
    yield "division by zero", [conv, Node("m", "Div", ("t", "zero"), ("y",))], ["y"]
    yield "overflow", [conv, Node("m", "Mul", ("t", "huge"), ("y",))], ["y"]


@pytest.mark.parametrize(("nodes", "outputs"), [c[1:] for c in kept_cases()], ids=lambda _: "")
def test_what_cannot_fold_stays_a_convolution(nodes, outputs, build):
    graph = build(
        {"x": ("float32", (1, 4, 5, 6)), "v": ("float32", (6, 1, 1))},
        nodes,
        outputs,
        w=np.float32(100) * weights(6, 4, 1, 1),
        s=weights(6, 1, 1),
        row=weights(6),
        wide=weights(2, 1, 1, 1),
        zero=np.float32([0]),
        huge=np.float32([3e38]),
        **norm_constants(6),
    )
    after = fold_batch_norms(graph).graph
    assert after.nodes[0] == graph.nodes[0]


def test_training_is_left_alone(build):
    node = Node("bn", "BatchNormalization", ("x", *NORM), ("y", "m", "v"), {"training_mode": 1})
    graph = build({"x": ("float32", (2, 3, 4))}, [node], ["y"], **norm_constants(3))
    assert fold_batch_norms(graph).graph is graph


def test_pads_gemm_and_batch_norms_meet_in_one_convolution(build, assert_same):
    nodes = [
        Node("p", "Pad", ("x", "amounts"), ("s",)),
        Node("c", "Conv", ("s", "w"), ("t",)),
        Node("i", "Identity", ("t",), ("u",)),
        norm("u"),
    ]
    amounts = np.int64([0, 0, 1, 1, 0, 0, 1, 1])
    types = {"x": ("float32", (1, 4, 5, 6))}
    graph = build(types, nodes, ["y"], w=weights(6, 4, 3, 3), amounts=amounts, **norm_constants(6))
    after, notes = simplify(graph)
    assert [n.op for n in after.nodes] == ["Conv"]
    assert {n.rewrite for n in notes} == {"identities", "pads", "batch_norm_folding"}
    assert_same(graph, after, rtol=2e-5)
