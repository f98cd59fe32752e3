"""Small problems: one operator, or a few that belong together, as ONNX models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.problems import Problem
from bench.zoo.network import Example, Network

SQUARES = (32, 64, 100, 128, 192, 256, 333, 384, 512, 1000, 1023, 1024, 2048)
OBLONGS = ((64, 4096, 1024), (4096, 64, 1024), (1, 4096, 4096), (16, 16, 65536))
"""Rows, columns, and the length of the sums."""


@dataclass(frozen=True)
class ConvShape:
    """A convolution of `inputs` to `outputs` channels of size x size pixels, square kernel."""

    name: str
    inputs: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    group: int = 1


CONVOLUTIONS = (
    ConvShape("stem7x7-224", 3, 64, 224, 7, 2),
    *(ConvShape(f"conv3x3-{s}-{c}", c, c, s, 3) for s, c in ((56, 64), (28, 128))),
    *(ConvShape(f"conv3x3-{s}-{c}", c, c, s, 3) for s, c in ((14, 256), (7, 512))),
    ConvShape("conv3x3s2-56-128", 128, 128, 56, 3, 2),
    ConvShape("conv1x1-56-64", 64, 256, 56, 1),
    ConvShape("conv1x1-28-512", 512, 128, 28, 1),
    ConvShape("conv1x1-7-2048", 2048, 512, 7, 1),
    ConvShape("depthwise3x3-56-144", 144, 144, 56, 3, 1, 144),
    ConvShape("depthwise7x7-56-96", 96, 96, 56, 7, 1, 96),
)


def micro_problems() -> Iterator[Problem]:
    for n in SQUARES:
        yield Problem(f"gemm-{n}", "gemm", partial(gemm, n, n, n), np.matmul)
    for m, n, k in OBLONGS:
        yield Problem(f"gemm-{m}x{n}x{k}", "gemm", partial(gemm, m, n, k), np.matmul)
    for shape in CONVOLUTIONS:
        yield Problem(shape.name, "conv", partial(conv, shape))
    for tokens in (128, 512):
        make = partial(attention, 12, tokens, 64)
        yield Problem(f"attention-{tokens}", "attention", make, numpy_attention)
    yield Problem("softmax-4096x1024", "rows", partial(softmax, 4096, 1024), numpy_softmax)
    yield Problem("layernorm-4096x768", "rows", partial(layer_norm, 4096, 768), numpy_layer_norm)
    for name, axes in (("rows", [1]), ("columns", [0]), ("all", [0, 1])):
        make, ours = partial(total, 4096, axes), partial(numpy_total, axes=tuple(axes))
        yield Problem(f"sum-{name}-4096", "sums", make, ours)
    yield Problem("relu-16", "call", relu, partial(np.maximum, np.float32(0)))
    yield Problem("gelu-16Mi", "elementwise", partial(gelu, 4096))
    yield Problem("silu-16Mi", "elementwise", partial(silu, 4096), numpy_silu)
    yield Problem("muladd-16Mi", "elementwise", partial(muladd, 4096), numpy_muladd)


def gemm(m: int, n: int, k: int) -> Example:
    """y = a b with a: m x k, b: k x n; neither is a constant."""
    net = Network("gemm", 0)
    a, b = _inputs(net, [m, k], "a"), _inputs(net, [k, n], "b")
    return _finish(net, net.op("MatMul", *a, *b), [m, n])


def conv(shape: ConvShape) -> Example:
    """With bias; as many pixels come out as go in, over the stride."""
    net = Network("conv", 0)
    s, out = shape, -(-shape.size // shape.stride)
    (x,) = _inputs(net, [1, s.inputs, s.size, s.size], "x")
    y = net.conv(x, (s.inputs, s.outputs), s.kernel, s.stride, s.kernel // 2, s.group)
    return _finish(net, y, [1, s.outputs, out, out])


def attention(heads: int, tokens: int, width: int) -> Example:
    """softmax(q kᵀ / sqrt(width)) v for [1, heads, tokens, width]."""
    net = Network("attention", 0)
    shape = [1, heads, tokens, width]
    q, k, v = _inputs(net, shape, "q", "k", "v")
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    scaled = net.op("Mul", scores, net.constant(width**-0.5))
    return _finish(net, net.op("MatMul", net.op("Softmax", scaled, axis=-1), v), shape)


def softmax(rows: int, columns: int) -> Example:
    net = Network("softmax", 0)
    (x,) = _inputs(net, [rows, columns], "x")
    return _finish(net, net.op("Softmax", x, axis=-1), [rows, columns])


def layer_norm(rows: int, columns: int) -> Example:
    """With scale and shift."""
    net = Network("layer_norm", 0)
    (x,) = _inputs(net, [rows, columns], "x")
    return _finish(net, net.layer_norm(x, columns, 1e-5), [rows, columns])


def total(n: int, axes: list[int]) -> Example:
    """The sum of an n x n matrix over some axes."""
    net = Network("total", 0)
    (x,) = _inputs(net, [n, n], "x")
    shape = [n for axis in range(2) if axis not in axes]
    example = _finish(net, net.op("ReduceSum", x, net.constant(axes), keepdims=0), shape)
    # Positive, or what is left of the sum is rounding.
    return Example(example.model, {name: np.abs(value) for name, value in example.feeds.items()})


def relu() -> Example:
    """Of 16 numbers: what a call costs."""
    net = Network("relu", 0)
    (x,) = _inputs(net, [16], "x")
    return _finish(net, net.op("Relu", x), [16])


def gelu(n: int) -> Example:
    """Of an n x n matrix, by Erf, as the exporter writes it."""
    net = Network("gelu", 0)
    (x,) = _inputs(net, [n, n], "x")
    return _finish(net, net.gelu(x), [n, n])


def silu(n: int) -> Example:
    """x sigmoid(x)"""
    net = Network("silu", 0)
    (x,) = _inputs(net, [n, n], "x")
    return _finish(net, net.op("Mul", x, net.op("Sigmoid", x)), [n, n])


def muladd(n: int) -> Example:
    """a b + c"""
    net = Network("muladd", 0)
    a, b, c = _inputs(net, [n, n], "a", "b", "c")
    return _finish(net, net.op("Add", net.op("Mul", a, b), c), [n, n])


def numpy_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    scores = q @ k.swapaxes(-1, -2)
    scores *= np.float32(1 / math.sqrt(q.shape[-1]))
    numpy_softmax(scores, scores)
    np.matmul(scores, v, out=out)


def numpy_softmax(x: np.ndarray, out: np.ndarray) -> None:
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)


def numpy_layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, out: np.ndarray) -> None:
    np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out)[:, None] / np.float32(x.shape[-1])
    out /= np.sqrt(variance + np.float32(1e-5))
    out *= scale
    out += shift


def numpy_total(x: np.ndarray, out: np.ndarray, axes: tuple[int, ...]) -> None:
    np.sum(x, axis=axes, out=out)


def numpy_silu(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += np.float32(1)
    np.divide(x, out, out=out)


def numpy_muladd(a: np.ndarray, b: np.ndarray, c: np.ndarray, out: np.ndarray) -> None:
    np.multiply(a, b, out=out)
    out += c


def _inputs(net: Network, shape: list[int], *names: str) -> list[str]:
    return [net.input(name, shape) for name in names]


def _finish(net: Network, value: str, shape: list[int]) -> Example:
    model = net.finish({"y": (value, shape)})
    feeds = {
        i.name: net.random.standard_normal(
            [d.dim_value for d in i.type.tensor_type.shape.dim], np.float32
        )
        for i in model.graph.input
    }
    return Example(model, feeds)
