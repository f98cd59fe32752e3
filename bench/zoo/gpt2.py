"""GPT-2 (Radford et al., 2019) with a cache, as transformers' GPT2LMHeadModel is exported.

The exporter gives keys and values of earlier tokens as inputs, and returns them with those of the
new tokens behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.zoo.network import Example, Network

EPSILON = 1e-5


@dataclass(frozen=True)
class Gpt2:
    """Sizes of a decoder; the defaults are the smallest GPT-2, of 124 million parameters.

    tokens, past: new tokens and cached ones of the example; the model takes any number.
    """

    tokens: int = 1
    past: int = 512
    layers: int = 12
    heads: int = 12
    width: int = 768
    vocabulary: int = 50257
    positions: int = 1024

    @property
    def states(self) -> dict[str, str]:
        """Inputs that are outputs of the call before."""
        return {
            f"past.{layer}.{kind}": f"present.{layer}.{kind}"
            for layer in range(self.layers)
            for kind in ("key", "value")
        }


def gpt2(sizes: Gpt2 = Gpt2(), seed: int = 0) -> Example:
    """input_ids: int64 [1, tokens], past.*: float32 [1, heads, past, width / heads] -> logits
    [1, tokens, vocabulary], present.*: [1, heads, past + tokens, width / heads].
    """
    s, net = sizes, Network("gpt2", seed)
    ids = net.input("input_ids", [1, "tokens"], "int64")
    row = [1, s.heads, s.width // s.heads]
    cache = [net.input(name, [*row[:2], "past", row[2]]) for name in s.states]
    embedding = net.weight(net.normal([s.vocabulary, s.width], s.width), "wte")
    place = net.weight(net.normal([s.positions, s.width], 4 * s.width), "wpe")
    with net.scope("transformer"):
        positions, bias = _places(net, ids, cache[0])
        words = net.op("Gather", embedding, ids)
        hidden = net.op("Add", words, net.op("Gather", place, positions))
        present: list[str] = []
        for layer in range(s.layers):
            with net.scope(f"h.{layer}"):
                past = cache[2 * layer], cache[2 * layer + 1]
                hidden, kept = _layer(net, s, hidden, past, bias)
                present += kept
        hidden = net.layer_norm(hidden, s.width, EPSILON)
    logits = net.op("MatMul", hidden, net.op("Transpose", embedding, perm=[1, 0]))
    grown: list[int | str] = [*row[:2], "past + tokens", row[2]]
    results = {name: (kept, grown) for name, kept in zip(s.states.values(), present, strict=True)}
    model = net.finish({"logits": (logits, [1, "tokens", s.vocabulary]), **results})
    shape = [*row[:2], s.past, row[2]]
    feeds = {"input_ids": net.random.integers(0, s.vocabulary, [1, s.tokens])}
    feeds |= {name: net.normal(shape, 1) for name in s.states}
    return Example(model, feeds)


def _places(net: Network, ids: str, past: str) -> tuple[str, str]:
    """The positions of the new tokens [1, tokens], and 0 or -inf for [tokens, past + tokens]."""
    index = net.constant_index
    before = net.op("Gather", net.op("Shape", past), index(2), axis=0)
    new = net.op("Gather", net.op("Shape", ids), index(1), axis=0)
    after = net.op("Add", before, new)
    queries = net.op("Range", before, after, index(1))
    keys = net.op("Range", index(0), after, index(1))
    known = net.op(
        "LessOrEqual",
        net.op("Unsqueeze", keys, net.constant([0])),
        net.op("Unsqueeze", queries, net.constant([1])),
    )
    bias = net.op("Where", known, net.constant(0.0), net.constant(float("-inf")))
    return net.op("Unsqueeze", queries, net.constant([0])), bias


def _layer(
    net: Network, s: Gpt2, x: str, past: tuple[str, str], bias: str
) -> tuple[str, list[str]]:
    """(the hidden state behind a block, its keys and values)"""
    with net.scope("ln_1"):
        normed = net.layer_norm(x, s.width, EPSILON)
    with net.scope("attn"):
        mixed, kept = _attention(net, s, normed, past, bias)
    x = net.op("Add", mixed, x)
    with net.scope("ln_2"):
        normed = net.layer_norm(x, s.width, EPSILON)
    with net.scope("mlp"):
        inner = _gelu(net, net.matmul(normed, s.width, 4 * s.width))
        return net.op("Add", x, net.matmul(inner, 4 * s.width, s.width)), kept


def _attention(
    net: Network, s: Gpt2, x: str, past: tuple[str, str], bias: str
) -> tuple[str, list[str]]:
    size = s.width // s.heads
    parts = net.ops(
        "Split", net.matmul(x, s.width, 3 * s.width), net.constant([s.width] * 3),
        outputs=3, axis=2,
    )  # fmt: skip
    split = net.constant([0, 0, s.heads, size])
    apart = partial(net.op, "Transpose", perm=[0, 2, 1, 3])
    query, key, value = (apart(net.op("Reshape", part, split)) for part in parts)
    keys = net.op("Concat", past[0], key, axis=2)
    values = net.op("Concat", past[1], value, axis=2)
    turned = net.op("Transpose", keys, perm=[0, 1, 3, 2])
    scores = net.op("Div", net.op("MatMul", query, turned), net.constant(size**0.5))
    weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
    mixed = apart(net.op("MatMul", weights, values))
    joined = net.op("Reshape", mixed, net.constant([0, 0, s.width]))
    return net.matmul(joined, s.width, s.width), [keys, values]


def _gelu(net: Network, x: str) -> str:
    """x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in the nodes of the exporter."""
    cube = net.op("Mul", net.op("Pow", x, net.constant(3.0)), net.constant(0.044715))
    inside = net.op("Mul", net.op("Add", x, cube), net.constant(float(np.sqrt(2 / np.pi))))
    raised = net.op("Add", net.op("Tanh", inside), net.constant(1.0))
    return net.op("Mul", net.op("Mul", x, net.constant(0.5)), raised)
