"""Element-wise operators: how tensors are aligned, limits of Clip, names of types in Cast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import TensorProto

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import (
    Context,
    Rules,
    constant,
    default,
    drop,
    helper,
    in_turn,
    refuse,
    trim,
    with_attributes,
    without_attributes,
)


def align_legacy_operand(node: Node, context: Context) -> list[Node]:
    """Add(a, b; broadcast=1, axis=1) -> Add(a, Unsqueeze(b, (1, 2))) for a[N,C,H,W], b[C]."""
    plain = without_attributes(node, "broadcast", "axis")
    axis = node.get("axis")
    if not node.get("broadcast", 0) or axis is None:
        return [plain]
    rank, operand_rank = (context.type_of(node, i).rank for i in (0, 1))
    missing = rank - (axis % rank if rank else 0) - operand_rank
    if missing < 0:
        refuse(node, f"axis={axis} does not fit an operand of {operand_rank} dimensions")
    return _unsqueeze_right(plain, context, missing) if missing else [plain]


def align_slope(node: Node, context: Context) -> list[Node]:
    """PRelu(x, slope[C]) -> PRelu(x, slope[C,1,1]) for x[N,C,H,W]: a slope per channel."""
    rank, slope = context.type_of(node, 0).rank, context.type_of(node, 1)
    if slope.rank != 1 or slope.shape == (1,) or rank <= 2:
        return [node]
    return _unsqueeze_right(node, context, rank - 2)


def _unsqueeze_right(node: Node, context: Context, count: int) -> list[Node]:
    """op(a, b) -> op(a, b[..., 1, 1]) with `count` new dimensions at the end of b."""
    first, second = node.inputs
    start = context.type_of(node, 1).rank
    name = context.fresh(node, "aligned")
    axes = tuple(range(start, start + count))
    aligned = helper(node, "Unsqueeze", (second,), name, axes=axes)
    return [aligned, replace(node, inputs=(first, name))]


def clip_limits_to_inputs(node: Node, context: Context) -> list[Node]:
    """Clip(x; min=0, max=6) -> Clip(x, 0, 6) with constants of x's type."""
    dtype = context.type_of(node, 0).dtype
    limits = [
        constant(context.fresh(node, key), _saturated(node.attributes[key], dtype))
        if key in node.attributes
        else None
        for key in ("min", "max")
    ]
    names = (limit.outputs[0] if limit else "" for limit in limits)
    moved = replace(without_attributes(node, "min", "max"), inputs=trim((*node.inputs, *names)))
    return [*(limit for limit in limits if limit), moved]


def _saturated(value: float, dtype: np.dtype) -> np.ndarray:
    """The value in a floating type, ±infinity where the type cannot hold it (3.4e38 in float16)."""
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)


def cast_target_to_number(node: Node, context: Context) -> list[Node]:
    """Cast(x; to="FLOAT") -> Cast(x; to=1)."""
    name = str(node.get("to")).upper()
    if name not in dict(TensorProto.DataType.items()):
        refuse(node, f"{name!r} is no element type")
    return [with_attributes(node, to=TensorProto.DataType.Value(name))]


_UNARY = (
    "Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Neg", "Reciprocal",
    "Relu", "Sigmoid", "Sqrt", "Tanh", "Max", "Mean", "Min", "Sum",
)  # fmt: skip
_ARITHMETIC = ("Add", "Div", "Mul", "Sub")
_LOGICAL = ("And", "Equal", "Greater", "Less", "Or", "Pow", "Xor")
_forget_reuse = drop("consumed_inputs")

RULES: Rules = {
    **dict.fromkeys(_UNARY, ((6, _forget_reuse),)),
    **dict.fromkeys(_ARITHMETIC, ((6, _forget_reuse), (7, align_legacy_operand))),
    **dict.fromkeys(_LOGICAL, ((7, align_legacy_operand),)),
    "Cast": ((6, cast_target_to_number),),
    "Clip": ((6, _forget_reuse), (11, clip_limits_to_inputs)),
    "PRelu": ((6, _forget_reuse), (7, align_slope)),
    "Selu": ((6, in_turn(_forget_reuse, default(alpha=1.6732, gamma=1.0507))),),
}
