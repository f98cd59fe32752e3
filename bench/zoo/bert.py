"""BERT (Devlin et al., 2018) as transformers' BertModel is exported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.zoo.network import Example, Network

EPSILON = 1e-12


@dataclass(frozen=True)
class Bert:
    """Sizes of an encoder; the defaults are BERT-base.

    dynamic: whether batch and tokens are known only at run time; up to `positions` tokens then.
    """

    tokens: int = 128
    layers: int = 12
    heads: int = 12
    width: int = 768
    inner: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    dynamic: bool = False

    @property
    def row(self) -> list[int | str]:
        return ["batch", "tokens"] if self.dynamic else [1, self.tokens]


def bert(sizes: Bert = Bert(), seed: int = 0, fused_norms: bool = True) -> Example:
    """input_ids, attention_mask, token_type_ids: int64 [1, tokens] -> the last hidden state
    [1, tokens, width], and the pooled first token [1, width].

    The last eighth of the mask is zero, as for a text that is shorter than its row.
    """
    s, net = sizes, Network("bert", seed, fused_norms)
    row = [1, s.tokens]
    ids, mask, kinds = (
        net.input(n, s.row, "int64") for n in ("input_ids", "attention_mask", "token_type_ids")
    )
    hidden = _embed(net, s, ids, kinds)
    bias = _mask_bias(net, mask)
    for layer in range(s.layers):
        with net.scope("encoder"), net.scope(f"layer.{layer}"):
            hidden = _layer(net, s, hidden, bias)
    with net.scope("pooler"):
        first = net.op("Gather", hidden, net.constant_index(0), axis=1)
        pooled = net.op("Tanh", net.gemm(first, s.width, s.width))
    model = net.finish(
        {
            "last_hidden_state": (hidden, [*s.row, s.width]),
            "pooler_output": (pooled, [s.row[0], s.width]),
        }
    )
    position = np.arange(s.tokens)[None]
    feeds = {
        "input_ids": net.random.integers(0, s.vocabulary, row),
        "attention_mask": (position < s.tokens - s.tokens // 8).astype(np.int64),
        "token_type_ids": (position >= s.tokens // 2).astype(np.int64),
    }
    return Example(model, feeds)


def _embed(net: Network, s: Bert, ids: str, kinds: str) -> str:
    """Words, kinds and positions; the exporter has folded the look-up of known positions."""
    with net.scope("embeddings"):
        words = net.op("Gather", net.weight(net.normal([s.vocabulary, s.width], 3)), ids)
        kind = net.op("Gather", net.weight(net.normal([2, s.width], 3)), kinds)
        rows = s.positions if s.dynamic else s.tokens
        position = net.weight(net.normal([1, rows, s.width], 3))
        if s.dynamic:
            last = net.op("Shape", ids, start=1, end=2)
            position = net.op("Slice", position, net.constant([0]), last, net.constant([1]))
        total = net.op("Add", net.op("Add", words, kind), position)
        return net.layer_norm(total, s.width, EPSILON)


def _mask_bias(net: Network, mask: str) -> str:
    """[1, tokens] of ones and zeros -> [1, 1, 1, tokens] of 0 and the lowest float32."""
    wide = net.op("Unsqueeze", mask, net.constant([1]))
    wide = net.op("Unsqueeze", wide, net.constant([2]))
    kept = net.op("Cast", wide, to=1)  # TensorProto.FLOAT
    dropped = net.op("Sub", net.constant(1.0), kept)
    return net.op("Mul", dropped, net.constant(float(np.finfo(np.float32).min)))


def _layer(net: Network, s: Bert, x: str, bias: str) -> str:
    with net.scope("attention"):
        mixed = _attention(net, s, x, bias)
        with net.scope("output"):
            mixed = net.matmul(mixed, s.width, s.width)
            x = net.layer_norm(net.op("Add", mixed, x), s.width, EPSILON)
    with net.scope("intermediate"):
        inner = net.gelu(net.matmul(x, s.width, s.inner))
    with net.scope("output"):
        outer = net.matmul(inner, s.inner, s.width)
        return net.layer_norm(net.op("Add", outer, x), s.width, EPSILON)


def _attention(net: Network, s: Bert, x: str, bias: str) -> str:
    size = s.width // s.heads
    kept = [0, 0] if s.dynamic else [1, s.tokens]  # 0: as it is

    def heads(name: str, order: list[int]) -> str:
        with net.scope(name):
            value = net.matmul(x, s.width, s.width)
        apart = net.op("Reshape", value, net.constant([*kept, s.heads, size]))
        return net.op("Transpose", apart, perm=order)

    with net.scope("self"):
        query = heads("query", [0, 2, 1, 3])
        key = heads("key", [0, 2, 3, 1])
        value = heads("value", [0, 2, 1, 3])
        scores = net.op("Div", net.op("MatMul", query, key), net.constant(size**0.5))
        weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
        mixed = net.op("Transpose", net.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        return net.op("Reshape", mixed, net.constant([*kept, s.width]))
