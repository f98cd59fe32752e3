"""Normalizations and softmax: the output has the input's shape; parameters must fit it."""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed, normalize_axes, normalize_axis, require_broadcast_to
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.signature import element_type


@shape_rule("BatchNormalization")
def infer_batch_normalization(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …), four parameters (c) -> Y (n, c, …), and in training mode mean, variance (c)"""
    x = given(inputs[0])
    require_rank(x, "X", least=1)
    # A tensor of one dimension is a batch with a single channel.
    channels = x.shape[1:2] or (1,)
    for tensor, role in zip(inputs[1:], ("scale", "B", "input_mean", "input_var"), strict=True):
        require_shape(tensor, role, channels)
    training, count = bool(node.get("training_mode", 0)), len(node.outputs)
    rule, way_out = "outputs without training_mode", "drop the running statistics"
    require(training or not any(node.outputs[1:]), rule, 1, count, way_out)
    return (x.shape, channels, channels)


@shape_rule("InstanceNormalization")
def infer_instance_normalization(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …), scale (c), B (c) -> (n, c, …)"""
    x = given(inputs[0])
    require_rank(x, "input", least=3)
    require_shape(inputs[1], "scale", x.shape[1:2])
    require_shape(inputs[2], "B", x.shape[1:2])
    return (x.shape,)


@shape_rule("GroupNormalization")
def infer_group_normalization(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …), scale (c), bias (c) -> (n, c, …)"""
    x = given(inputs[0])
    require_rank(x, "X", least=2)
    require_shape(inputs[1], "scale", x.shape[1:2])
    require_shape(inputs[2], "bias", x.shape[1:2])
    channels, groups = fixed(x.shape[1], "channels of X"), int(node.attributes["num_groups"])
    fits = channels % groups == 0
    require(fits, "num_groups", f"a divisor of {channels}", groups, "change num_groups")
    return (x.shape,)


def _statistics_type(node: Node, inputs: Inputs) -> np.dtype:
    return element_type(int(node.get("stash_type", 1)))


@shape_rule("LayerNormalization", dtype=_statistics_type)
def infer_layer_normalization(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, …, d, …), scale, B -> Y like X; mean and 1 / deviation: 1 from `axis` on"""
    x, scale, bias = given(inputs[0]), given(inputs[1]), inputs[2]
    axis = normalize_axis(int(node.get("axis", -1)), x.rank)
    require_broadcast_to(scale.shape, x.shape, "Scale")
    if bias is not None:
        require_broadcast_to(bias.shape, x.shape, "B")
    statistics = (*x.shape[:axis], *(1 for _ in x.shape[axis:]))
    return (x.shape, statistics, statistics)


@shape_rule("RMSNormalization")
def infer_rms_normalization(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X, scale that broadcasts to X -> like X, of scale's element type"""
    x, scale = given(inputs[0]), given(inputs[1])
    normalize_axis(int(node.get("axis", -1)), x.rank)
    require_broadcast_to(scale.shape, x.shape, "scale")
    return (x.shape,)


@shape_rule("MeanVarianceNormalization")
def infer_mean_variance(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s"""
    x = given(inputs[0])
    normalize_axes(node.get("axes", (0, 2, 3)), x.rank)
    return (x.shape,)


@shape_rule("LRN")
def infer_lrn(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …) -> like X"""
    x = given(inputs[0])
    require_rank(x, "X", least=2)
    return (x.shape,)


@shape_rule("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
def infer_along_axis(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s"""
    x = given(inputs[0])
    require_rank(x, "input", least=1)
    normalize_axis(int(node.get("axis", -1)), x.rank)
    return (x.shape,)
