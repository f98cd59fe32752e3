"""LSTM, GRU and RNN written out step by step, against ONNX Runtime's layers."""

import numpy as np
import pytest
from onnx import helper

from polyc import ops
from polyc.errors import ShapeError, UnsupportedOp
from polyc.graph.builder import graph_of
from polyc.graph.expand.recurrent import GATES
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from polyc.graph.unroll_steps import unroll_steps
from tests.graph.onnx_models import RUNTIME_OPSET, model_of, run

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 6
RNG = np.random.default_rng(2)


def array(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def layer(op, directions=1, absent=(), **attributes):
    """A model of one layer, and what to feed it."""
    wide = GATES[op] * HIDDEN
    tensors = {
        "X": array(STEPS, BATCH, INPUTS),
        "W": array(directions, wide, INPUTS),
        "R": array(directions, wide, HIDDEN),
        "B": array(directions, 2 * wide),
        "lengths": np.array([2, 4, 1], np.int32),
        "h": array(directions, BATCH, HIDDEN),
    }
    outputs = ["y", "last"]
    if op == "LSTM":
        tensors |= {"c": array(directions, BATCH, HIDDEN), "P": array(directions, 3 * HIDDEN)}
        outputs.append("cell")
    feeds = {k: v for k, v in tensors.items() if k not in absent}
    names = [k if k in feeds else "" for k in tensors]
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, **attributes)
    return model_of([node], feeds, outputs, 22), feeds


def check(model, feeds):
    graph = import_onnx(model)
    assert not {n.op for n in graph.nodes} & set(GATES)
    model.ir_version = 10
    exported = export_onnx(unroll_steps(graph, everything=True), RUNTIME_OPSET)
    for got, want in zip(run(exported, feeds), run(model, feeds), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return graph


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("absent", [(), ("lengths", "P"), ("B", "lengths", "h", "c", "P")], ids=str)
def test_directions_and_optional_inputs(op, direction, absent):
    directions = 2 if direction == "bidirectional" else 1
    check(*layer(op, directions, absent, direction=direction))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("GRU", {"linear_before_reset": 1}),
        ("LSTM", {"clip": 0.3}),
        ("LSTM", {"activations": ["HardSigmoid", "ScaledTanh", "Softsign"],
                  "activation_alpha": [0.3, 1.5], "activation_beta": [0.4, 0.7]}),
        ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.2]}),
        ("RNN", {"activations": ["Relu"]}),
        ("GRU", {"activations": ["Affine", "Elu"], "activation_alpha": [0.4, 1.2],
                 "activation_beta": [0.1]}),
    ],
    ids=str,
)  # fmt: skip
def test_attributes(op, attributes):
    check(*layer(op, absent=("lengths", "P"), **attributes))


def test_each_direction_has_activations_of_its_own():
    attributes = {"activations": ["Elu", "HardSigmoid"], "activation_alpha": [1.3, 0.4]}
    check(*layer("RNN", 2, ("lengths",), direction="bidirectional", **attributes))


def test_products_with_the_input_do_not_wait():
    graph = check(*layer("LSTM", absent=("lengths", "P")))
    assert [n.op for n in graph.nodes].count("MatMul") == 2


def test_batch_first():
    model, feeds = layer("GRU", absent=("B", "lengths", "h"))
    straight = run(model, feeds)
    model.graph.node[0].attribute.append(helper.make_attribute("layout", 1))
    feeds["X"] = np.ascontiguousarray(feeds["X"].transpose(1, 0, 2))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value, dims[1].dim_value = BATCH, STEPS
    graph = unroll_steps(import_onnx(model), everything=True)
    y, last = run(export_onnx(graph, RUNTIME_OPSET), feeds)
    np.testing.assert_allclose(y, straight[0].transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last, straight[1].transpose(1, 0, 2), rtol=1e-4, atol=1e-6)


def test_in_python():
    x, w, r = ops.input("x", (2, 1, 3)), array(1, 16, 3), array(1, 16, 4)
    y, last, cell = ops.lstm(x, w, r)
    assert (y.shape, last.shape, cell.shape) == ((2, 1, 1, 4), (1, 1, 4), (1, 1, 4))
    graph_of({"y": y, "last": last, "cell": cell})


def test_what_does_not_fit_is_named():
    model, _ = layer("RNN", absent=("lengths",), activations=["Swish"])
    with pytest.raises(UnsupportedOp, match=r"RNN.*'Swish'.*Tanh"):
        import_onnx(model)
    x = ops.input("x", (2, 1, 3))
    with pytest.raises(ShapeError, match=r"rows of R.*expected 12, got 16"):
        ops.gru(x, array(1, 16, 3), array(1, 16, 4))
