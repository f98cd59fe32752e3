"""Networks that are trained on scikit-learn's digits when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

import polyc
from polyc import Graph, ops
from tests.compression.autodiff import Var, conv, depthwise, normalise, relu, softmax, train
from tests.sampling import sampled

BATCH = 50
"""Images of a call."""


@cache
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(images to train with [n, 1, 8, 8], their labels, images to test with, theirs)"""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], found.target[order]
    return images[:1297], labels[:1297], images[1297:], labels[1297:]


def samples(count: int = 8) -> Iterator[np.ndarray]:
    """Batches of images that networks were trained with."""
    images = digits()[0]
    for k in range(count):
        yield images[k * BATCH : (k + 1) * BATCH]


def accuracy(run) -> float:
    """The share of the test's images that `run` recognises, called batch by batch."""
    _, _, images, labels = digits()
    found = [run(images[k : k + BATCH]).argmax(-1) for k in range(0, len(images), BATCH)]
    return float((np.concatenate(found) == labels).mean())


def _draw(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Weights, of a size by the extent that a product sums over; shifts of zero."""
    rng = np.random.default_rng(1)
    return {
        k: (
            np.zeros(s, np.float32)
            if len(s) == 1
            else (rng.standard_normal(s) * np.sqrt(2 / s[-1 if k[0] == "c" else 0])).astype("f4")
        )
        for k, s in shapes.items()
    }


@cache
def cnn() -> Graph:
    """Two convolutions, a residual block, a classifier."""
    shapes = {"c1": (12, 9), "c2": (24, 108), "c3": (24, 216), "w": (24, 10)}
    shapes |= {"b1": (12,), "b2": (24,), "b3": (24,), "b": (10,)}

    def forward(v: dict[str, Var], x: np.ndarray) -> Var:
        h = relu(conv(Var(x), v["c1"], v["b1"]))
        h = relu(conv(h, v["c2"], v["b2"], 2))
        h = relu(conv(h, v["c3"], v["b3"]) + h)
        return h.sum(2, 3) * Var(np.float32(1 / 16)) @ v["w"] + v["b"]

    images, labels, *_ = digits()
    w = train(forward, _draw(shapes), images, labels, 15, 1e-2)

    def layer(x, k: str, stride: int = 1):
        weights = w[f"c{k}"].reshape(len(w[f"c{k}"]), -1, 3, 3)
        return ops.conv(x, weights, w[f"b{k}"], pads=(1,) * 4, strides=(stride,) * 2)

    h = ops.relu(layer(ops.input("x", (BATCH, 1, 8, 8)), "1"))
    h = ops.relu(layer(h, "2", 2))
    h = ops.relu(layer(h, "3") + h)
    h = ops.flatten(ops.global_average_pool(h))
    return Graph.of(y=ops.gemm(h, w["w"], w["b"]))


@cache
def separable(spread: float = 0.0) -> Graph:
    """Depthwise and pointwise convolutions, as in MobileNet.

    spread: channels between two of them are scaled by up to 2^spread, or its inverse, and the
    weights behind by what undoes it: the same network, but hard to store in bytes.
    """
    w = dict(_separable_weights())
    rng = np.random.default_rng(2)
    for first, bias, then in (("c0", "b0", "cd1"), ("cd1", "d1", "cp1"), ("cp1", "p1", "cd2")):
        scale = np.exp2(rng.uniform(-spread, spread, len(w[bias]))).astype(np.float32)
        w[first], w[bias] = w[first] * scale[:, None], w[bias] * scale
        w[then] = w[then] / (scale if then[1] == "p" else scale[:, None])
    pads = (1,) * 4
    x = ops.input("x", (BATCH, 1, 8, 8))
    h = ops.relu(ops.conv(x, w["c0"].reshape(-1, 1, 3, 3), w["b0"], pads=pads, strides=(2, 2)))
    for k in "12":
        deep, point = w[f"cd{k}"].reshape(-1, 1, 3, 3), w[f"cp{k}"][:, :, None, None]
        h = ops.relu(ops.conv(h, deep, w[f"d{k}"], pads=pads, group=len(deep)))
        h = ops.relu(ops.conv(h, point, w[f"p{k}"]))
    h = ops.flatten(ops.global_average_pool(h))
    return Graph.of(y=ops.gemm(h, w["w"], w["b"]))


@cache
def _separable_weights() -> dict[str, np.ndarray]:
    shapes = {"c0": (16, 9), "b0": (16,), "w": (32, 10), "b": (10,)}
    shapes |= {"cd1": (16, 9), "d1": (16,), "cp1": (32, 16), "p1": (32,)}
    shapes |= {"cd2": (32, 9), "d2": (32,), "cp2": (32, 32), "p2": (32,)}

    def forward(v: dict[str, Var], x: np.ndarray) -> Var:
        h = relu(conv(Var(x), v["c0"], v["b0"], 2))
        for k in "12":
            h = relu(depthwise(h, v[f"cd{k}"], v[f"d{k}"]))
            h = relu(conv(h, v[f"cp{k}"], v[f"p{k}"]))
        return h.sum(2, 3) * Var(np.float32(1 / 16)) @ v["w"] + v["b"]

    images, labels, *_ = digits()
    return train(forward, _draw(shapes), images, labels, 15, 1e-2)


WIDTH, HEADS, BLOCKS = 32, 4, 2


@cache
def transformer(spread: float = 0.0) -> Graph:
    """Rows of an image as 8 tokens; blocks of attention and of two layers, norms in front.

    spread: what a norm gives is scaled by channel as in `separable`, as large models come to be.
    """
    shapes: dict[str, tuple[int, ...]] = {"e": (8, WIDTH), "at": (8, WIDTH)}
    for k in range(BLOCKS):
        shapes |= {f"qkv{k}": (WIDTH, 3 * WIDTH), f"o{k}": (WIDTH, WIDTH)}
        shapes |= {f"up{k}": (WIDTH, 2 * WIDTH), f"ub{k}": (2 * WIDTH,)}
        shapes |= {f"down{k}": (2 * WIDTH, WIDTH), f"db{k}": (WIDTH,)}
    shapes |= {"w": (WIDTH, 10), "b": (10,)}
    size = WIDTH // HEADS
    less = np.float32(size**-0.5)

    def forward(v: dict[str, Var], x: np.ndarray) -> Var:
        n = len(x)
        h = Var(x[:, 0]) @ v["e"] + v["at"]
        for k in range(BLOCKS):
            parts = (normalise(h) @ v[f"qkv{k}"]).reshape(n, 8, 3, HEADS, size)
            parts = parts.transpose(2, 0, 3, 1, 4)
            q, key, value = (_pick(parts, p) for p in range(3))
            scores = q @ key.transpose(0, 1, 3, 2) * Var(less)
            mixed = (softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(n, 8, WIDTH)
            h = h + mixed @ v[f"o{k}"]
            h = h + relu(normalise(h) @ v[f"up{k}"] + v[f"ub{k}"]) @ v[f"down{k}"] + v[f"db{k}"]
        return normalise(h).sum(1) * Var(np.float32(1 / 8)) @ v["w"] + v["b"]

    images, labels, *_ = digits()
    w = dict(train(forward, _draw(shapes), images, labels, 16))
    zero, rng = np.zeros(WIDTH, np.float32), np.random.default_rng(2)
    one = np.exp2(rng.uniform(-spread, spread, WIDTH)).astype(np.float32)
    behind = [f"{k}{n}" for k in ("qkv", "up") for n in range(BLOCKS)] + ["w"]
    w |= {k: w[k] / one[:, None] for k in behind}

    def heads(x, order):
        return ops.transpose(ops.reshape(x, (BATCH, 8, HEADS, size)), perm=order)

    h = ops.reshape(ops.input("x", (BATCH, 1, 8, 8)), (BATCH, 8, 8)) @ w["e"] + w["at"]
    for k in range(BLOCKS):
        a = ops.layer_normalization(h, one, zero)
        q, key, value = np.split(w[f"qkv{k}"], 3, axis=1)
        scores = heads(a @ q, (0, 2, 1, 3)) @ heads(a @ key, (0, 2, 3, 1)) * less
        mixed = ops.softmax(scores) @ heads(a @ value, (0, 2, 1, 3))
        h = h + ops.reshape(ops.transpose(mixed, perm=(0, 2, 1, 3)), (BATCH, 8, WIDTH)) @ w[f"o{k}"]
        a = ops.layer_normalization(h, one, zero)
        h = h + ops.relu(a @ w[f"up{k}"] + w[f"ub{k}"]) @ w[f"down{k}"] + w[f"db{k}"]
    h = ops.reduce_mean(ops.layer_normalization(h, one, zero), axes=(1,), keepdims=0)
    return Graph.of(y=ops.gemm(h, w["w"], w["b"]))


def _pick(parts: Var, k: int) -> Var:
    def back(g: np.ndarray) -> np.ndarray:
        whole = np.zeros_like(parts.value)
        whole[k] = g
        return whole

    return Var(parts.value[k], [(parts, back)])


NETWORKS = {"cnn": cnn, "separable": separable, "transformer": transformer}

SAMPLED = sampled(NETWORKS, often=["cnn"])
"""The small one, and the others where time is not short."""


@cache
def compiled(name: str) -> polyc.CompiledModel:
    return polyc.compile(NETWORKS[name](), threads=1)
