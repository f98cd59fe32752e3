"""The functions of `polyc.ops` for operators that are written out, chosen by data or quantised."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import ops
from polyc.graph.builder import Value, graph_of


def x(*shape: int, dtype: str = "float32") -> Value:
    """A new input."""
    return ops.input(f"x{np.random.default_rng().integers(1 << 60)}", shape, dtype)


F, BYTE = np.float32(0.5), np.uint8(3)
IMAGE = {"strides": (1, 1), "pads": (1, 1, 1, 1)}

CASES = {
    "attention": (lambda: ops.attention(x(2, 4, 5, 8), x(2, 2, 7, 8), x(2, 2, 7, 6)), (2, 4, 5, 6)),
    "attention_with_cache": (
        lambda: ops.attention_with_cache(*(x(1, 2, n, 8) for n in (1, 1, 1, 6, 6))),
        [(1, 2, 1, 8), (1, 2, 7, 8), (1, 2, 7, 8)],
    ),
    "rotary_embedding": (
        lambda: ops.rotary_embedding(x(2, 3, 4, 8), x(2, 4, 4), x(2, 4, 4)), (2, 3, 4, 8)),
    "swiglu": (lambda: ops.swiglu(x(3, 4), x(3, 4)), (3, 4)),
    "negative_log_likelihood_loss": (
        lambda: ops.negative_log_likelihood_loss(x(3, 5), x(3, dtype="int64")), ()),
    "softmax_cross_entropy_loss": (
        lambda: ops.softmax_cross_entropy_loss(x(3, 5), x(3, dtype="int64"), reduction="none"),
        (3,),
    ),
    "center_crop_pad": (lambda: ops.center_crop_pad(x(5, 8), (7, 4)), (7, 4)),
    "affine_grid": (lambda: ops.affine_grid(x(2, 2, 3), (2, 1, 4, 5)), (2, 4, 5, 2)),
    "quantize_linear": (lambda: ops.quantize_linear(x(3, 4), F, dtype="int8"), (3, 4)),
    "dequantize_linear": (lambda: ops.dequantize_linear(x(3, 4, dtype="uint8"), F, BYTE), (3, 4)),
    "dynamic_quantize_linear": (
        lambda: ops.dynamic_quantize_linear(x(3, 4)), [(3, 4), (), ()]),
    "matmul_integer": (
        lambda: ops.matmul_integer(x(3, 4, dtype="int8"), x(4, 5, dtype="uint8")), (3, 5)),
    "matmul_n_bits": (
        lambda: ops.matmul_n_bits(
            x(2, 3, 40), x(5, 2, 16, dtype="uint8"), x(5, 2), x(5, 2), K=40, N=5),
        (2, 3, 5),
    ),
    "conv_integer": (
        lambda: ops.conv_integer(
            x(1, 2, 5, 5, dtype="uint8"), x(3, 2, 3, 3, dtype="int8"), **IMAGE),
        (1, 3, 5, 5),
    ),
    "qlinear_matmul": (
        lambda: ops.qlinear_matmul(
            x(3, 4, dtype="uint8"), F, BYTE, x(4, 5, dtype="uint8"), F, BYTE, F, BYTE),
        (3, 5),
    ),
    "qlinear_conv": (
        lambda: ops.qlinear_conv(
            x(1, 2, 5, 5, dtype="uint8"), F, BYTE, x(3, 2, 3, 3, dtype="uint8"), F, BYTE, F, BYTE,
            **IMAGE),
        (1, 3, 5, 5),
    ),
    "lstm": (lambda: ops.lstm(x(2, 1, 3), x(1, 16, 3), x(1, 16, 4)),
             [(2, 1, 1, 4), (1, 1, 4), (1, 1, 4)]),
    "gru": (lambda: ops.gru(x(2, 1, 3), x(1, 12, 3), x(1, 12, 4)), [(2, 1, 1, 4), (1, 1, 4)]),
    "rnn": (lambda: ops.rnn(x(2, 1, 3), x(1, 4, 3), x(1, 4, 4)), [(2, 1, 1, 4), (1, 1, 4)]),
    "resize": (lambda: ops.resize(x(1, 1, 4, 5), scales=(1, 1, 2, 0.6), mode="linear"),
               (1, 1, 8, 3)),
    "resize to sizes": (
        lambda: ops.resize(x(1, 1, 4, 5), sizes=(8, 3), axes=(2, 3)), (1, 1, 8, 3)),
    "grid_sample": (lambda: ops.grid_sample(x(2, 3, 4, 5), x(2, 6, 7, 2)), (2, 3, 6, 7)),
    "dft": (lambda: ops.dft(x(2, 6, 1), onesided=True), (2, 4, 2)),
    "top_k": (lambda: ops.top_k(x(3, 9), 4), [(3, 4), (3, 4)]),
    "scatter_elements": (
        lambda: ops.scatter_elements(x(3, 9), x(3, 2, dtype="int64"), x(3, 2), axis=1), (3, 9)),
    "scatter_nd": (lambda: ops.scatter_nd(x(3, 9), x(2, 1, dtype="int64"), x(2, 9)), (3, 9)),
    "tensor_scatter": (
        lambda: ops.tensor_scatter(x(2, 9, 4), x(2, 1, 4), x(2, dtype="int64")), (2, 9, 4)),
    "reverse_sequence": (lambda: ops.reverse_sequence(x(5, 2), x(2, dtype="int64")), (5, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shapes(name):
    build, expected = CASES[name]
    result = build()
    values = result if isinstance(result, tuple) else (result,)
    shapes = expected if isinstance(expected, list) else [expected]
    assert [v.shape for v in values] == shapes
    graph_of({f"y{k}": v for k, v in enumerate(values)})


def test_every_function_is_called():
    modules = (ops.functions, ops.quantization, ops.recurrent, ops.sampling, ops.selection)
    public = {n for m in modules for n in vars(m) if n in ops.__all__}
    assert public <= {name.split()[0] for name in CASES} | {"input", "constant"}
