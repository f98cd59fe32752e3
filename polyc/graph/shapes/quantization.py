"""Quantisation: element types of outputs, and which scale belongs to which element."""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node, Shape, Tensor
from polyc.graph.shapes.checks import given, require, require_shape
from polyc.graph.shapes.contraction import infer_matmul
from polyc.graph.shapes.convolution import infer_conv
from polyc.graph.shapes.dims import normalize_axis, require_same
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.signature import element_type


def scale_indices(node: Node, data: Tensor, scale: Tensor) -> tuple[str, ...]:
    """Where the scale of the element [i0, i1, …] lies: per tensor, per axis, or per block.

        scale ()          ->  ()
        scale (3,), axis 1 of (2, 3, 8)                   ->  ("i1",)
        scale (2, 3, 2), axis 2 of (2, 3, 8), blocks of 4 ->  ("i0", "i1", "floor(i2/4)")

    Raises RuleBroken for a scale whose shape is none of these.
    """
    if scale.shape in ((), (1,)):
        return ("0",) * scale.rank
    axis = normalize_axis(int(node.get("axis", 1)), data.rank)
    block = int(node.get("block_size", 0))
    if scale.rank == 1 and not block:
        rule, way_out = "extent of the scale", "one scale for each position along the axis"
        require_same(scale.shape[0], data.shape[axis], rule, way_out)
        return (f"i{axis}",)
    require(block > 0, "block_size", "a positive number", block, "say how long a block is")
    expected = (*data.shape[:axis], -(-data.shape[axis] // block), *data.shape[axis + 1 :])
    require_shape(scale, "the scale", expected)
    return tuple(f"floor(i{k}/{block})" if k == axis else f"i{k}" for k in range(data.rank))


def _quantized_type(node: Node, inputs: Inputs) -> np.dtype:
    code = int(node.get("output_dtype", 0))
    return element_type(code) if code else np.dtype(np.uint8)


def _restored_type(node: Node, inputs: Inputs) -> np.dtype:
    code = int(node.get("output_dtype", 0))
    return element_type(code) if code else given(inputs[1]).dtype


def _infer_linear(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """x (s), scale, zero point of the scale's shape -> (s)"""
    data, scale, zero = given(inputs[0]), given(inputs[1]), inputs[2]
    scale_indices(node, data, scale)
    if zero is not None:
        way_out = "one zero point for each scale"
        same = zero.shape == scale.shape or {zero.shape, scale.shape} == {(), (1,)}
        require(same, "shape of the zero point", scale.shape, zero.shape, way_out)
    return (data.shape,)


shape_rule("QuantizeLinear", dtype=_quantized_type)(_infer_linear)
shape_rule("DequantizeLinear", dtype=_restored_type)(_infer_linear)


@shape_rule("MatMulInteger")
def infer_matmul_integer(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """A (…, m, k), B (…, k, n) -> (…, m, n)"""
    return infer_matmul(node, inputs[:2])


@shape_rule("QLinearMatMul")
def infer_qlinear_matmul(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """a (…, m, k), b (…, k, n), with scale and zero point behind each -> (…, m, n)"""
    return infer_matmul(node, (inputs[0], inputs[3]))


@shape_rule("ConvInteger")
def infer_conv_integer(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """x (n, c, …), w (m, c / group, k…) -> (n, m, …)"""
    return infer_conv(node, (inputs[0], inputs[1], None))


@shape_rule("QLinearConv")
def infer_qlinear_conv(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """x (n, c, …), w (m, c / group, k…), B (m), with scales and zero points -> (n, m, …)"""
    return infer_conv(node, (inputs[0], inputs[3], inputs[8]))
