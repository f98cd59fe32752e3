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
from polyc.graph.ir import Body, Dim, Node, Tensor
from polyc.graph.shapes.checks import are_equal, given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed, require_same

Operands = Sequence[Tensor | None]


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values by head, [batch, heads, n, size], and what is added to scores.

    q, k, v: names; batch, queries, keys: how many there are in all; width: of a head of q.
    """

    q: str
    k: str
    v: str
    batch: Dim
    queries: Dim
    keys: Dim
    width: int


@dataclass(frozen=True)
class Operand:
    """An operand that may be absent: its name, or "", and its type, or None."""

    name: str = ""
    type: Tensor | None = None

    @classmethod
    def of(cls, node: Node, inputs: Operands, at: int) -> Operand:
        """That at a place among a node's inputs."""
        return cls(node.inputs[at], inputs[at]) if at < len(inputs) else cls()


def expand_attention(node: Node, inputs: Operands) -> Body:
    """x[b, n, d], W[d, q+k+v], bias, mask, past[2, b, heads, m, size], added -> y, present"""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "input", 3, 3)
    bias, added, shared = (Operand.of(node, inputs, k).name for k in (2, 5, 6))
    if shared:
        raise UnsupportedOp(
            f"Attention {node.name!r}: a shared past is not supported; use Concat in front of "
            "MultiHeadAttention"
        )
    total = fixed(given(inputs[1]).shape[1], "columns of weights")
    sizes = tuple(node.get("qkv_hidden_sizes") or (total // 3,) * 3)
    require(sum(sizes) == total, "columns of weights", sum(sizes), total, "correct the sizes")
    joined = c("MatMul", *node.inputs[:2])
    joined = c("Add", joined, bias) if bias else joined
    mask, past = (Operand.of(node, inputs, k) for k in (3, 4))
    itself = Itself(joined, x.extents[:2], sizes, x.dtype)
    return attend_to_itself(c, node, itself, mask, past, added)


@dataclass(frozen=True)
class Itself:
    """Queries, keys and values beside each other, [batch, n, q + k + v]; sizes: of the three."""

    joined: str
    batch_and_n: Sequence[Dim]
    sizes: tuple[int, ...]
    dtype: np.dtype


def attend_to_itself(
    c: Composer, node: Node, own: Itself, mask: Operand, past: Operand, added: str = ""
) -> Body:
    """y[b, n, v], and all keys and values: present[2, b, heads, past + n, size]"""
    if node.get("do_rotary"):
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: do_rotary is not supported; use RotaryEmbedding in front of "
            "MultiHeadAttention"
        )
    heads, (batch, n) = int(node.attributes["num_heads"]), own.batch_and_n
    parts = c.several("Split", 3, own.joined, c.integers(*own.sizes), axis=2)
    q, k, v = (by_head(c, p, heads, s // heads) for p, s in zip(parts, own.sizes, strict=True))
    keys = n
    if past.type is not None:
        keys += past.type.extents[3]
        k, v = (
            c("Concat", c("Gather", past.name, c.constant(np.int64(i))), new, axis=2)
            for i, new in enumerate((k, v))
        )
    attended = Heads(q, k, v, batch, n, keys, own.sizes[0] // heads)
    y = _attend(c, node, attended, _mask(c, node, mask, attended, own.dtype), added, own.dtype)
    both = [c("Unsqueeze", t, c.integers(0)) for t in (k, v)]
    present = c("Concat", *both, axis=0) if len(node.outputs) > 1 else y
    return c.body(node.inputs, (together(c, y, own.sizes[2]), present))


def expand_multi_head_attention(node: Node, inputs: Operands) -> Body:
    """q[b, n, h], k[b, m, h], v, bias, mask, added, past k and v -> y, present k and v

    Packed forms: q as [b, n, heads, 3, size], or k as [b, m, heads, 2, size]; k and v may also be
    [b, heads, m, size].
    """
    c, query = Composer(), given(inputs[0])
    names = (*node.inputs, *[""] * 8)
    key, value, bias, _, added, past_key, past_value = names[1:8]
    heads = int(node.attributes["num_heads"])
    batch, n = query.extents[:2]
    width = fixed(query.shape[-1], "the last dimension of query")
    width = width if query.rank == 5 else width // heads
    q, k, v = node.inputs[0], key, value
    if query.rank == 5:
        q, k, v = _unpack(c, q, 3)
    elif key and given(inputs[1]).rank == 5:
        k, v = _unpack(c, k, 2)
    sizes = [heads * width] * 2
    sizes.append(fixed(given(inputs[2]).shape[-1], "the last dimension of value")
                 if value and given(inputs[2]).rank == 3 else heads * width)  # fmt: skip
    biases = c.several("Split", 3, bias, c.integers(*sizes), axis=0) if bias else ("", "", "")
    parts = []
    for name, own, size, at in zip((q, k, v), biases, sizes, range(3), strict=True):
        tensor = inputs[at] if at < len(inputs) else None
        if name and tensor is not None and tensor.rank == 4:  # by head already
            parts.append(name)
            continue
        moved = c("Add", name, own) if own else name
        parts.append(by_head(c, moved, heads, size // heads))
    q, k, v = parts
    keys = n
    if query.rank != 5:
        extents = given(inputs[1]).extents
        keys = extents[2] if len(extents) == 4 else extents[1]
    if past_key:
        keys += given(inputs[6]).extents[2]
        k, v = c("Concat", past_key, k, axis=2), c("Concat", past_value, v, axis=2)
    attended = Heads(q, k, v, batch, n, keys, width)
    masks = _mask(c, node, Operand.of(node, inputs, 4), attended, query.dtype)
    y = _attend(c, node, attended, masks, added, query.dtype)
    return c.body(node.inputs, (together(c, y, sizes[2]), k, v))


def by_head(c: Composer, x: str, heads: int, size: int) -> str:
    """[b, n, heads * size] -> [b, heads, n, size]"""
    return c("Transpose", c("Reshape", x, c.integers(0, 0, heads, size)), perm=(0, 2, 1, 3))


def together(c: Composer, y: str, width: int) -> str:
    """[b, heads, n, size] -> [b, n, width]"""
    return c("Reshape", c("Transpose", y, perm=(0, 2, 1, 3)), c.integers(0, 0, width))


def _unpack(c: Composer, x: str, count: int) -> list[str]:
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


def _mask(c: Composer, node: Node, given_mask: Operand, h: Heads, dtype: np.dtype) -> list[str]:
    """What masks add to the scores: of keys that come later, and of those that an input hides.

    The input is int32: [b] lengths; [2b] ends, then starts; [b, keys], or [b, n, keys], 1 or 0.
    """
    found = []
    zero: str = c.constant(0.0, dtype)
    queries, keys = c.extent(h.q, 2), c.extent(h.k, 2)
    if node.get("unidirectional"):
        own = c("Add", c.count_up(queries), c("Sub", keys, queries))
        later = c("Greater", c.count_up(keys), c("Unsqueeze", own, c.integers(1)))
        least = c.constant(np.finfo(dtype).min, dtype)
        found.append(c("Where", later, least, zero))
    mask = given_mask.type
    if mask is None:
        return found
    name = c("Cast", given_mask.name, to=TensorProto.INT32)
    if mask.rank == 1:
        counts = _within_lengths(c, name, mask, h)
    elif mask.rank in (2, 3):
        expected = (h.batch, *((h.queries,) if mask.rank == 3 else ()), h.keys)
        require_shape(mask, "the mask", expected)
        name = c("Unsqueeze", name, c.integers(*((1,) if mask.rank == 3 else (1, 2))))
        counts = c("Greater", name, c.constant(np.int32(0)))
    else:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: a mask of shape {mask.shape} is not supported; give lengths "
            f"or a mask of shape {(h.batch, h.keys)}"
        )
    hidden = c.constant(node.get("mask_filter_value", -10000.0), dtype)
    found.append(c("Where", counts, zero, hidden))
    return found


def _within_lengths(c: Composer, mask: str, type: Tensor, h: Heads) -> str:
    """Which keys are in front of a row's end, and not in front of its start: bool[b, 1, 1, keys]"""
    is_pair = are_equal(type.extents[0], 2 * h.batch) and not are_equal(h.batch, 0)
    parts = 2 if is_pair else 1
    require_same(type.extents[0], parts * h.batch, "length of the mask", "give a length a row")
    rows = c("Reshape", mask, c.extents(parts, c.extent(h.q, 0), 1, 1, 1))
    ends, *starts = (c("Gather", rows, c.constant(np.int64(k)), axis=0) for k in range(parts))
    position = c("Cast", c.count_up(c.extent(h.k, 2)), to=TensorProto.INT32)
    counts = c("Less", position, ends)
    for start in starts:
        counts = c("And", counts, c("GreaterOrEqual", position, start))
    return counts


def expand_rotary(node: Node, inputs: Operands) -> Body:
    """x[b, n, h] or [b, heads, n, size], positions[b, n] or [1], cos, sin -> as x

    One position is that of the first element of each sequence.
    """
    c, x, positions = Composer(), given(inputs[0]), given(inputs[1])
    if node.get("scale", 1.0) != 1.0 or node.get("is_packed_batching"):
        raise UnsupportedOp(f"RotaryEmbedding {node.name!r}: a scale or packing is not supported")
    width = fixed(given(inputs[2]).shape[1], "the last dimension of cos_cache")
    part, heads = int(node.get("rotary_embedding_dim", 0)), int(node.get("num_heads", 0))
    batch, n = (c.extent(node.inputs[0], k) for k in (0, 1 if x.rank == 3 else 2))
    where = node.inputs[1]
    if positions.rank == 1:
        where = c("Expand", c("Add", where, c.count_up(n)), c.extents(batch, n))
    attributes: dict[str, Any] = {
        "interleaved": int(node.get("interleaved", 0)),
        "rotary_embedding_dim": part,
    }
    if x.rank == 3:
        whole = fixed(x.shape[2], "the last dimension of input") if not heads else 0
        attributes["num_heads"] = heads or whole // (2 * width)
    y = c("RotaryEmbedding", node.inputs[0], *node.inputs[2:4], where, **attributes)
    return c.body(node.inputs, (y,))
