"""The models whose scops, schedule trees, loops and C are kept as text beside this file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyc import Graph, ops
from polyc.types.element_types import BFLOAT16

MODELS: dict[str, Callable[[], Graph]] = {}


def golden(build: Callable[[], Graph]) -> Callable[[], Graph]:
    MODELS[build.__name__] = build
    return build


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Small numbers, the same on every machine."""
    values = np.random.default_rng(seed).integers(-8, 9, shape)
    return (values / 8).astype(np.float32)


@golden
def matmul_bias_relu() -> Graph:
    x = ops.input("x", (33, 40))
    return Graph.of(y=ops.relu(ops.matmul(x, weights(40, 64)) + weights(64, seed=1)))


@golden
def conv_bn_relu_add() -> Graph:
    x, residual = ops.input("x", (1, 16, 9, 9)), ops.input("r", (1, 32, 9, 9))
    h = ops.conv(x, weights(32, 16, 1, 1), weights(32, seed=1))
    scale, shift, mean = weights(32, seed=2), weights(32, seed=3), weights(32, seed=4)
    h = ops.batch_normalization(h, scale, shift, mean, np.ones(32, np.float32))
    return Graph.of(y=ops.relu(h + residual))


@golden
def softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (256, 100)), axis=-1))


@golden
def layer_norm() -> Graph:
    x = ops.input("x", (256, 48))
    return Graph.of(y=ops.layer_normalization(x, weights(48), weights(48, seed=1)))


@golden
def depthwise_separable_conv() -> Graph:
    x = ops.input("x", (1, 16, 8, 8))
    h = ops.relu(ops.conv(x, weights(32, 16, 1, 1)))
    h = ops.relu(ops.conv(h, weights(32, 1, 3, 3), weights(32, seed=1), group=32))
    return Graph.of(y=ops.conv(h, weights(16, 32, 1, 1)))


@golden
def max_pool() -> Graph:
    x = ops.input("x", (1, 16, 9, 9))
    return Graph.of(y=ops.max_pool(x, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)))


@golden
def concat_of_convs() -> Graph:
    x = ops.input("x", (1, 16, 7, 7))
    a = ops.relu(ops.conv(x, weights(16, 16, 1, 1)))
    b = ops.relu(ops.conv(x, weights(32, 16, 1, 1, seed=1)))
    return Graph.of(y=ops.relu(ops.conv(ops.concat([a, b], axis=1), weights(16, 48, 1, 1, seed=2))))


@golden
def flatten_gemm() -> Graph:
    x = ops.input("x", (3, 8, 4, 5))
    h = ops.relu(ops.conv(x, weights(8, 8, 1, 1)))
    return Graph.of(y=ops.gemm(ops.flatten(h), weights(160, 20, seed=1), weights(20, seed=2)))


@golden
def bfloat16_vector_product() -> Graph:
    x = ops.input("x", (1, 48), "bfloat16")
    w = ops.constant(weights(48, 32).astype(BFLOAT16))
    return Graph.of(y=ops.relu(ops.matmul(x, w) + weights(32, seed=1).astype(BFLOAT16)))
