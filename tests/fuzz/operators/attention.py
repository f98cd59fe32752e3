"""Attention, and what goes with it."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import BOOL, Rejected, Value


@operator("Attention", weight=1)
def attention(b: Builder, op: str) -> object:
    """With grouped heads, masks, a past, and in both layouts."""
    if b.traits.opset < 23:
        raise Rejected("newer")
    batch, kv_heads = b.integer(1, 2), b.integer(1, 3)
    heads = kv_heads * b.integer(1, 2)
    width, value_width = b.one_of((4, 8, 16, 5)), b.one_of((4, 8, 3))
    queries, keys = b.size() or 1, b.size() or 1
    dtype = b.float_type()
    flat = b.chance(0.3)
    q = _heads(b, dtype, flat, batch, heads, queries, width)
    k = _heads(b, dtype, flat, batch, kv_heads, keys, width)
    v = _heads(b, dtype, flat, batch, kv_heads, keys, value_width)
    causal = int(b.chance(0.3))
    past = b.chance(0.2)
    earlier = b.integer(1, 5) if past else 0
    mask = None
    if b.chance(0.4):
        shape = b.one_of(((queries, keys), (batch, 1, queries, keys), (1, 1, queries, keys)))
        mask = _mask(b, (*shape[:-1], keys + earlier), dtype, causal)
    inputs: list[Value | None] = [q, k, v, mask]
    if past:
        inputs += [b.make((batch, kv_heads, earlier, w), dtype) for w in (width, value_width)]
    counts = {"q_num_heads": heads, "kv_num_heads": kv_heads} if flat else {}
    return b.add(
        op, inputs, Kind.SUM, outputs=3 if past else 1, is_causal=causal,
        scale=0.375 if b.chance(0.3) else None, softcap=2.0 if b.chance(0.2) else None, **counts,
    )  # fmt: skip


def _heads(
    b: Builder, dtype: np.dtype, flat: bool, batch: int, heads: int, rows: int, width: int
) -> Value:
    shape = (batch, rows, heads * width) if flat else (batch, heads, rows, width)
    return b.pick((dtype,), shape=shape, fresh=0.6)


def _mask(b: Builder, shape: tuple[int, ...], dtype: np.dtype, causal: int) -> Value:
    """A mask that leaves each row something: its first key."""
    if b.traits.symbolic or b.chance(0.5):
        return b.make(shape, dtype)
    kept = b.rng.random(shape) < 0.7
    kept[..., 0] = True
    return b.feed([kept.astype(BOOL)])


@operator("RotaryEmbedding", weight=0.5)
def rotary(b: Builder, op: str) -> object:
    """With positions, or without."""
    if b.traits.opset < 23:
        raise Rejected("newer")
    batch, heads, rows, half = b.integer(1, 2), b.integer(1, 3), b.size() or 1, b.integer(1, 4)
    dtype = b.float_type()
    x = b.make((batch, heads, rows, 2 * half), dtype)
    inputs = [x]
    if b.chance(0.5):
        table = (b.integer(rows, rows + 5), half)
        inputs += [b.make(table, dtype, low=-1, high=1) for _ in "cs"]
        inputs.append(b.make((batch, rows), np.int64, low=0, high=min(table[0], rows) - 1))
    else:
        inputs += [b.make((batch, rows, half), dtype, low=-1, high=1) for _ in "cs"]
    return b.add(op, inputs, Kind.SUM, interleaved=b.integer(0, 1))
