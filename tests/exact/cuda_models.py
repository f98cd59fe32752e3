"""Small models whose CUDA has all kinds of loops, instructions and copies that are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from polyc import Graph, ops
from polyc.types.element_types import BFLOAT16, FLOAT16
from tests.e2e.test_fused_tiles import attention

F32, BF16, F16 = np.dtype(np.float32), BFLOAT16, FLOAT16
INT4, FLOAT8 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.float8_e4m3fn)


@dataclass(frozen=True)
class Case:
    """A graph, what it is compiled for, and a word that its CUDA must have.

    by_warpgroups: products are, however small.
    """

    name: str
    build: Callable[[], Graph]
    has: str
    arch: str = "sm_80"
    choices: Mapping[str, Any] = field(default_factory=dict)
    by_warpgroups: bool = False


def weights(*shape: int, dtype: np.dtype = F32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def product(
    rows: int, depth: int, columns: int, dtype: np.dtype = F32, transposed: str = ""
) -> Graph:
    """relu(a b + bias) + r; either factor may be given as its transpose."""

    def operand(name: str, *shape: int) -> ops.Tensor:
        if name not in transposed:
            return ops.input(name, shape, dtype)
        return ops.transpose(ops.input(name, shape[::-1], dtype), (1, 0))

    left, right = operand("a", rows, depth), operand("b", depth, columns)
    rest = ops.input("add", (rows, columns), dtype)
    return Graph.of(y=ops.relu(left @ right + weights(columns, dtype=dtype)) + rest)


def batches() -> Graph:
    a, b = ops.input("a", (2, 3, 70, 136), BF16), ops.input("b", (2, 3, 136, 72), BF16)
    return Graph.of(y=a @ b)


def windows(dtype: np.dtype = F32, stride: int = 1) -> Graph:
    x, w = ops.input("x", (2, 16, 11, 9), dtype), weights(24, 16, 3, 3, dtype=dtype)
    return Graph.of(y=ops.relu(ops.conv(x, w, pads=(1, 1, 1, 1), strides=(stride, stride))))


def depthwise() -> Graph:
    x = ops.input("x", (1, 5, 13, 7))
    middle = ops.relu(ops.conv(x, weights(5, 1, 3, 3), pads=(1, 1, 1, 1), group=5))
    return Graph.of(y=ops.conv(middle, weights(9, 5, 1, 1), weights(9)))


def softmax(rows: int, length: int, axis: int = -1) -> Graph:
    return Graph.of(y=ops.softmax(ops.input("exp", (rows, length)), axis=axis))


def layer_norm(dtype: np.dtype = F32) -> Graph:
    x = ops.input("x", (7, 299), dtype)
    return Graph.of(
        y=ops.layer_normalization(x, weights(299, dtype=dtype), weights(299, dtype=dtype))
    )


def transposes() -> Graph:
    x, z = ops.input("x", (3, 67, 45)), ops.input("z", (45, 3, 67))
    return Graph.of(y=ops.exp(ops.transpose(x, (2, 0, 1))) * z)


def long_sum() -> Graph:
    x = ops.input("x", (3, 1 << 15))
    return Graph.of(y=ops.reduce_sum(x, axes=(1,)), z=ops.reduce_max(x, axes=(1,)))


def pointwise(dtype: np.dtype = F32) -> Graph:
    """Odd sizes, literals, comparisons, and a boolean."""
    x, z = ops.input("mul", (3, 517), dtype), ops.input("z", (517,), dtype)
    chosen = ops.where(ops.greater(x, z), ops.tanh(x), z * 0.1)
    return Graph.of(y=(chosen - 0.25) / (x + 3.5), s=ops.leaky_relu(x, 0.1))


def joined() -> Graph:
    x, z = ops.input("x", (3, 17)), ops.input("z", (3, 0))
    return Graph.of(y=ops.concat([ops.tanh(x), z, x * 2.0], axis=1), w=z + 1.0)


def gathered() -> Graph:
    table, places = ops.input("table", (11, 20)), ops.input("k", (2, 7), np.int64)
    return Graph.of(y=ops.gather(table, places, axis=0) * 2.0)


def pooled() -> Graph:
    x = ops.input("x", (1, 3, 13, 17))
    return Graph.of(y=ops.max_pool(x, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)))


def quantised() -> Graph:
    """Bytes in, bytes out, and sums of whole numbers in between."""
    x, w = ops.input("x", (19, 45)), np.random.default_rng(0).integers(-99, 99, (45, 33), np.int8)
    scale, zero = np.float32(0.25), np.uint8(7)
    bytes_ = ops.quantize_linear(x, scale, zero)
    sums = ops.matmul_integer(bytes_, w, zero)
    y = ops.qlinear_matmul(bytes_, scale, zero, w, scale, np.int8(0), scale, zero)
    return Graph.of(y=y, z=ops.cast(sums, np.float32) * 0.5)


def four_bits() -> Graph:
    """Weights of four bits, and as many out."""
    x, w = ops.input("x", (5, 24)), np.arange(24 * 9).reshape(24, 9) % 16 - 8
    scale = np.float32(0.5)
    weights_ = ops.dequantize_linear(w.astype(INT4), scale)
    y = x @ weights_
    return Graph.of(y=y, z=ops.quantize_linear(y, scale, dtype=INT4))


def eight_bits() -> Graph:
    """Floats of a byte, in the smallest field."""
    x, scale = ops.input("x", (37, 45)), ops.input("scale", (45,))
    narrow = ops.cast(x * scale, FLOAT8)
    return Graph.of(y=ops.transpose(narrow), z=ops.cast(narrow, F32) + x)


def fused(dtype: np.dtype) -> Graph:
    """Attention in 16 bits, with heads cut out of one array."""
    x = ops.input("x", (1, 35, 3 * 32), dtype)
    q, k, v = (
        ops.transpose(
            ops.reshape(ops.slice(x, [32 * n], [32 * n + 32], axes=[2]), (1, 35, 2, 16)),
            (0, 2, 1, 3),
        )
        for n in range(3)
    )
    scores = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))))
    return Graph.of(y=ops.reshape(ops.transpose(scores @ v, (0, 2, 1, 3)), (1, 35, 32)))


TF32 = {"tf32": True}
HOPPER = {"arch": "sm_90a", "by_warpgroups": True}

CASES = (
    Case("products by threads", lambda: product(29, 37, 43), "wide0"),
    Case("products, copied ahead", lambda: product(37, 64, 53, F32, "a"), "pc_copy_async_"),
    Case("tf32, words", lambda: product(64, 64, 64, F32, "ab"), "pc_round_tf32(", choices=TF32),
    Case("tf32", lambda: product(37, 29, 53), "pc_mma_m16n8k8_tf32", choices=TF32),
    Case("bf16", lambda: product(37, 29, 53, BF16), "pc_mma_m16n8k16_bf16"),
    Case("f16", lambda: product(64, 64, 64, F16, "a"), "pc_ldmatrix_x4_transposed"),
    Case("warpgroups, boxes", lambda: product(72, 136, 88, BF16), "pc_tensor_load", **HOPPER),
    Case("warpgroups, ab", lambda: product(72, 136, 88, F16, "ab"), "pc_tensor_load", **HOPPER),
    Case("warpgroups, copies", lambda: product(60, 117, 60, BF16), "pc_fence_async", **HOPPER),
    Case("warpgroups, batches", batches, "pc_tensor_load", **HOPPER),
    Case("convolution", windows, "PC_SHARED("),
    Case("convolution, bf16", lambda: windows(BF16, 2), "pc_mma_m16n8k16_bf16"),
    Case("convolution, warpgroups", lambda: windows(F16), "pc_wgmma_m64", **HOPPER),
    Case("depthwise convolution", depthwise, "pc_max_f32"),
    Case("softmax of long rows", lambda: softmax(5, 1999), "PC_SHARED(f32, values"),
    Case("softmax of short rows", lambda: softmax(41, 3), "pc_exp_normal_f32"),
    Case("softmax down columns", lambda: softmax(41, 33, 0), "pc_exp_normal_f32"),
    Case("layer norm", layer_norm, "pc_shuffle_xor"),
    Case("layer norm, f16", lambda: layer_norm(F16), "pc_shuffle_xor"),
    Case("attention", lambda: attention(2, 67, 77, 19), "PC_SHARED("),
    Case("attention, f16", lambda: fused(F16), "pc_mma_m16n8k16_f16"),
    Case("attention, sm_90a", lambda: fused(BF16), "pc_mma_m16n8k16_bf16", "sm_90a"),
    Case("transposes", transposes, "PC_SWIZZLE"),
    Case("sums over blocks", long_sum, "_part"),
    Case("pointwise", pointwise, "pc_tanh_f32"),
    Case("doubles", lambda: pointwise(np.dtype(np.float64)), "pc_tanh_f64"),
    Case("concatenation", joined, "pc_tanh_f32"),
    Case("gather", gathered, "pc_index("),
    Case("pooling", pooled, "pc_max_f32"),
    Case("quantised", quantised, "pc_round_f32"),
    Case("four bits", four_bits, "i4"),
    Case("eight-bit floats", eight_bits, "f8e4m3fn"),
)


def find_case(name: str) -> Case:
    (found,) = (case for case in CASES if case.name == name)
    return found
