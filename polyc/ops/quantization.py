"""Quantised operators: integers that stand for real numbers, (q - zero_point) · scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.builder import Operand, Value, apply, apply_contrib, apply_many

Ints = Sequence[int]


def quantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Operand | None = None,
    axis: int = 1,
    block_size: int = 0,
    dtype: np.dtype | str | None = None,
) -> Value:
    """saturate(round(x / scale) + zero_point); ties go to even.

    scale: for all of x, one for each position along `axis`, or one for each block of `block_size`
    along it. The result has zero_point's type, or `dtype`, or uint8.
    """
    code = None if dtype is None else int(np_dtype_to_tensor_dtype(np.dtype(dtype)))
    blocks = {"block_size": block_size} if block_size else {}
    return apply(
        "QuantizeLinear", [x, scale, zero_point], axis=axis, output_dtype=code, **blocks
    )  # fmt: skip


def dequantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Operand | None = None,
    axis: int = 1,
    block_size: int = 0,
) -> Value:
    """(x - zero_point) · scale, with scales as those of `quantize_linear`."""
    blocks = {"block_size": block_size} if block_size else {}
    return apply("DequantizeLinear", [x, scale, zero_point], axis=axis, **blocks)


def dynamic_quantize_linear(x: Operand) -> tuple[Value, Value, Value]:
    """x as uint8 over its own range -> quantised x, scale, zero point."""
    quantized, scale, zero = apply_many("DynamicQuantizeLinear", [x], 3)
    return quantized, scale, zero


def matmul_integer(
    a: Operand,
    b: Operand,
    a_zero_point: Operand | None = None,
    b_zero_point: Operand | None = None,
) -> Value:
    """(a - a_zero_point) @ (b - b_zero_point) of 8-bit integers, in int32."""
    return apply("MatMulInteger", [a, b, a_zero_point, b_zero_point])


def qlinear_matmul(
    a: Operand,
    a_scale: Operand,
    a_zero_point: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
) -> Value:
    """The quantised product of two quantised matrices."""
    left, right = [a, a_scale, a_zero_point], [b, b_scale, b_zero_point]
    return apply("QLinearMatMul", [*left, *right, y_scale, y_zero_point])


def conv_integer(
    x: Operand,
    w: Operand,
    x_zero_point: Operand | None = None,
    w_zero_point: Operand | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
) -> Value:
    """The convolution of x - x_zero_point with w - w_zero_point, 8-bit integers, in int32."""
    window = {"strides": strides, "pads": pads, "dilations": dilations}
    return apply("ConvInteger", [x, w, x_zero_point, w_zero_point], **window, group=group)


def qlinear_conv(
    x: Operand,
    x_scale: Operand,
    x_zero_point: Operand,
    w: Operand,
    w_scale: Operand,
    w_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
    bias: Operand | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
) -> Value:
    """The quantised convolution of a quantised input; bias[M] is int32, of x_scale · w_scale."""
    window = {"strides": strides, "pads": pads, "dilations": dilations}
    data, kernel = [x, x_scale, x_zero_point], [w, w_scale, w_zero_point]
    inputs = [*data, *kernel, y_scale, y_zero_point, bias]
    return apply("QLinearConv", inputs, **window, group=group)


def matmul_n_bits(
    a: Operand,
    packed: Operand,
    scales: Operand,
    zero_points: Operand | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int = 32,
    accuracy_level: int = 0,
) -> Value:
    """com.microsoft's MatMulNBits: a[…, K] by weights of 4 or 8 bits, [N, K] in blocks along K.

    packed: uint8[N, blocks, bytes], of 4 bits the lower half of a byte first. scales[N, blocks].
    zero_points: packed as these, or floats[N, blocks]; by default 2^(bits - 1). From an
    accuracy_level of 4 on a may be rounded to bytes, block by block.
    """
    return apply_contrib(
        "MatMulNBits",
        [a, packed, scales, zero_points],
        K=K,
        N=N,
        bits=bits,
        block_size=block_size,
        accuracy_level=accuracy_level,
    )
