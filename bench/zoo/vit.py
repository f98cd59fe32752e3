"""The vision transformer (Dosovitskiy et al., 2020) as timm's is exported."""

from __future__ import annotations

from dataclasses import dataclass

from bench.zoo.network import Example, Network

EPSILON = 1e-6


@dataclass(frozen=True)
class Vit:
    """Sizes; the defaults are ViT-base on 224 x 224 pixels in patches of 16 x 16."""

    pixels: int = 224
    patch: int = 16
    layers: int = 12
    heads: int = 12
    width: int = 768
    inner: int = 3072
    classes: int = 1000

    @property
    def tokens(self) -> int:
        """Patches, and the class token."""
        return (self.pixels // self.patch) ** 2 + 1


def vit(sizes: Vit = Vit(), seed: int = 0, fused_norms: bool = True) -> Example:
    """A picture [1, 3, pixels, pixels] -> logits [1, classes]."""
    s, net = sizes, Network("vit", seed, fused_norms)
    shape = [1, 3, s.pixels, s.pixels]
    x = _embed(net, s, net.input("x", shape))
    for layer in range(s.layers):
        with net.scope(f"blocks.{layer}"):
            x = _block(net, s, x)
    with net.scope("norm"):
        x = net.layer_norm(x, s.width, EPSILON)
    first = net.op("Gather", x, net.constant_index(0), axis=1)
    with net.scope("head"):
        logits = net.gemm(first, s.width, s.classes)
    model = net.finish({"logits": (logits, [1, s.classes])})
    return Example(model, {"x": net.random.standard_normal(shape).astype("float32")})


def _embed(net: Network, s: Vit, x: str) -> str:
    """[1, 3, pixels, pixels] -> [1, tokens, width]."""
    with net.scope("patch_embed"):
        x = net.conv(x, (3, s.width), s.patch, s.patch)
        x = net.op("Reshape", x, net.constant([1, s.width, s.tokens - 1]))
        x = net.op("Transpose", x, perm=[0, 2, 1])
    x = net.op("Concat", net.weight(net.normal([1, 1, s.width], 1), "cls_token"), x, axis=1)
    return net.op("Add", x, net.weight(net.normal([1, s.tokens, s.width], 4), "pos_embed"))


def _block(net: Network, s: Vit, x: str) -> str:
    with net.scope("norm1"):
        y = net.layer_norm(x, s.width, EPSILON)
    with net.scope("attn"):
        x = net.op("Add", x, _attention(net, s, y))
    with net.scope("norm2"):
        y = net.layer_norm(x, s.width, EPSILON)
    with net.scope("mlp"):
        with net.scope("fc1"):
            y = net.gelu(net.matmul(y, s.width, s.inner))
        with net.scope("fc2"):
            y = net.matmul(y, s.inner, s.width)
    return net.op("Add", x, y)


def _attention(net: Network, s: Vit, x: str) -> str:
    """One product for queries, keys and values; they are split apart behind it."""
    size = s.width // s.heads
    with net.scope("qkv"):
        mixed = net.matmul(x, s.width, 3 * s.width)
    mixed = net.op("Reshape", mixed, net.constant([1, s.tokens, 3, s.heads, size]))
    mixed = net.op("Transpose", mixed, perm=[2, 0, 3, 1, 4])
    parts = net.ops("Split", mixed, net.constant([1, 1, 1]), outputs=3, axis=0)
    query, key, value = (net.op("Squeeze", p, net.constant([0])) for p in parts)
    scaled = net.op("Mul", query, net.constant(size**-0.5))
    scores = net.op("MatMul", scaled, net.op("Transpose", key, perm=[0, 1, 3, 2]))
    heads = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
    joined = net.op("Transpose", heads, perm=[0, 2, 1, 3])
    joined = net.op("Reshape", joined, net.constant([1, s.tokens, s.width]))
    with net.scope("proj"):
        return net.matmul(joined, s.width, s.width)
