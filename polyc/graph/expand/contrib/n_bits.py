"""Weights of 4 or 8 bits, which have a scale for each block along k: products, and rows of a table.

    MatMulNBits(a, b, scales, zeros)     GatherBlockQuantized(table, rows, scales, zeros)
    MatMulBnb4(a, b, scales)

    B: uint8[n, blocks, bytes], the lower half of a byte first; scales[n, blocks]; zeros: packed in
    the same way, or floats, by default the middle of the range

Weights that are constant stay as they are, as BlockProduct; others are restored in each call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import given, require
from polyc.types.element_types import FLOAT32, bit_width, is_narrow

WORD = 32
"""Bits that a block is a multiple of."""

_BYTE_OF = {"int4": TensorProto.INT8, "uint4": TensorProto.UINT8}

AS_INTEGERS = 4
"""The accuracy level from which on A may be rounded to bytes, block by block."""


def expand_matmul_n_bits(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """A[…, k] B[n, k]ᵀ for weights scale * (b - zero)"""
    names = (*node.inputs[3:], "", "", "")
    _, groups, bias = names[:3]
    bits = int(node.get("bits", 4))
    if bits not in (4, 8) or groups:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: {bits} bits{' with g_idx' if groups else ''} are not "
            "supported; use blocks in order, of 4 or 8 bits"
        )
    c = Composer()
    kept = _in_blocks(c, node, inputs, bits)
    y = _restored(c, node, inputs, bits) if kept is None else kept
    return c.body(node.inputs, (c("Add", y, bias) if bias else y,))


def _in_blocks(c: Composer, node: Node, inputs: Sequence[Tensor | None], bits: int) -> str | None:
    """The product with the weights as they are; None if they are not known, or a is a double."""
    a, *constants = inputs[:4]
    values = [None if t is None else t.value for t in constants]
    unknown = any(t is not None and t.value is None for t in constants)
    block, k, n = (int(node.attributes[name]) for name in ("block_size", "K", "N"))
    blocks, float32 = -(-k // block), given(a).dtype == FLOAT32 or is_narrow(given(a).dtype)
    if unknown or not float32 or block * bits % WORD or a is None:
        return None
    packed, scales, zeros = (*values, None)[:3]
    assert packed is not None
    assert scales is not None
    if not a.rank or a.shape[-1] != k or not _fits(packed, scales, zeros, (n, blocks, block), bits):
        return None  # what is said of the restored weights holds, or names what does not fit
    operands = [
        c.constant(packed.reshape(n, blocks, block * bits // 8)),
        c.constant(scales.reshape(n, blocks).astype(FLOAT32)),
    ]
    if zeros is not None:
        operands.append(c.constant(_read_zeros(zeros, n, blocks, bits)))
    x = node.inputs[0]
    if a.dtype != FLOAT32:
        x = c("Cast", x, to=int(helper.np_dtype_to_tensor_dtype(FLOAT32)))
    if blocks * block > k:
        pads = [0] * (2 * a.rank - 1) + [blocks * block - k]
        x = c("Pad", x, c.integers(*pads))
    integers = int(int(node.get("accuracy_level", 0)) >= AS_INTEGERS)
    y = c("BlockProduct", x, *operands, domain=INTERNAL, bits=bits, integers=integers)
    if a.dtype != FLOAT32:
        y = c("Cast", y, to=int(helper.np_dtype_to_tensor_dtype(a.dtype)))
    return y


def _fits(
    packed: np.ndarray,
    scales: np.ndarray,
    zeros: np.ndarray | None,
    shape: tuple[int, int, int],
    bits: int,
) -> bool:
    """Whether there are as many numbers as columns, blocks and weights in a block need."""
    n, blocks, block = shape
    of_zeros = blocks
    if zeros is not None and zeros.dtype == np.uint8:
        of_zeros = -(-blocks * bits // 8)
    known = zeros is None or zeros.size == n * of_zeros
    return known and scales.size == n * blocks and packed.size * 8 == n * blocks * block * bits


def _read_zeros(zeros: np.ndarray, n: int, blocks: int, bits: int) -> np.ndarray:
    """[n, blocks]: uint8, of packed bytes, or float32."""
    if zeros.dtype != np.uint8:
        return zeros.reshape(n, blocks).astype(FLOAT32)
    numbers = zeros.reshape(n, -1)
    if bits == 4:
        numbers = np.stack([numbers & 15, numbers >> 4], axis=-1).reshape(n, -1)
    return numbers[:, :blocks]


def _restored(c: Composer, node: Node, inputs: Sequence[Tensor | None], bits: int) -> str:
    """The product with weights that are restored before."""
    a, block = given(inputs[0]), int(node.attributes["block_size"])
    zeros = (*node.inputs[3:], "")[0]
    k, n = int(node.attributes["K"]), int(node.attributes["N"])
    blocks = -(-k // block)
    code = int(helper.np_dtype_to_tensor_dtype(a.dtype))
    packed = c("Reshape", node.inputs[1], c.integers(n, blocks, -1))
    weight = c("Cast", _unpack(c, packed, bits, (n, blocks, block)), to=code)
    middle: str = c.constant(float(1 << (bits - 1)), a.dtype)
    if zeros and given(inputs[3]).dtype == np.uint8:
        rows = -(-blocks * bits // 8) * 8 // bits
        packed = c("Reshape", zeros, c.integers(n, 1, -1))
        numbers = c("Reshape", _unpack(c, packed, bits, (n, 1, rows)), c.integers(n, rows))
        middle = c("Cast", _first(c, numbers, blocks, 1), to=code)
    elif zeros:
        middle = c("Reshape", zeros, c.integers(n, blocks))
    if zeros:
        middle = c("Unsqueeze", middle, c.integers(2))
    scales = c("Reshape", node.inputs[2], c.integers(n, blocks, 1))
    weight = c("Mul", c("Sub", weight, middle), scales)
    weight = _first(c, c("Reshape", weight, c.integers(n, blocks * block)), k, 1)
    return c("MatMul", node.inputs[0], c("Transpose", weight, perm=(1, 0)))


def _unpack(c: Composer, packed: str, bits: int, shape: Sequence[int]) -> str:
    """Bytes as numbers: uint8[…, bytes] -> uint8[…, bytes * 8 / bits], of this shape"""
    return packed if bits == 8 else c("Reshape", _halves(c, packed), c.integers(*shape))


def _halves(c: Composer, packed: str) -> str:
    """uint8[…, bytes] -> uint8[…, bytes, 2] of 4 bits each, the lower ones first"""
    return c("Concat", *(c("Unsqueeze", v, c.integers(-1)) for v in _halved(c, packed)), axis=-1)


def _halved(c: Composer, packed: str) -> tuple[str, str]:
    """The lower and the upper 4 bits of bytes."""
    low = c("BitwiseAnd", packed, c.constant(np.uint8(15)))
    return low, c("BitShift", packed, c.constant(np.uint8(4)), direction="RIGHT")


def _first(c: Composer, x: str, count: int, axis: int) -> str:
    return c("Slice", x, c.integers(0), c.integers(count), c.integers(axis))


def expand_gather_quantised(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """GatherBlockQuantized: rows of a table of 4 or 8 bits, restored: (data, rows, scales, zeros)

    data[v, k] of 4 bits, or uint8[v, bytes], which are packed along the last axis, the lower bits
    first; scales and zeros have one entry for each block along an axis.
    """
    c, data = Composer(), given(inputs[0])
    scale, rank = given(inputs[2]), data.rank
    gather, along = (
        int(node.get(name, default)) % max(rank, 1)
        for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    )
    block, bits = int(node.get("block_size", 128)), int(node.get("bits", 4))
    packed = data.dtype == np.uint8 and bits < 8
    if bits not in (4, 8) or gather == along or (packed and gather == rank - 1):
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: {bits} bits, gathered along axis {gather} and quantised "
            f"along {along}, are not supported; use 4 or 8 bits, and another axis to gather along"
        )
    parts = []
    for name in filter(None, (node.inputs[0], *node.inputs[3:4])):
        if bit_width(data.dtype) < 8:  # Gather knows whole bytes
            name = c("Cast", name, to=_BYTE_OF[str(data.dtype)])
        taken = c("Gather", name, node.inputs[1], axis=gather)
        parts.append(_split_bytes(c, taken) if packed else taken)
    scales = c("Gather", node.inputs[2], node.inputs[1], axis=gather)
    new_axes = given(inputs[1]).rank - 1
    axis = along + (new_axes if along > gather else 0)
    values, zeros = (*parts, "")[:2]
    if zeros and packed:  # of an odd number of blocks, the last byte has one too many
        ends = c("Slice", c("Shape", scales), c.integers(axis), c.integers(axis + 1))
        zeros = c("Slice", zeros, c.integers(0), ends, c.integers(axis))
    if not zeros and data.dtype == np.uint8:
        middle = c.constant(np.uint8(1 << (bits - 1)))
        zeros = c("Expand", middle, c("Shape", scales))
    operands = (values, scales, zeros) if zeros else (values, scales)
    y = c("DequantizeLinear", *operands, axis=axis, block_size=block)
    require(scale.rank == rank, "rank of scales", rank, scale.rank, "give a scale for each block")
    return c.body(node.inputs, (y,))


def _split_bytes(c: Composer, packed: str) -> str:
    """uint8[…, bytes] -> uint8[…, 2 * bytes]"""
    front = c("Slice", c("Shape", packed), c.integers(0), c.integers(-1))
    return c("Reshape", _halves(c, packed), c("Concat", front, c.integers(-1), axis=0))


FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""Numbers of 4 bits that are floats, as bitsandbytes has them; the upper half is negative."""

NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""Sixteen quantiles of the normal distribution (Dettmers and others 2023)."""

TABLES = ((*FP4, *(-x for x in FP4)), NF4)


def expand_matmul_bnb4(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """MatMulBnb4: A[…, k] B[n, k]ᵀ for weights absmax * table[b], (A, B, absmax)

    B: uint8, all n * k one after another, the upper half of a byte first; absmax: one for each
    block of them. Constant weights become floats when they are folded.
    """
    kind, block = int(node.attributes["quant_type"]), int(node.attributes["block_size"])
    k, n = int(node.attributes["K"]), int(node.attributes["N"])
    by_columns = node.get("transB", 1)
    if kind not in (0, 1) or not by_columns:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: quant_type {kind} with transB {by_columns} is not "
            "supported; use 0 or 1, and weights of one column after another"
        )
    c, a = Composer(), given(inputs[0])
    blocks = -(-n * k // block)
    low, high = _halved(c, c("Reshape", node.inputs[1], c.integers(-1)))
    pairs = c("Concat", *(c("Unsqueeze", v, c.integers(-1)) for v in (high, low)), axis=-1)
    numbers = _first(c, c("Reshape", pairs, c.integers(-1)), n * k, 0)
    places = c("Cast", numbers, to=TensorProto.INT32)
    table = c.constant(np.array(TABLES[kind]), a.dtype)
    values = c("Pad", c("Gather", table, places), c.integers(0, blocks * block - n * k))
    scales = c("Reshape", node.inputs[2], c.integers(blocks, 1))
    weight = c("Mul", c("Reshape", values, c.integers(blocks, block)), scales)
    weight = _first(c, c("Reshape", weight, c.integers(-1)), n * k, 0)
    columns = c("Transpose", c("Reshape", weight, c.integers(n, k)), perm=(1, 0))
    return c.body(node.inputs, (c("MatMul", node.inputs[0], columns),))
