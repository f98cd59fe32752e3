"""The block formats of ggml as `BlockWeights`: the same numbers, in another order.

    format  weights of a block      weight
    Q4_0    32                      d (q - 8)
    Q4_1    32                      d q + m
    Q8_0    32                      d q, q signed
    Q4_K    256 = 8 times 32        (d s) q - (e m), s and m of 6 bits for each 32
    Q6_K    256 = 16 times 16       (d s) (q - 32), s of 8 bits for each 16

Where something is subtracted that is no multiple of the scale, the zero point is a float: within
the rounding of float32 of what ggml restores. (ggml/src/ggml-common.h, ggml-quants.c)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyc.compression.four_bits import pack
from polyc.compression.gguf.block_weights import BlockWeights

FAR = 2.0**30
"""A zero point beside which numbers of 4 bits are less than the last digit of a float."""


@dataclass(frozen=True)
class Format:
    """weights, size: of a block, in numbers and bytes; read: uint8[…, blocks, size] -> weights."""

    name: str
    weights: int
    size: int
    read: Callable[[np.ndarray], BlockWeights]


def _halves(data: np.ndarray) -> np.ndarray:
    """Bytes as the numbers of their lower halves, then those of their upper ones."""
    return np.concatenate([data & 15, data >> 4], axis=-1)


def _floats(data: np.ndarray) -> np.ndarray:
    """float16 as bytes […, 2 n] -> float32[…, n]"""
    return np.ascontiguousarray(data).view("<f2").astype(np.float32)


def _along(x: np.ndarray) -> np.ndarray:
    """Parts of blocks as blocks: […, blocks, parts, bytes] -> […, blocks * parts, bytes]"""
    return np.ascontiguousarray(x.reshape(*x.shape[:-3], -1, x.shape[-1]))


def _read_q4_0(data: np.ndarray) -> BlockWeights:
    return BlockWeights(4, pack(_halves(data[..., 2:])), _floats(data[..., :2])[..., 0])


def _read_q4_1(data: np.ndarray) -> BlockWeights:
    factors = _floats(data[..., :4])
    return _with_offsets(_halves(data[..., 4:]), factors[..., 0], -factors[..., 1])


def _read_q8_0(data: np.ndarray) -> BlockWeights:
    return BlockWeights(8, data[..., 2:] ^ np.uint8(128), _floats(data[..., :2])[..., 0])


def _read_q4_k(data: np.ndarray) -> BlockWeights:
    factors, fields, numbers = _floats(data[..., :4]), data[..., 4:16], data[..., 16:]
    first, second, third = (fields[..., 4 * i : 4 * i + 4] for i in range(3))
    scale = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1)
    least = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1)
    with np.errstate(invalid="ignore"):
        scales = factors[..., :1] * scale.astype(np.float32)
        offsets = factors[..., 1:] * least.astype(np.float32)
    parts = _halves(numbers.reshape(*numbers.shape[:-1], 4, 32)).reshape(*scales.shape, 32)
    return _with_offsets(_along(parts), _flat(scales), _flat(offsets))


def _read_q6_k(data: np.ndarray) -> BlockWeights:
    shape = data.shape[:-1]
    low = data[..., :128].reshape(*shape, 2, 2, 32)
    high = data[..., 128:192].reshape(*shape, 2, 1, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    lower = np.concatenate([low & 15, low >> 4], axis=-2)  # […, 2, 4, 32]
    # The middle of 6 bits becomes that of 8, which is the zero point where none is given.
    numbers = (lower | (high >> shifts & 3) << 4) + np.uint8(128 - 32)
    scale = data[..., 192:208].view(np.int8).astype(np.float32)
    with np.errstate(invalid="ignore"):
        scales = _floats(data[..., 208:]) * scale
    return BlockWeights(8, _along(numbers.reshape(*shape, 16, 16)), _flat(scales))


def _flat(x: np.ndarray) -> np.ndarray:
    """[…, blocks, parts] -> […, blocks * parts]"""
    return np.ascontiguousarray(x.reshape(*x.shape[:-2], -1))


def _with_offsets(numbers: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> BlockWeights:
    """scale * number - offset, of 4 bits -> scale * (number - offset / scale)

    Where the scale is nothing beside the offset, or zero, all of a block is  offset * (0 - 1).
    """
    with np.errstate(all="ignore"):
        zeros = offsets / scales
        constant = ~(np.abs(zeros) <= FAR) & np.isfinite(scales)
    scales = np.where(constant, offsets, scales)
    zeros = np.where(constant, np.float32(1), zeros)
    numbers = np.where(constant[..., None], np.uint8(0), numbers)
    return BlockWeights(4, pack(numbers), scales, zeros)


FORMATS = {
    2: Format("Q4_0", 32, 18, _read_q4_0),
    3: Format("Q4_1", 32, 20, _read_q4_1),
    8: Format("Q8_0", 32, 34, _read_q8_0),
    12: Format("Q4_K", 256, 144, _read_q4_k),
    14: Format("Q6_K", 256, 210, _read_q6_k),
}
"""A type's number -> its blocks."""

PLAIN = {
    0: "float32",
    1: "float16",
    24: "int8",
    25: "int16",
    26: "int32",
    27: "int64",
    28: "float64",
    30: "bfloat16",
}
"""A type's number -> the element type of a plain array."""

OTHERS = {
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    13: "Q5_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""The names of types that are not read."""
