"""GroupQueryAttention of com.microsoft: causal attention in which several queries share a key.

    y[b, h, i]  =  sum over j of softmax(scale q[b, h, i] · k[b, h / g, j] + …) v[b, h / g, j]

Each sequence of a batch has a length of its own, seqlens_k[b] + 1, of which the last n are new. The
new keys go behind the old ones, which lie in front, or in a buffer that is longer than needed:

    past[b, :, 0 .. end[b])  new[b, :, 0 .. n)  ->  present[b, :, 0 .. end[b] + n)

Query i is at position end[b] + i and sees what is not behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.expand.contrib.attention import by_head, together
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed
from polyc.types.element_types import limits

Operands = Sequence[Tensor | None]

_NOT_THERE = ("k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens")
_INPUTS = (
    *("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"),
    *("cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink", *_NOT_THERE),
)


@dataclass(frozen=True)
class _Call:
    """A node in the making: operands by name, "" where there is none.

    heads: of queries; keys: of keys and values; width: of a head. n: the new positions of each
    sequence, and end: where they begin, int64[b, 1].
    """

    c: Composer
    node: Node
    names: dict[str, str]
    types: dict[str, Tensor | None]
    heads: int
    keys: int
    width: int
    n: str
    end: str

    @property
    def dtype(self) -> np.dtype:
        return given(self.types["query"]).dtype


def expand_group_query(node: Node, inputs: Operands) -> Body:
    """(q, k, v, past of k, of v, lengths - 1, the largest length, cos, sin, …) -> y, k, v

    q[b, n, heads * d], or queries, keys and values beside each other; k and v[b, n, keys * d]; past
    and present[b, keys, length, d].
    """
    names = dict(zip(_INPUTS, (*node.inputs, *[""] * len(_INPUTS)), strict=False))
    types = dict(zip(_INPUTS, (*inputs, *[None] * len(_INPUTS)), strict=False))
    _refuse_what_is_not_there(node, names)
    c, query = Composer(), given(types["query"])
    require_rank(query, "query", 3, 3)
    heads, keys = (int(node.attributes[name]) for name in ("num_heads", "kv_num_heads"))
    way_out = "share each key among as many queries"
    require(heads % keys == 0, "num_heads", f"a multiple of {keys}", heads, way_out)
    columns = fixed(query.shape[2], "the last dimension of query")
    parts = heads if names["key"] else heads + 2 * keys
    require(columns % parts == 0, "last dimension of query", f"a multiple of {parts}", columns,
            "give each head as much")  # fmt: skip
    width = columns // parts
    n = c.extent(names["query"], 1)
    lengths = c("Reshape", c("Cast", names["seqlens_k"], to=TensorProto.INT64), c.integers(-1, 1))
    end = c("Sub", c("Add", lengths, c.constant(np.int64(1))), n)
    end = c("Max", end, c.constant(np.int64(0)))  # of a prompt that is padded, the first row
    call = _Call(c, node, names, types, heads, keys, width, n, end)
    q, k, v = _by_head(call)
    if node.get("do_rotary"):
        q, k = (_turn(call, x) for x in (q, k))
    k, v = (_append(call, new, names[f"past_{role}"]) for role, new in (("key", k), ("value", v)))
    y = together(c, _attend(call, q, k, v), heads * width)
    return c.body(node.inputs, (y, k, v))


def _refuse_what_is_not_there(node: Node, names: dict[str, str]) -> None:
    wanted = [name for name in _NOT_THERE if names[name]]
    wanted += [name for name in ("sliding_window_cache", "qk_output") if node.get(name)]
    if wanted:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: {', '.join(wanted)} is not supported; keep keys and values "
            "as floats in a cache of whole sequences"
        )
    for key, value in (("key", "value"), ("past_key", "past_value")):
        first, second = ("given" if names[role] else "absent" for role in (key, value))
        require(first == second, value, first, second, f"give {key} and {value}, or neither")


def _by_head(call: _Call) -> tuple[str, str, str]:
    """Queries, keys and values as [b, heads, n, width]."""
    c, names, heads, keys, width = call.c, call.names, call.heads, call.keys, call.width
    q, k, v = names["query"], names["key"], names["value"]
    if not k:
        sizes = c.integers(heads * width, keys * width, keys * width)
        q, k, v = c.several("Split", 3, q, sizes, axis=2)
    q = by_head(c, q, heads, width)
    return q, by_head(c, k, keys, width), by_head(c, v, keys, width)


def _positions(call: _Call) -> str:
    """Where the new elements of each sequence are: int64[b, n]"""
    return call.c("Add", call.end, call.c.count_up(call.n))


def _turn(call: _Call, x: str) -> str:
    """Queries or keys, turned by their positions."""
    c, names = call.c, call.names
    part = 2 * fixed(given(call.types["cos_cache"]).shape[1], "the last dimension of cos_cache")
    where = names["position_ids"] or _positions(call)
    return c(
        "RotaryEmbedding",
        x,
        names["cos_cache"],
        names["sin_cache"],
        where,
        interleaved=int(call.node.get("rotary_interleaved", 0)),
        rotary_embedding_dim=part if part != call.width else 0,
    )


def _append(call: _Call, new: str, past: str) -> str:
    """[b, keys, n, width] behind what is there, in a buffer as long as the longest or the old one.

    present[b, :, j]  =  new[b, :, j - end[b]]  if that is one of the n,  else  past[b, :, j]
    """
    c = call.c
    if not past:
        return new
    old, total = c.extent(past, 2), call.names["total_sequence_length"]
    total = c("Reshape", c("Cast", total, to=TensorProto.INT64), c.integers(1))
    length = c("Max", old, total)
    padding = c.extents(0, 0, 0, 0, 0, 0, c("Sub", length, old), 0)
    base = c("Pad", past, padding)
    apart = c("Sub", c.count_up(length), call.end)  # [b, length]
    zero, last = c.constant(np.int64(0)), c("Sub", call.n, c.integers(1))
    is_new = c("And", c("GreaterOrEqual", apart, zero), c("LessOrEqual", apart, last))
    taken = c("Unsqueeze", c("Min", c("Max", apart, zero), last), c.integers(2))
    rows = c("Transpose", new, perm=(0, 2, 1, 3))
    found = c("Transpose", c("GatherND", rows, taken, batch_dims=1), perm=(0, 2, 1, 3))
    return c("Where", c("Unsqueeze", is_new, c.integers(1, 3)), found, base)


def _attend(call: _Call, q: str, k: str, v: str) -> str:
    """[b, heads, n, width]; the queries of one key are rows of one product."""
    c, node, dtype = call.c, call.node, call.dtype
    batch, length = c.extent(q, 0), c.extent(k, 2)
    grouped = c.extents(batch, call.keys, -1, call.width)
    apart = c.extents(batch, call.heads, call.n, length)
    scale = node.get("scale") or 1 / math.sqrt(call.width)
    turned = c("Transpose", k, perm=(0, 1, 3, 2))
    scores = c("Reshape", c("MatMul", c("Reshape", q, grouped), turned), apart)
    scores = c("Mul", scores, c.constant(scale, dtype))
    cap = float(node.get("softcap", 0.0))
    if cap:
        ends = c.constant(cap, dtype)
        scores = c("Mul", c("Tanh", c("Div", scores, ends)), ends)
    bias = call.names["attention_bias"]
    if bias:
        beyond = c("Sub", length, c.extent(bias, 3))  # in a buffer that is longer than needed
        bias = c("Pad", bias, c.extents(0, 0, 0, 0, 0, 0, 0, beyond))
        scores = c("Add", scores, bias)
    scores = c("Where", _is_seen(call, length), scores, c.constant(limits(dtype)[0], dtype))
    weights = _weigh(call, scores, batch, length)
    weights = c("Reshape", weights, c.extents(batch, call.keys, -1, length))
    y = c("MatMul", weights, v)
    return c("Reshape", y, c.extents(batch, call.heads, call.n, call.width))


def _weigh(call: _Call, scores: str, batch: str, length: str) -> str:
    """Softmax over the keys, and one more of no value, if there is a sink."""
    c, sink = call.c, call.names["head_sink"]
    if not sink and not call.node.get("smooth_softmax"):
        return c("Softmax", scores, axis=-1)
    one = c("Reshape", sink, c.integers(1, -1, 1, 1)) if sink else c.constant(0, call.dtype)
    column = c("Expand", one, c.extents(batch, call.heads, call.n, 1))
    weights = c("Softmax", c("Concat", scores, column, axis=-1), axis=-1)
    return c("Slice", weights, c.integers(0), length, c.integers(3))


def _is_seen(call: _Call, length: str) -> str:
    """Which keys a query sees: bool[b, 1, n, length]

    Those up to its own position, and of these the nearest, its own among them, if it looks no
    further than a window; of attention that is not causal, all that the sequence has.
    """
    c, node = call.c, call.node
    key = c.count_up(length)
    if not node.get("causal", 1):
        ends = c("Add", call.end, call.n)
        return c("Unsqueeze", c("Less", key, ends), c.integers(1, 2))
    own = c("Unsqueeze", _positions(call), c.integers(2))
    seen = c("LessOrEqual", key, own)
    window = int(node.get("local_window_size", -1))
    if window > 0:
        last_hidden = c("Sub", own, c.constant(np.int64(window)))
        seen = c("And", seen, c("Greater", key, last_hidden))
    return c("Unsqueeze", seen, c.integers(1))
