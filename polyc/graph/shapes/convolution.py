"""Convolution and its transpose."""

from __future__ import annotations

from polyc.graph.ir import Node, Shape, Tensor
from polyc.graph.shapes.checks import given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed, fixed_all
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.window import resolve_transposed_window, resolve_window


@shape_rule("Conv")
def infer_conv(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …), W (m, c / group, k…), B (m) -> (n, m, …)"""
    x, w, bias = given(inputs[0]), given(inputs[1]), inputs[2]
    kernel, group = _check_operands(node, x, w)
    maps, depth = fixed(w.shape[0], "output channels of W"), fixed(w.shape[1], "channels of W")
    _require_channels(x, depth * group, "input channels must equal weight channels * group")
    rule, way_out = "output channels must be a multiple of group", "change group or the weights"
    require(maps % group == 0, rule, f"a multiple of {group}", maps, way_out)
    require_shape(bias, "B", (maps,))
    return ((x.shape[0], maps, *resolve_window(node, x.shape[2:], kernel).output),)


@shape_rule("ConvTranspose")
def infer_conv_transpose(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …), W (c, m / group, k…), B (m) -> (n, m, …)"""
    x, w, bias = given(inputs[0]), given(inputs[1]), inputs[2]
    kernel, group = _check_operands(node, x, w)
    depth, maps = fixed(w.shape[0], "input channels of W"), fixed(w.shape[1], "maps of W") * group
    _require_channels(x, depth, "input channels must equal the first dimension of the weights")
    rule, way_out = "input channels must be a multiple of group", "change group or the weights"
    require(depth % group == 0, rule, f"a multiple of {group}", depth, way_out)
    require_shape(bias, "B", (maps,))
    return ((x.shape[0], maps, *resolve_transposed_window(node, x.shape[2:], kernel).output),)


def _check_operands(node: Node, x: Tensor, w: Tensor) -> tuple[tuple[int, ...], int]:
    """Ranks, kernel_shape and group, which Conv and ConvTranspose share -> kernel, group."""
    require_rank(x, "X", least=3)
    require_rank(w, "W", least=x.rank, most=x.rank)
    kernel, group = fixed_all(w.shape[2:], "an extent of the kernel"), int(node.get("group", 1))
    stated = tuple(node.get("kernel_shape", ())) or kernel
    way_out = "drop the attribute or correct it"
    require(stated == kernel, "kernel_shape must be W's", kernel, stated, way_out)
    return kernel, group


def _require_channels(x: Tensor, expected: int, rule: str) -> None:
    channels = fixed(x.shape[1], "input channels of X")
    way_out = "check the weights, group and the layout of X, which must be NCHW"
    require(channels == expected, rule, expected, channels, way_out)
