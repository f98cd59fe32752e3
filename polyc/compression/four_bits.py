"""Weights of 4 bits, in blocks: what matrices of large models are read as.

    w[k, n]  ~  scale[b, n] * (q[k, n] - zero[b, n])          b = k // block,  0 <= q, zero <= 15

Activations stay floats. A token of a language model takes the time that its weights take to be
read. In the file these are an eighth, with 36 bits more for each block's scale and zero point; what
an engine reads is its own affair (polyc: a byte a weight).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import ml_dtypes
import numpy as np

from polyc.compression.layers import Layer
from polyc.compression.sketch import Sketch
from polyc.graph.ir import Graph, Node

Form = Literal["MatMulNBits", "DequantizeLinear"]

LEVELS = 15
"""The largest number of 4 bits."""

PARTS = np.linspace(1.1, 0.7, 17)
"""Parts of a block's range that are tried: less than all rounds finer and cuts off the rest, a
little more lets the zero point, which is a whole number, fall better."""

CHUNK = 1 << 20
"""Elements that are searched at a time."""

CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class Blocks:
    """Weights [k, n] in blocks: numbers[n, blocks, block], scales[n, blocks], zeros[n, blocks]."""

    numbers: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    rows: int

    @property
    def restored(self) -> np.ndarray:
        """The weights [k, n] that these stand for."""
        off = self.numbers.astype(np.float32) - self.zeros[:, :, None].astype(np.float32)
        floats = off * self.scales[:, :, None]
        return np.ascontiguousarray(floats.reshape(len(floats), -1)[:, : self.rows].T)


def to_blocks(weights: np.ndarray, block: int) -> Blocks:
    """Weights [k, n] in blocks along k, each with the range that is nearest in squares."""
    rows, columns = weights.shape
    count = -(-rows // block)
    padded = np.zeros((columns, count * block), np.float32)
    padded[:, :rows] = weights.T
    blocks = padded.reshape(-1, block)
    step = max(CHUNK // block, 1)
    parts = [_fit(blocks[k : k + step]) for k in range(0, len(blocks), step)]
    numbers, scales, zeros = (np.concatenate(p) for p in zip(*parts, strict=True))
    shape = columns, count
    return Blocks(numbers.reshape(*shape, block), scales.reshape(shape), zeros.reshape(shape), rows)


def _fit(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, scales and zeros of blocks [m, block]."""
    low = np.minimum(blocks.min(axis=1), 0)
    high = np.maximum(blocks.max(axis=1), 0)
    best = np.full(len(blocks), np.inf, np.float32)
    numbers = np.zeros(blocks.shape, np.uint8)
    scales, zeros = np.ones(len(blocks), np.float32), np.zeros(len(blocks), np.uint8)
    for part in PARTS:
        scale = ((high - low) * np.float32(part / LEVELS)).astype(np.float32)
        scale[scale == 0] = 1
        zero = np.clip(np.rint(-low * np.float32(part) / scale), 0, LEVELS)
        given = np.clip(np.rint(blocks / scale[:, None]) + zero[:, None], 0, LEVELS)
        # For these numbers the scale that is nearest in squares is known.
        off = given - zero[:, None]
        square = (off * off).sum(axis=1)
        np.divide((off * blocks).sum(axis=1), square, out=scale, where=square > 0)
        error = ((off * scale[:, None] - blocks) ** 2).sum(axis=1)
        better = error < best
        best[better], scales[better], zeros[better] = error[better], scale[better], zero[better]
        numbers[better] = given[better]
    return numbers, scales, zeros


def pack(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 4 bits along the last dimension, two to a byte, the lower half first."""
    if numbers.shape[-1] % 2:
        numbers = np.concatenate([numbers, np.zeros_like(numbers[..., :1])], axis=-1)
    return (numbers[..., ::2] | (numbers[..., 1::2] << 4)).astype(np.uint8)


def why_not(graph: Graph, layer: Layer, block: int) -> str:
    """Why a layer's weights stay floats; "" if they need not."""
    if layer.node.op == "Conv":
        return "a convolution's weights are no matrix"
    if not layer.weight:
        return "it has no weights"
    rows = graph.tensors[layer.weight].shape[1 - layer.axis]
    if isinstance(rows, int) and rows < block:
        return f"its {rows} rows are fewer than a block's {block}"
    return ""


def write_layer(sketch: Sketch, layer: Layer, weights: Blocks, form: Form, level: int) -> None:
    """Write a product by weights of 4 bits in the place of one by floats, and what adds its bias.

    level: the accuracy level of MatMulNBits.
    """
    node, (result,) = layer.node, layer.node.outputs
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    product = sketch.moved(result, f"{result}_product") if bias else result
    write = _n_bits if form == "MatMulNBits" else _dequantised
    sketch.nodes.append(write(sketch, layer, weights, product, level))
    if bias:
        title = sketch.name(f"{layer.name}_bias")
        sketch.nodes.append(Node(title, "Add", (product, bias), (result,)))


def _n_bits(sketch: Sketch, layer: Layer, weights: Blocks, result: str, level: int) -> Node:
    count, _, block = weights.numbers.shape
    inputs = (
        layer.node.inputs[0],
        sketch.constant(f"{layer.weight}_packed", pack(weights.numbers)),
        sketch.constant(f"{layer.weight}_scales", weights.scales),
        sketch.constant(f"{layer.weight}_zeros", pack(weights.zeros)),
    )
    attributes = {"K": weights.rows, "N": count, "bits": 4, "block_size": block}
    attributes |= {"accuracy_level": level} if level else {}
    return Node(layer.name, "MatMulNBits", inputs, (result,), attributes, CONTRIB)


def _dequantised(sketch: Sketch, layer: Layer, weights: Blocks, result: str, level: int) -> Node:
    count, _, block = weights.numbers.shape
    numbers = weights.numbers.reshape(count, -1)[:, : weights.rows].T
    given = (
        sketch.constant(f"{layer.weight}_numbers", numbers.astype(ml_dtypes.uint4)),
        sketch.constant(f"{layer.weight}_scales", np.ascontiguousarray(weights.scales.T)),
        sketch.constant(f"{layer.weight}_zeros", weights.zeros.T.astype(ml_dtypes.uint4)),
    )
    title, shape = f"{layer.weight}_restored", (weights.rows, count)
    restored = sketch.call("DequantizeLinear", given, title, shape, axis=0, block_size=block)
    return Node(layer.name, "MatMul", (layer.node.inputs[0], restored), (result,))
