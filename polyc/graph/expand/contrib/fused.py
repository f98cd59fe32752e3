"""What ONNX Runtime's optimiser joins and writes in a model that it saves, taken apart again.

    FusedConv(x, w, b, z)  =  activation(Conv(x, w, b) + z)

What is computed together is decided here of all models alike, by their loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.expand.contrib.channels import channels_first, channels_last
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank

Operands = Sequence[Tensor | None]

_ACTIVATIONS = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""The standard's operators by which an activation is named, and their parameters in order."""


def expand_conv(node: Node, inputs: Operands) -> Body:
    """FusedConv: activation(Conv(x, w, b) + z); parameters of the activation in a list"""
    c = Composer()
    x, w, bias, added = (*node.inputs, "", "")[:4]
    own = {k: v for k, v in node.attributes.items() if not k.startswith("activation")}
    y = c("Conv", *((x, w, bias) if bias else (x, w)), **own)
    y = c("Add", y, added) if added else y
    listed = [float(value) for value in node.get("activation_params", ())]
    names = _ACTIVATIONS.get(node.get("activation", ""), ())
    named = dict(zip(names, listed, strict=False))
    return c.body(node.inputs, (_activate(c, node, y, listed, named),))


def expand_gemm(node: Node, inputs: Operands) -> Body:
    """FusedGemm: activation(Gemm(a, b, c)); parameters of the activation by name"""
    c = Composer()
    own = {k: v for k, v in node.attributes.items() if not k.startswith("activation")}
    y = c("Gemm", *node.inputs, **own)
    names = _ACTIVATIONS.get(node.get("activation", ""), ())
    told = {name: node.get(f"activation_{name}") for name in names}
    named = {name: float(value) for name, value in told.items() if value is not None}
    return c.body(node.inputs, (_activate(c, node, y, (), named),))


def _activate(
    c: Composer, node: Node, y: str, listed: Sequence[float], named: Mapping[str, float]
) -> str:
    """activation(y), by parameters in a list, and by those of them that the standard names."""
    kind, attributes = node.get("activation", ""), dict[str, Any](named)
    if not kind:
        return y
    if kind == "Clip":
        rule, way_out = "number of parameters of Clip", "give the least and the largest value"
        require(len(listed) == 2, rule, 2, len(listed), way_out)
        ends = (c("CastLike", c.constant(np.float32(v)), y) for v in listed)
        return c("Clip", y, *ends)
    if kind not in _ACTIVATIONS:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: activation {kind!r} is not supported; use one of "
            f"{', '.join(sorted([*_ACTIVATIONS, 'Clip']))}, or a node of its own"
        )
    return c(kind, y, **attributes)


def expand_dimension(node: Node, inputs: Operands) -> Body:
    """ExpandDims: x with a dimension of one more at an axis, an int32"""
    c = Composer()
    axis = c("Reshape", c("Cast", node.inputs[1], to=TensorProto.INT64), c.integers(1))
    return c.body(node.inputs, (c("Unsqueeze", node.inputs[0], axis),))


def expand_distances(node: Node, inputs: Operands) -> Body:
    """CDist: a[m, k], b[n, k] -> the distance of each two rows, [m, n], or its square"""
    c = Composer()
    for k, role in enumerate("AB"):
        require_rank(given(inputs[k]), role, 2, 2)
    metric = node.get("metric", "sqeuclidean")
    known = ("euclidean", "sqeuclidean")
    require(metric in known, "metric", " or ".join(known), metric, "use one of these")
    left, right = (c("Unsqueeze", x, c.integers(1 - k)) for k, x in enumerate(node.inputs))
    apart = c("Sub", left, right)
    y = c("ReduceSum", c("Mul", apart, apart), c.integers(-1), keepdims=0)
    return c.body(node.inputs, (c("Sqrt", y) if metric == "euclidean" else y,))


def expand_group_norm(node: Node, inputs: Operands) -> Body:
    """GroupNorm(x, gamma, beta), and SkipGroupNorm with skip and bias; then x sigmoid(x), if asked

    x and y are [batch, height, width, channels], unless channels_last is 0; the sum of x, skip and
    bias is the second output.
    """
    c, x = Composer(), given(inputs[0])
    name, gamma, beta, *more = node.inputs
    last, rank = int(node.get("channels_last", 1)), x.rank
    require_rank(x, "X", 3)
    total = name
    for k, added in enumerate(more):
        if added:
            total = c("Add", total, _beside(c, added, given(inputs[3 + k]), rank, last))
    first = channels_first(c, total, rank) if last else total
    scales = [c("CastLike", v, name) for v in (gamma, beta)]
    groups, epsilon = int(node.attributes["groups"]), node.get("epsilon", 1e-5)
    y = c("GroupNormalization", first, *scales, num_groups=groups, epsilon=epsilon)
    if int(node.attributes["activation"]):
        y = c("Mul", y, c("Sigmoid", y))
    y = channels_last(c, y, rank) if last else y
    return c.body(node.inputs, (y, total))


def expand_bias_add(node: Node, inputs: Operands) -> Body:
    """BiasAdd: x + bias + skip"""
    c = Composer()
    x, bias, skip = node.inputs
    return c.body(node.inputs, (c("Add", c("Add", x, bias), skip),))


def _beside(c: Composer, added: str, type: Tensor, rank: int, last: int) -> str:
    """A skip or a bias as x lies: [channels] or [batch, channels] for all positions."""
    if type.rank == rank or (last and type.rank == 1):
        return added
    require_rank(type, f"{type.name!r}", 1, 2)
    front = 1 if last else type.rank
    axes = range(front, front + rank - 2) if type.rank == 2 else range(1, rank - 1)
    return c("Unsqueeze", added, c.integers(*axes))


def expand_conv_of_last(node: Node, inputs: Operands) -> Body:
    """NhwcConv: Conv of x[batch, …, channels] and w[outputs, …, channels]"""
    c = Composer()
    rank = given(inputs[0]).rank
    x, w = (channels_first(c, name, rank) for name in node.inputs[:2])
    y = c("Conv", x, w, *node.inputs[2:3], **node.attributes)
    return c.body(node.inputs, (channels_last(c, y, rank),))


def expand_same(node: Node, inputs: Operands) -> Body:
    """An operator that the standard has taken over since, with the same name."""
    c = Composer()
    attributes: dict[str, Any] = dict(node.attributes)
    names = node.inputs
    if node.op == "GridSample":
        newer = {"bilinear": "linear", "bicubic": "cubic"}
        mode = attributes.get("mode", "bilinear")
        attributes["mode"] = newer.get(mode, mode)
    if node.op == "Range" and len([n for n in names if n]) == 2:
        names = (*names[:2], c("CastLike", c.constant(np.int64(1)), names[0]))
    return c.body(node.inputs, (c(node.op, *names, **attributes),))


FUSED: dict[str, Any] = {
    "BiasAdd": expand_bias_add,
    "CDist": expand_distances,
    "DequantizeLinear": expand_same,
    "ExpandDims": expand_dimension,
    "FusedConv": expand_conv,
    "FusedGemm": expand_gemm,
    "GatherND": expand_same,
    "GridSample": expand_same,
    "GroupNorm": expand_group_norm,
    "LayerNormalization": expand_same,
    "NhwcConv": expand_conv_of_last,
    "Pad": expand_same,
    "QuantizeLinear": expand_same,
    "Range": expand_same,
    "SkipGroupNorm": expand_group_norm,
    "Trilu": expand_same,
}
