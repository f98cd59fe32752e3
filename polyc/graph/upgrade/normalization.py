"""Normalisation, Dropout, Gemm and recurrent layers: training leaves, groups become channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import (
    Context,
    Rules,
    constant,
    drop,
    helper,
    integers,
    refuse,
    to_inputs,
    trim,
    without_attributes,
)


def refuse_training_outputs(node: Node, context: Context) -> list[Node]:
    """y = BatchNormalization(…; is_test) -> y = BatchNormalization(…), when only y is asked for."""
    outputs = trim(node.outputs)
    if len(outputs) != 1:
        refuse(node, "it asks for the statistics of training")
    return [replace(without_attributes(node, "is_test"), outputs=outputs)]


def normalise_per_element(node: Node, context: Context) -> list[Node]:
    """BatchNormalization(x, s, b, m, v; spatial=0) -> (x - m) / sqrt(v + eps) * s + b.

    With spatial=0 the statistics have the shape of one whole sample, not of its channels.
    """
    plain = without_attributes(node, "spatial")
    if node.get("spatial", 1):
        return [plain]
    dtype = context.type_of(node, 0).dtype
    x, scale, bias, mean, variance = node.inputs
    names = ("epsilon", "safe", "deviation", "centred", "unit", "scaled")
    epsilon, safe, deviation, centred, unit, scaled = (context.fresh(node, n) for n in names)
    return [
        constant(epsilon, np.array(node.get("epsilon", 1e-5), dtype)),
        helper(node, "Add", (variance, epsilon), safe),
        helper(node, "Sqrt", (safe,), deviation),
        helper(node, "Sub", (x, mean), centred),
        helper(node, "Div", (centred, deviation), unit),
        helper(node, "Mul", (unit, scale), scaled),
        Node(node.name, "Add", (scaled, bias), (node.outputs[0],)),
    ]


def scale_per_channel(node: Node, context: Context) -> list[Node]:
    """GroupNormalization(x, s[G], b[G]) -> GroupNormalization(x, s[C], b[C]), each C/G times."""
    channels, groups = context.type_of(node, 0).shape[1], node.get("num_groups")
    if not isinstance(channels, int) or not groups or channels % groups:
        refuse(node, f"{channels} channels cannot be split into {groups} groups")
    x, *parameters = node.inputs
    axes, expanded, flat = (context.fresh(node, n) for n in ("axes", "expanded", "flat"))
    nodes = [
        constant(axes, integers(1)),
        constant(expanded, integers((groups, int(channels) // groups))),
        constant(flat, integers(-1)),
    ]
    repeated = []
    for name, role in zip(parameters, ("scale", "bias"), strict=True):
        column, table, vector = (context.fresh(node, f"{role}_{n}") for n in "ctv")
        nodes += [
            helper(node, "Unsqueeze", (name, axes), column),
            helper(node, "Expand", (column, expanded), table),
            helper(node, "Reshape", (table, flat), vector),
        ]
        repeated.append(vector)
    return [*nodes, replace(node, inputs=(x, *repeated))]


def refuse_training_dropout(node: Node, context: Context) -> list[Node]:
    """Dropout(x; is_test=1) -> Dropout(x); without is_test the old form draws random numbers.

    Unless its ratio is 0.
    """
    if not node.get("is_test", 0) and node.get("ratio", 0.5) != 0:
        refuse(node, "is_test=0 asks for training")
    return [without_attributes(node, "is_test")]


def mask_to_boolean(node: Node, context: Context) -> list[Node]:
    """y, m = Dropout(x) -> y, k = Dropout(x); m = Cast(k): the mask became boolean."""
    outputs = trim(node.outputs)
    if len(outputs) < 2:
        return [replace(node, outputs=outputs)]
    boolean = context.fresh(node, "mask")
    to = np_dtype_to_tensor_dtype(context.type_of(node, 0).dtype)
    return [
        replace(node, outputs=(outputs[0], boolean)),
        helper(node, "Cast", (boolean,), outputs[1], to=to),
    ]


def _scalar(value: float) -> np.ndarray:
    return np.array(value, np.float32)


_forget_reuse = drop("consumed_inputs")

RULES: Rules = {
    "BatchNormalization": (
        (6, _forget_reuse),
        (7, refuse_training_outputs),
        (9, normalise_per_element),
        (14, refuse_training_outputs),
    ),
    "Dropout": (
        (6, _forget_reuse),
        (7, refuse_training_dropout),
        (10, mask_to_boolean),
        (12, to_inputs(ratio=_scalar)),
    ),
    "Gemm": ((7, drop("broadcast")),),
    "GroupNormalization": ((21, scale_per_channel),),
    "InstanceNormalization": ((6, _forget_reuse),),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), ((7, drop("output_sequence")),)),
}
