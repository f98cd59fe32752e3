"""Elementwise operators: the output has the input's shape, or the one that all broadcast to."""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import given, require
from polyc.graph.shapes.dims import broadcast_shapes, require_broadcast_to
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.signature import element_type
from polyc.types.element_types import bit_width

UNARY = (
    "Abs Neg Exp Log Sqrt Reciprocal Sign Floor Ceil Round Erf Not BitwiseNot IsNaN IsInf "
    "Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid "
    "Relu LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish Softplus Softsign "
    "ThresholdedRelu Swish Shrink Identity"
)

BROADCASTING = (
    "Add Sub Mul Div Mod Pow Max Min Sum Mean And Or Xor Equal Less LessOrEqual Greater "
    "GreaterOrEqual BitShift BitwiseAnd BitwiseOr BitwiseXor Where"
)


@shape_rule(*UNARY.split())
def infer_unary(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s"""
    return (given(inputs[0]).shape,)


@shape_rule(*BROADCASTING.split())
def infer_broadcasting(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, t, …) -> broadcast(s, t, …)"""
    return (broadcast_shapes(*(given(t).shape for t in inputs)),)


@shape_rule("PRelu")
def infer_prelu(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, slope that broadcasts to s) -> s"""
    x, slope = given(inputs[0]), given(inputs[1])
    require_broadcast_to(slope.shape, x.shape, "slope")
    return (x.shape,)


@shape_rule("Clip")
def infer_clip(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, scalar, scalar) -> s"""
    for bound, role in zip(inputs[1:], ("min", "max"), strict=True):
        if bound is not None:
            scalar = bound.shape in ((), (1,))
            require(scalar, f"shape of {role}", "a scalar", bound.shape, "use Max or Min instead")
    return (given(inputs[0]).shape,)


@shape_rule("Dropout")
def infer_dropout(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> (s, mask of shape s): inference; `graph/expand/random.py` writes training out"""
    shape = given(inputs[0]).shape
    return (shape, shape)


def _cast_type(node: Node, inputs: Inputs) -> np.dtype:
    return element_type(int(node.attributes["to"]))


@shape_rule("Cast", dtype=_cast_type)
def infer_cast(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s, of the element type that attribute `to` names"""
    return (given(inputs[0]).shape,)


@shape_rule("BitCast", dtype=_cast_type)
def infer_bit_cast(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s, of the element type that attribute `to` names, which is as wide"""
    x, target = given(inputs[0]), _cast_type(node, inputs)
    widths = bit_width(x.dtype), bit_width(target)
    require(widths[0] == widths[1], "bits of an element", *widths, "choose a type of that width")
    return (x.shape,)


@shape_rule("CastLike")
def infer_cast_like(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, any) -> s, of the second input's element type"""
    return (given(inputs[0]).shape,)
