"""Networks in miniature, on odd sizes: what well-known ones are made of, a few layers each."""

from __future__ import annotations

import numpy as np
from onnx.reference import ReferenceEvaluator

from polyc import Graph, ops
from polyc.graph.builder import Value
from polyc.graph.onnx.export import export_onnx


class Weights:
    """Random weights in order, scaled so that signals keep their size."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, *shape: int) -> np.ndarray:
        fan_in = max(1, int(np.prod(shape[1:], dtype=np.int64)))
        return (self.rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.5, 1.5, shape).astype(np.float32)


def conv_bn(w: Weights, x: Value, out: int, kernel: int = 1, **attributes: object) -> Value:
    channels, group = x.shape[1], int(attributes.get("group", 1))
    assert isinstance(channels, int)
    pads = (kernel // 2,) * 4
    y = ops.conv(x, w(out, channels // group, kernel, kernel), pads=pads, **attributes)
    scale, shift, mean, variance = w.positive(out), w(out), w(out), w.positive(out)
    return ops.batch_normalization(y, scale, shift, mean, variance)


def resnet() -> Graph:
    """Stem with max pooling, a bottleneck with projection and stride, one without, a classifier."""
    w = Weights()
    x = ops.input("x", (1, 3, 37, 41))
    h = ops.relu(conv_bn(w, x, 10, 7, strides=(2, 2)))
    h = ops.max_pool(h, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    for stride, inner, outer in ((2, 6, 22), (1, 5, 22)):
        y = ops.relu(conv_bn(w, h, inner))
        y = ops.relu(conv_bn(w, y, inner, 3, strides=(stride, stride)))
        y = conv_bn(w, y, outer)
        same = stride == 1
        h = ops.relu(y + (h if same else conv_bn(w, h, outer, strides=(stride, stride))))
    h = ops.flatten(ops.global_average_pool(h))
    return Graph.of(y=ops.gemm(h, w(22, 13), w(13)))


def inception() -> Graph:
    """Four branches of different kernels, concatenated, twice."""
    w = Weights()
    h = ops.input("x", (1, 9, 15, 11))
    for _ in range(2):
        one = ops.relu(conv_bn(w, h, 7))
        three = ops.relu(conv_bn(w, ops.relu(conv_bn(w, h, 5)), 17, 3))
        five = ops.relu(conv_bn(w, ops.relu(conv_bn(w, h, 3)), 4, 5))
        pooled = ops.max_pool(h, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
        h = ops.concat([one, three, five, ops.relu(conv_bn(w, pooled, 6))], axis=1)
    return Graph.of(y=h)


def densenet() -> Graph:
    """Each layer reads all before it; a transition with average pooling."""
    w = Weights()
    h = ops.input("x", (2, 6, 13, 9))
    for _ in range(3):
        scale, shift, mean = (w(int(h.shape[1])) for _ in range(3))
        y = ops.relu(ops.batch_normalization(h, scale, shift, mean, w.positive(int(h.shape[1]))))
        y = ops.conv(y, w(5, int(h.shape[1]), 3, 3), pads=(1, 1, 1, 1))
        h = ops.concat([h, y], axis=1)
    h = ops.average_pool(ops.relu(conv_bn(w, h, 11)), kernel_shape=(2, 2), strides=(2, 2))
    return Graph.of(y=h)


def mobilenet() -> Graph:
    """Inverted residuals: expand, depthwise, project."""
    w = Weights()
    h = ops.input("x", (1, 8, 15, 13))
    for stride, residual in ((1, True), (2, False)):
        y = ops.clip(conv_bn(w, h, 27), 0.0, 6.0)
        y = ops.clip(conv_bn(w, y, 27, 3, group=27, strides=(stride, stride)), 0.0, 6.0)
        y = conv_bn(w, y, 8)
        h = y + h if residual else y
    return Graph.of(y=ops.hard_swish(h))


def transformer() -> Graph:
    """Attention over 3 heads, a feed-forward layer with GELU, both with residual and layer norm."""
    w = Weights()
    batch, tokens, heads, size = 2, 11, 3, 7
    width = heads * size
    x = ops.input("x", (batch, tokens, width))

    def head(name: int) -> Value:
        h = ops.matmul(x, w(width, width)) + w(width)
        return ops.transpose(ops.reshape(h, (batch, tokens, heads, size)), (0, 2, 1, 3))

    query, key, value = (head(k) for k in range(3))
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) * np.float32(size**-0.5)
    mixed = ops.matmul(ops.softmax(scores, axis=-1), value)
    joined = ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (batch, tokens, width))
    h = ops.layer_normalization(
        x + ops.matmul(joined, w(width, width)), w.positive(width), w(width)
    )
    inner = ops.gelu(ops.matmul(h, w(width, 45)) + w(45))
    h = h + ops.matmul(inner, w(45, width))
    return Graph.of(y=ops.layer_normalization(h, w.positive(width), w(width)))


def chain(layers: int) -> Graph:
    """Equal layers one after the other."""
    w = Weights()
    h = ops.input("x", (5, 24))
    for _ in range(layers):
        h = ops.relu(ops.matmul(h, w(24, 24)) + w(24))
    return Graph.of(y=h)


def feeds(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {name: graph.tensor(name).shape for name in graph.inputs}
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def reference(graph: Graph) -> np.ndarray:
    """The output by onnx's reference evaluator."""
    (result,) = ReferenceEvaluator(export_onnx(graph)).run(None, feeds(graph))
    return np.asarray(result)
