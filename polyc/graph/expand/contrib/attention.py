"""Attention, MultiHeadAttention and RotaryEmbedding of com.microsoft, as the standard's operators.

    y  =  softmax(scale q kᵀ + masks) v          per head; keys and values behind those of the past

Masks are added: 0 where something counts, `mask_filter_value` where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed_all

Operands = Sequence[Tensor | None]


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values by head, [batch, heads, n, size], and what is added to scores.

    q, k, v: names; queries, keys: how many there are in all; width: of a head of q.
    """

    q: str
    k: str
    v: str
    batch: int
    queries: int
    keys: int
    width: int


def expand_attention(node: Node, inputs: Operands) -> Body:
    """x[b, n, d], W[d, q+k+v], bias, mask, past[2, b, heads, m, size], added -> y, present"""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "input", 3, 3)
    batch, n, _ = fixed_all(x.shape, "a dimension of input")
    names = (*node.inputs[2:], "", "", "", "", "")
    bias, _, past, added, shared = names[:5]
    if shared or node.get("do_rotary"):
        raise UnsupportedOp(
            f"Attention {node.name!r}: a shared past and do_rotary are not supported; use "
            "RotaryEmbedding and Concat in front of MultiHeadAttention"
        )
    heads = int(node.attributes["num_heads"])
    total = fixed_all(given(inputs[1]).shape, "a dimension of weights")[1]
    sizes = tuple(node.get("qkv_hidden_sizes") or (total // 3,) * 3)
    require(sum(sizes) == total, "columns of weights", sum(sizes), total, "correct the sizes")
    joined = c("MatMul", *node.inputs[:2])
    joined = c("Add", joined, bias) if bias else joined
    parts = c.several("Split", 3, joined, c.integers(*sizes), axis=2)
    q, k, v = (
        _by_head(c, p, (batch, n, heads, s // heads)) for p, s in zip(parts, sizes, strict=True)
    )
    keys = n
    if past:
        earlier = fixed_all(given(inputs[4]).shape, "a dimension of past")[3]
        k, v = (
            c("Concat", c("Gather", past, c.constant(np.int64(i))), own, axis=2)
            for i, own in enumerate((k, v))
        )
        keys += earlier
    attended = Heads(q, k, v, batch, n, keys, sizes[0] // heads)
    y = _attend(c, node, attended, _mask(c, node, inputs, 3, attended), added, x.dtype)
    both = [c("Unsqueeze", t, c.integers(0)) for t in (k, v)]
    present = c("Concat", *both, axis=0) if len(node.outputs) > 1 else y
    return c.body(node.inputs, (_together(c, y, (batch, n, sizes[2])), present))


def expand_multi_head_attention(node: Node, inputs: Operands) -> Body:
    """q[b, n, h], k[b, m, h], v, bias, mask, added, past k and v -> y, present k and v

    Packed forms: q as [b, n, heads, 3, size], or k as [b, m, heads, 2, size]; k and v may also be
    [b, heads, m, size].
    """
    c, query = Composer(), given(inputs[0])
    names = (*node.inputs, *[""] * 8)
    key, value, bias, _, added, past_key, past_value = names[1:8]
    heads = int(node.attributes["num_heads"])
    shape = fixed_all(query.shape, "a dimension of query")
    batch, n = shape[:2]
    width = shape[-1] if query.rank == 5 else shape[2] // heads
    q, k, v = node.inputs[0], key, value
    if query.rank == 5:
        q, k, v = _unpack(c, q, 3, batch)
    elif key and given(inputs[1]).rank == 5:
        k, v = _unpack(c, k, 2, batch)
    sizes = [heads * width] * 2
    sizes.append(fixed_all(given(inputs[2]).shape, "a dimension of value")[-1]
                 if value and given(inputs[2]).rank == 3 else heads * width)  # fmt: skip
    biases = c.several("Split", 3, bias, c.integers(*sizes), axis=0) if bias else ("", "", "")
    parts = []
    for name, own, size, at in zip((q, k, v), biases, sizes, range(3), strict=True):
        tensor = inputs[at] if at < len(inputs) else None
        if name and tensor is not None and tensor.rank == 4:  # by head already
            parts.append(name)
            continue
        moved = c("Add", name, own) if own else name
        parts.append(_by_head(c, moved, (batch, -1, heads, size // heads)))
    q, k, v = parts
    keys = n
    if query.rank != 5:
        extents = fixed_all(given(inputs[1]).shape, "a dimension of key")
        keys = extents[2] if len(extents) == 4 else extents[1]
    if past_key:
        keys += fixed_all(given(inputs[6]).shape, "a dimension of past_key")[2]
        k, v = c("Concat", past_key, k, axis=2), c("Concat", past_value, v, axis=2)
    attended = Heads(q, k, v, batch, n, keys, width)
    y = _attend(c, node, attended, _mask(c, node, inputs, 4, attended), added, query.dtype)
    return c.body(node.inputs, (_together(c, y, (batch, n, sizes[2])), k, v))


def _by_head(c: Composer, x: str, extents: Sequence[int]) -> str:
    """[b, n, heads * size] -> [b, heads, n, size]; extents are (b, n, heads, size)."""
    return c("Transpose", c("Reshape", x, c.integers(*extents)), perm=(0, 2, 1, 3))


def _together(c: Composer, y: str, extents: Sequence[int]) -> str:
    return c("Reshape", c("Transpose", y, perm=(0, 2, 1, 3)), c.integers(*extents))


def _unpack(c: Composer, x: str, count: int, batch: int) -> list[str]:
    """[b, n, heads, count, size] -> count times [b, n, heads * size]"""
    parts = (c("Gather", x, c.constant(np.int64(k)), axis=3) for k in range(count))
    return [c("Reshape", part, c.integers(0, 0, -1)) for part in parts]


def _attend(
    c: Composer, node: Node, h: Heads, masks: Sequence[str], added: str, dtype: np.dtype
) -> str:
    scale = node.get("scale") or 1 / math.sqrt(h.width)
    turned = c("Transpose", h.k, perm=(0, 1, 3, 2))
    scores = c("Mul", c("MatMul", h.q, turned), c.constant(scale, dtype))
    for mask in (*masks, added):
        scores = c("Add", scores, mask) if mask else scores
    return c("MatMul", c("Softmax", scores, axis=-1), h.v)


def _mask(c: Composer, node: Node, inputs: Operands, at: int, h: Heads) -> list[str]:
    """What masks add to the scores: of keys that come later, and of those that an input hides.

    The input is int32: [b] lengths; [2b] ends, then starts; [b, keys], or [b, n, keys], 1 or 0.
    """
    dtype = given(inputs[0]).dtype
    found = []
    if node.get("unidirectional"):
        later = np.arange(h.keys) > np.arange(h.queries)[:, None] + h.keys - h.queries
        found.append(c.constant(np.where(later, np.finfo(dtype).min, 0), dtype))
    mask = inputs[at] if at < len(inputs) else None
    if mask is None:
        return found
    shape, name = fixed_all(mask.shape, "a dimension of the mask"), node.inputs[at]
    position = c.constant(np.arange(h.keys), np.int32)
    name = c("Cast", name, to=TensorProto.INT32)
    if shape in ((h.batch,), (2 * h.batch,)):
        ends, *starts = (
            c("Reshape", part, c.integers(h.batch, 1, 1, 1))
            for part in c.several("Split", shape[0] // h.batch, name, axis=0,
                                  num_outputs=shape[0] // h.batch)
        )  # fmt: skip
        counts = c("Less", position, ends)
        for start in starts:
            counts = c("And", counts, c("GreaterOrEqual", position, start))
    elif shape in ((h.batch, h.keys), (h.batch, h.queries, h.keys)):
        rows = shape[1] if len(shape) == 3 else 1
        counts = c("Greater", c("Reshape", name, c.integers(h.batch, 1, rows, h.keys)),
                   c.constant(np.int32(0)))  # fmt: skip
    else:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: a mask of shape {shape} is not supported; give lengths or "
            f"a mask of shape {(h.batch, h.keys)}"
        )
    hidden = c.constant(node.get("mask_filter_value", -10000.0), dtype)
    found.append(c("Where", counts, c.constant(0.0, dtype), hidden))
    return found


def expand_rotary(node: Node, inputs: Operands) -> Body:
    """x[b, n, h] or [b, heads, n, size], positions[b, n] or [1], cos, sin -> as x

    One position is that of the first element of each sequence.
    """
    c, x, positions = Composer(), given(inputs[0]), given(inputs[1])
    if node.get("scale", 1.0) != 1.0 or node.get("is_packed_batching"):
        raise UnsupportedOp(f"RotaryEmbedding {node.name!r}: a scale or packing is not supported")
    shape = fixed_all(x.shape, "a dimension of input")
    width = fixed_all(given(inputs[2]).shape, "a dimension of cos_cache")[1]
    part, heads = int(node.get("rotary_embedding_dim", 0)), int(node.get("num_heads", 0))
    batch, n = shape[0], shape[1] if x.rank == 3 else shape[2]
    where = node.inputs[1]
    if positions.rank == 1:
        where = c("Add", where, c.constant(np.broadcast_to(np.arange(n), (batch, n)), np.int64))
    attributes: dict[str, Any] = {
        "interleaved": int(node.get("interleaved", 0)),
        "rotary_embedding_dim": part,
    }
    if x.rank == 3:
        attributes["num_heads"] = heads or shape[2] // (2 * width)
    y = c("RotaryEmbedding", node.inputs[0], *node.inputs[2:4], where, **attributes)
    return c.body(node.inputs, (y,))
