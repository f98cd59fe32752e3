"""Weights of 4 bits: what they stand for, and what engines make of them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import polyc
from polyc import CompressionReport, Graph, ops
from polyc.compression.four_bits import pack, to_blocks
from polyc.errors import InvalidOption, UnsupportedOp
from tests.compression.digits import accuracy, compiled, samples, transformer
from tests.sampling import thorough

FORMS = ["MatMulNBits", "DequantizeLinear"]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows", [16, 64, 70, 129])
@pytest.mark.parametrize("block", [16, 32])
def test_blocks_are_near_and_hold_zero(rows, block):
    weights = drawn(rows, 7)
    weights[:, 3] = 0
    weights[: min(block, rows), 4] = 5.0
    blocks = to_blocks(weights, block)
    assert blocks.numbers.shape == (7, -(-rows // block), block)
    assert blocks.numbers.max() <= 15
    assert blocks.zeros.max() <= 15
    restored = blocks.restored
    assert not restored[:, 3].any()
    np.testing.assert_allclose(restored[: min(block, rows), 4], 5.0, rtol=1e-6)
    assert ((restored - weights) ** 2).sum() < 0.01 * (weights**2).sum()


def test_ranges_that_are_searched_for_are_nearer():
    """Nearer than what a block's least and largest number give, which is what others store."""
    weights = drawn(512, 8)
    blocks = weights.T.reshape(-1, 32)
    low, high = (f(blocks, axis=1, keepdims=True) for f in (np.min, np.max))
    step = (high - low) / 15
    zero = np.rint(-low / step)
    plain = (np.clip(np.rint(blocks / step) + zero, 0, 15) - zero) * step
    error = ((to_blocks(weights, 32).restored - weights) ** 2).sum()
    assert error < 0.95 * ((plain - blocks) ** 2).sum()


def test_packed_with_the_lower_half_first():
    assert pack(np.array([[1, 2, 3]], np.uint8)).tolist() == [[0x21, 0x03]]


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        (32, "MatMulNBits"),
        (32, "DequantizeLinear"),
        thorough(80, "MatMulNBits"),
        (80, "DequantizeLinear"),
    ],
)
def test_engines_multiply_with_what_was_stored(form, rows):
    w, b, x = drawn(rows, 24), drawn(24), drawn(5, rows)
    graph = Graph.of(y=ops.gemm(ops.relu(ops.input("x", (5, rows)) @ drawn(rows, rows)), w, b))
    proto = polyc.quantise_weights(graph, form=form)
    onnx.checker.check_model(proto)
    hidden = np.maximum(x @ to_blocks(drawn(rows, rows), 32).restored, 0)
    wanted = hidden @ to_blocks(w, 32).restored + b
    np.testing.assert_allclose(polyc.compile(proto, threads=1)(x), wanted, rtol=1e-4, atol=1e-3)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    (theirs,) = session.run(None, {"x": x})
    np.testing.assert_allclose(theirs, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_a_trained_transformer_stays_accurate(form):
    proto = polyc.quantise_weights(transformer(), samples(4), form=form, threads=1)
    assert accuracy(polyc.compile(proto, threads=1)) >= accuracy(compiled("transformer")) - 0.01
    report = CompressionReport.of(proto)
    smaller = [row for row in report.layers if row.stored == "uint4"]
    assert len(smaller) == 13
    assert all(row.own > 20 and row.snr > 10 for row in smaller)
    assert {row.why for row in report.kept} == {
        "it has no weights",
        "its 8 rows are fewer than a block's 32",
    }
    assert report.weights[1] < 0.25 * report.weights[0]


@pytest.mark.thorough
def test_what_cannot_be_smaller_says_why():
    image, rows = ops.input("image", (1, 2, 5, 5)), ops.input("x", (2, 64))
    small = Graph.of(y=ops.conv(image, drawn(4, 2, 3, 3)), z=ops.input("x", (2, 8)) @ drawn(8, 8))
    large = Graph.of(y=rows @ drawn(64, 8))
    with pytest.raises(UnsupportedOp, match=r"no matrix.*fewer than"):
        polyc.quantise_weights(small)
    with pytest.raises(InvalidOption, match="block is 24"):
        polyc.quantise_weights(large, block=24)
    with pytest.raises(InvalidOption, match="keep names 'nowhere'"):
        polyc.quantise_weights(large, keep=["nowhere"])
    with pytest.raises(InvalidOption, match="form is 'q4'"):
        polyc.quantise_weights(large, form="q4")


def test_the_command_for_weights_alone(tmp_path):
    from typer.testing import CliRunner

    from polyc.cli import app
    from polyc.graph.onnx.export import export_onnx

    onnx.save(export_onnx(Graph.of(y=ops.input("x", (2, 64)) @ drawn(64, 8))), tmp_path / "m.onnx")
    arguments = ["quantise", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "small.onnx")]
    done = CliRunner().invoke(app, [*arguments, "--bits", "4"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "uint4" in done.output
    assert onnx.load(tmp_path / "small.onnx").graph.node[0].op_type == "MatMulNBits"
    assert isinstance(CliRunner().invoke(app, arguments).exception, InvalidOption)
    told = CliRunner().invoke(app, [*arguments, "--bits", "4", "--budget", "0.1"]).exception
    assert isinstance(told, InvalidOption)
    assert "--budget" in str(told)
