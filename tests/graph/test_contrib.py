"""Operators of com.microsoft against ONNX Runtime, which defines them."""

import numpy as np
import pytest

from polyc.errors import ShapeError, UnsupportedOp
from tests.graph.contrib import model_of
from tests.sampling import thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(29)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(compiled, op, inputs, outputs=("y",), tolerance=1e-5, **attributes):
    source = model_of(op, inputs, list(outputs), **attributes)
    feeds = {f"x{k}": x for k, x in enumerate(inputs) if x is not None}
    got = compiled(source).run(feeds)
    for name, want in zip(filter(None, outputs), run_ort(source, feeds), strict=True):
        assert_same(got[name], want, tolerance, tolerance)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [thorough("Gelu", [(3, 7)]), ("BiasGelu", [(3, 7), (7,)]), thorough("FastGelu", [(3, 7), (7,)]),
     thorough("FastGelu", [(3, 7)]), ("QuickGelu", [(3, 7)])],
)  # fmt: skip
def test_gelu(compiled, op, shapes):
    check(compiled, op, [draw(*s) for s in shapes], tolerance=1e-4)


def test_skip_norms(compiled):
    x, skip, gamma, beta, bias = draw(2, 5, 8), draw(2, 5, 8), draw(8), draw(8), draw(8)
    outputs = ["y", "", "", "total"]
    check(compiled, "SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs, epsilon=1e-3)
    check(compiled, "SkipLayerNormalization", [x, skip, gamma])
    check(compiled, "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], outputs)


@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [thorough(0), 1])
def test_fused_matmul(compiled, a, b):
    left, right = draw(2, 5, 3) if a else draw(2, 3, 5), draw(7, 5) if b else draw(5, 7)
    check(compiled, "FusedMatMul", [left, right], alpha=0.25, transA=a, transB=b)


def test_fused_matmul_of_a_batch_behind_rows(compiled):
    check(compiled, "FusedMatMul", [draw(3, 2, 5), draw(2, 5, 4)], transBatchA=1)


def test_embedding(compiled):
    words = RNG.integers(0, 9, (2, 6)).astype(np.int32)
    kinds = RNG.integers(0, 2, (2, 6)).astype(np.int32)
    mask = np.array([[1] * 6, [1, 1, 1, 0, 0, 0]], np.int32)
    tables = [draw(9, 8), draw(10, 8), draw(2, 8), draw(8), draw(8)]
    check(compiled, "EmbedLayerNormalization", [words, kinds, *tables, mask], ["y", "m"])
    tables[2] = None
    check(compiled, "EmbedLayerNormalization", [words, None, *tables], ["y", "m"])


MASKS = {
    "none": None,
    "lengths": np.array([5, 3], np.int32),
    "spans": np.array([5, 3, 0, 1], np.int32),
    "raw": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32),
}


@pytest.mark.thorough
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(compiled, mask, causal):
    inputs = [draw(2, 5, 12), draw(12, 36), draw(36), MASKS[mask]]
    check(compiled, "Attention", inputs, num_heads=3, unidirectional=causal, tolerance=1e-4)


def test_attention_with_a_past(compiled):
    inputs = [draw(2, 3, 12), draw(12, 36), draw(36), None, draw(2, 2, 3, 4, 4)]
    check(compiled, "Attention", inputs, ["y", "present"], 1e-4, num_heads=3, unidirectional=1)


def test_multi_head_attention(compiled):
    q, k, v = draw(2, 4, 12), draw(2, 6, 12), draw(2, 6, 12)
    check(compiled, "MultiHeadAttention", [q, k, v], num_heads=3, tolerance=1e-4)
    mask = np.array([[1] * 6, [1, 1, 1, 1, 0, 0]], np.int32)
    added = draw(1, 3, 4, 6)
    inputs = [q, k, v, draw(36), mask, added]
    check(compiled, "MultiHeadAttention", inputs, num_heads=3, scale=0.3, tolerance=1e-4)


def test_multi_head_attention_with_a_past(compiled):
    inputs = [draw(2, 1, 12), draw(2, 1, 12), draw(2, 1, 12), None, None, None,
              draw(2, 3, 5, 4), draw(2, 3, 5, 4)]  # fmt: skip
    outputs = ["y", "k", "v"]
    check(compiled, "MultiHeadAttention", inputs, outputs, 1e-4, num_heads=3, unidirectional=1)


def test_multi_head_attention_of_keys_by_head(compiled):
    inputs = [draw(2, 4, 12), draw(2, 3, 6, 4), draw(2, 3, 6, 4)]
    check(compiled, "MultiHeadAttention", inputs, num_heads=3, tolerance=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("one", [True, False])
def test_rotary(compiled, interleaved, one):
    positions = np.array([3]) if one else RNG.integers(0, 16, (2, 5))
    tables = [draw(16, 2), draw(16, 2)]
    for x in (draw(2, 5, 12), draw(2, 3, 5, 4)):
        inputs = [x, positions, *tables]
        check(compiled, "RotaryEmbedding", inputs, interleaved=interleaved)


@pytest.mark.parametrize("zeros", [thorough(False), True])
def test_matmul_of_packed_weights(compiled, zeros):
    """Blocks of 16 along 40: the last one is not full."""
    b = RNG.integers(0, 256, (6, 3, 8)).astype(np.uint8)
    inputs = [draw(2, 3, 40), b, draw(18)]
    inputs += [RNG.integers(0, 256, 12).astype(np.uint8)] if zeros else []
    check(compiled, "MatMulNBits", inputs, K=40, N=6, bits=4, block_size=16, tolerance=1e-4)


def test_what_is_not_there_is_refused(compiled):
    inputs = [draw(2, 5, 12), np.array([3]), draw(9, 2), draw(9, 2)]
    with pytest.raises(UnsupportedOp, match="scale or packing"):
        check(compiled, "RotaryEmbedding", inputs, scale=2.0)
    inputs = [draw(2, 5, 12), draw(12, 36), draw(36)]
    with pytest.raises(UnsupportedOp, match="mask of shape"):
        check(compiled, "Attention", [*inputs, np.ones((2, 1, 5, 5), np.int32)], num_heads=3)
    with pytest.raises(ShapeError, match="length of the mask"):
        check(compiled, "Attention", [*inputs, np.ones(7, np.int32)], num_heads=3)
    source = model_of("NoSuchOperator", [draw(2)], ["y"])
    with pytest.raises(UnsupportedOp, match="NoSuchOperator"):
        compiled(source)


def quantised(directions, rows, columns, dtype, per_column, symmetric=False):
    """Weights of 7 bits, which no engine's sums of pairs overflow; their scales and zero points."""
    low, high = (-64, 64) if dtype == np.int8 else (64, 192)
    weights = RNG.integers(low, high, (directions, rows, columns)).astype(dtype)
    shape = (directions, columns) if per_column else (directions,)
    scale = RNG.uniform(0.004, 0.012, shape).astype(np.float32)
    middle = 0 if dtype == np.int8 else 128
    zero = np.full(shape, middle) + (0 if symmetric else RNG.integers(-5, 5, shape))
    return weights, scale, zero.astype(dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("direction", "batch", "per_column", "extras"),
    [("forward", 1, False, ""), ("forward", 3, True, "B"), ("reverse", 1, False, "Bhc"),
     ("bidirectional", 1, True, "BhcP"), ("bidirectional", 5, False, "hcP")],
)  # fmt: skip
def test_dynamic_quantize_lstm(compiled, dtype, direction, batch, per_column, extras):
    steps, inputs, hidden = 7, 5, 9
    directions = 2 if direction == "bidirectional" else 1
    x = draw(steps, batch, inputs)
    symmetric = per_column  # ONNX Runtime has no other zero points for columns
    w, w_scale, w_zero = quantised(directions, inputs, 4 * hidden, dtype, per_column, symmetric)
    r, r_scale, r_zero = quantised(directions, hidden, 4 * hidden, dtype, per_column, symmetric)
    bias = draw(directions, 8 * hidden) if "B" in extras else None
    state, cell = (
        draw(directions, batch, hidden) if name in extras else None for name in ("h", "c")
    )
    peepholes = draw(directions, 3 * hidden) if "P" in extras else None
    operands = [x, w, r, bias, None, state, cell, peepholes, w_scale, w_zero, r_scale, r_zero]
    check(
        compiled, "DynamicQuantizeLSTM", operands, ["y", "h", "c"], tolerance=1e-4,
        direction=direction, hidden_size=hidden,
    )  # fmt: skip


def test_dynamic_quantize_lstm_of_floats_is_refused(compiled):
    w, scale, zero = quantised(1, 5, 36, np.int8, False)
    r, *_ = quantised(1, 9, 36, np.int8, False)
    x = draw(7, 1, 5)
    operands = [x, w.astype(np.float32), r, *[None] * 5, scale, zero, scale, zero]
    with pytest.raises(ShapeError, match="int8 or uint8"):
        compiled(model_of("DynamicQuantizeLSTM", operands, ["y"], hidden_size=9))
