"""Fold per-channel scales and shifts into the weights of the operator before them.

For each channel c, a batch norm at inference is the affine map

    y = gamma * (x - mean) / sqrt(var + epsilon) + beta = scale * x + shift
    scale = gamma / sqrt(var + epsilon),  shift = beta - mean * scale

and so are Mul, Div, Add and Sub with a constant that varies along channels only. After an operator
that is linear in constant weights, the map costs nothing:

    scale * (W x + b) + shift = (scale * W) x + (scale * b + shift)

New constants are computed in float64 and rounded once. A fold that would make one of them overflow
is left undone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.element_types import is_float

CHUNK = 1 << 17
"""Elements in float64 that stay in a second-level cache."""


@dataclass(frozen=True)
class Affine:
    """y[c] = scale[c] * x[c] + shift[c], both float64 of shape [channels]."""

    scale: np.ndarray
    shift: np.ndarray

    @property
    def keeps_scale(self) -> bool:
        return bool((self.scale == 1).all())


def fold_batch_norms(graph: Graph) -> Rewritten:
    """Fold per-channel affine maps into Conv, ConvTranspose, Gemm and MatMul by a constant.

    y = BatchNormalization(Conv(x, W, b), ...)   ->   y = Conv(x, W', b')
    y = BatchNormalization(x, ...)               ->   y = Add(Mul(x, scale), shift)

    The operator before must have one reader. MatMul has no bias, so that an Add after it stays.
    """
    return apply_rule(graph, "batch_norm_folding", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op not in ("BatchNormalization", "Add", "Sub", "Mul", "Div") or node.domain:
        return None
    source = _variable_operand(scope, node)
    if source is None or not is_float(scope.tensor(source).dtype):
        return None
    return _fold_into_producer(scope, node, source) or _separate(scope, node, source)


def _variable_operand(scope: Scope, node: Node) -> str | None:
    """The one operand that is not constant, where the result has its type and shape."""
    variable = [i for i in node.inputs if i and scope.value(i) is None]
    if len(variable) != 1 or (node.op == "BatchNormalization" and variable[0] != node.inputs[0]):
        return None
    source, target = scope.tensor(variable[0]), scope.tensor(node.outputs[0])
    same = source.shape == target.shape and source.dtype == target.dtype
    return source.name if same else None


def _fold_into_producer(scope: Scope, node: Node, source: str) -> Change | None:
    producer = scope.producer(source)
    if producer is None or producer.op not in _FOLDS or not scope.is_read_once(source):
        return None
    axis = scope.tensor(source).rank - 1 if producer.op == "MatMul" else 1
    if scope.value(producer.inputs[1]) is None:
        return None
    affine = _read_affine(scope, node, axis)
    if affine is None:
        return None
    folded = _FOLDS[producer.op](scope, producer, affine, node.outputs[0])
    if folded is None:
        return None
    nodes, constants = folded
    what = "batch norm" if node.op == "BatchNormalization" else node.op
    text = f"{what} '{node.name}' folded into {producer.op} '{producer.name}'"
    return Change(text, nodes, constants)


def _read_affine(scope: Scope, node: Node, axis: int) -> Affine | None:
    """The map that a node applies along one dimension, None where it is no such map."""
    output = scope.tensor(node.outputs[0])
    channels = output.shape[axis]
    if not isinstance(channels, int):
        return None
    if node.op == "BatchNormalization":
        return _read_batch_norm(scope, node) if axis == 1 else None
    left, right = (scope.value(i) for i in node.inputs)
    constant = right if left is None else left
    assert constant is not None
    # A constant varies along one dimension if all its other extents are 1, aligned from the right.
    extents = (1,) * (output.rank - constant.ndim) + constant.shape
    if any(extent != 1 for k, extent in enumerate(extents) if k != axis):
        return None
    vector = np.broadcast_to(constant.astype(np.float64).reshape(-1), (channels,))
    one, zero = np.ones(channels), np.zeros(channels)
    if node.op == "Mul":
        return Affine(vector, zero)
    if node.op == "Add":
        return Affine(one, vector)
    if node.op == "Sub":
        return Affine(one, -vector) if left is None else Affine(-one, vector)
    return Affine(1 / vector, zero) if left is None and vector.all() else None


def _read_batch_norm(scope: Scope, node: Node) -> Affine | None:
    if node.get("training_mode", 0) or scope.tensor(node.outputs[0]).rank < 2:
        return None
    gamma, beta, mean, variance = (np.asarray(scope.value(i), np.float64) for i in node.inputs[1:5])
    scale = gamma / np.sqrt(variance + node.get("epsilon", 1e-5))
    return Affine(scale, beta - mean * scale)


Folded = tuple[tuple[Node, ...], tuple[Tensor, ...]]


def _fold_conv(scope: Scope, node: Node, affine: Affine, output: str) -> Folded | None:
    # W[O, I/groups, ...] and b[O]; ConvTranspose: W[I, O/groups, ...], groups of inputs outermost
    weights = _weights(scope, node)
    grouped, scale = weights, affine.scale.reshape(-1, *[1] * (weights.ndim - 1))
    if node.op == "ConvTranspose":
        groups = int(node.get("group", 1))
        grouped = weights.reshape(groups, -1, *weights.shape[1:])
        scale = affine.scale.reshape(groups, 1, -1, *[1] * (weights.ndim - 2))
    bias: float | np.ndarray = 0.0
    if len(node.inputs) > 2 and node.inputs[2]:
        value = scope.value(node.inputs[2])
        if value is None:
            return None
        bias = value.astype(np.float64)
    return _rebuild(scope, node, affine, grouped, scale, bias, output)


def _fold_gemm(scope: Scope, node: Node, affine: Affine, output: str) -> Folded | None:
    # alpha * A B + beta * C with B[K, N], or B[N, K] if transB
    scale = affine.scale[:, None] if node.get("transB", 0) else affine.scale
    bias: float | np.ndarray = 0.0
    if len(node.inputs) > 2 and node.inputs[2]:
        value = scope.value(node.inputs[2])
        if value is None:
            return None
        bias = value.astype(np.float64) * node.get("beta", 1.0)
    plain = replace(node, attributes={k: v for k, v in node.attributes.items() if k != "beta"})
    return _rebuild(scope, plain, affine, _weights(scope, node), scale, bias, output)


def _weights(scope: Scope, node: Node) -> np.ndarray:
    weights = scope.value(node.inputs[1])
    assert weights is not None
    return weights


def _rebuild(
    scope: Scope,
    node: Node,
    affine: Affine,
    weights: np.ndarray,
    scale: np.ndarray,
    bias: float | np.ndarray,
    output: str,
) -> Folded | None:
    """The node with weights * scale, and its bias; weights that a shift alone met are kept."""
    inputs = list(node.inputs[:2])
    constants = []
    kept = scope.tensor(node.inputs[1])
    if not affine.keeps_scale:
        product = _multiply(weights, scale, kept.dtype)
        if product is None:
            return None
        constants.append(scope.constant(f"{output}_weights", product.reshape(kept.shape)))
        inputs[1] = constants[0].name
    if (len(node.inputs) > 2 and node.inputs[2]) or affine.shift.any():
        shifted = _round(scope, f"{output}_bias", bias * affine.scale + affine.shift, kept.dtype)
        if shifted is None:
            return None
        constants.append(shifted)
        inputs.append(shifted.name)
    return (replace(node, inputs=tuple(inputs), outputs=(output,)),), tuple(constants)


def _fold_matmul(scope: Scope, node: Node, affine: Affine, output: str) -> Folded | None:
    # (A B) * scale + shift -> A (B * scale) + shift, which is worth it only if there is a scale
    weights = _weights(scope, node)
    if affine.keeps_scale or weights.ndim < 2:
        return None
    result = scope.tensor(node.outputs[0])
    product = _multiply(weights, affine.scale, result.dtype)
    shift = _round(scope, f"{output}_shift", affine.shift, result.dtype)
    if product is None or shift is None:
        return None
    scaled = scope.constant(f"{output}_weights", product)
    matmul = replace(node, inputs=(node.inputs[0], scaled.name), outputs=(output,))
    if not affine.shift.any():
        return (matmul,), (scaled,)
    between = scope.result(f"{output}_scaled", result.dtype, result.shape)
    add = Node(between.name, "Add", (between.name, shift.name), (output,))
    return (replace(matmul, outputs=(between.name,)), add), (scaled, shift, between)


def _separate(scope: Scope, node: Node, source: str) -> Change | None:
    # BatchNormalization(x) -> x * scale + shift, constants of shape [C, 1, ..., 1]
    if node.op != "BatchNormalization":
        return None
    affine = _read_affine(scope, node, 1) if scope.tensor(source).rank > 1 else None
    if affine is None:
        return None
    result = scope.tensor(node.outputs[0])
    shape = (-1, *[1] * (result.rank - 2))
    scale = _round(scope, f"{result.name}_scale", affine.scale.reshape(shape), result.dtype)
    shift = _round(scope, f"{result.name}_shift", affine.shift.reshape(shape), result.dtype)
    if scale is None or shift is None:
        return None
    scaled = scope.result(f"{result.name}_scaled", result.dtype, result.shape)
    nodes = (
        Node(scaled.name, "Mul", (source, scale.name), (scaled.name,)),
        Node(node.name, "Add", (scaled.name, shift.name), (result.name,)),
    )
    text = f"batch norm '{node.name}' became Mul and Add"
    return Change(text, nodes, (scale, shift, scaled))


def _multiply(weights: np.ndarray, scale: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """weights * scale in float64, rounded once to the model's type; None if it does not fit.

    As many rows at a time as stay in a cache: networks have weights of hundreds of megabytes.
    """
    product = np.empty(weights.shape, dtype)
    scales = np.broadcast_to(scale, weights.shape)
    rows = max(1, CHUNK // max(1, math.prod(weights.shape[1:])))
    with np.errstate(over="ignore"):
        for start in range(0, len(weights), rows):
            part = slice(start, start + rows)
            product[part] = weights[part].astype(np.float64) * scales[part]
            if not np.isfinite(product[part]).all():
                return None
    return product


def _round(scope: Scope, base: str, value: np.ndarray, dtype: np.dtype) -> Tensor | None:
    """A float64 value as a constant of the model's type, None if it does not fit."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype)
    return scope.constant(base, rounded) if np.isfinite(rounded).all() else None


_FOLDS: dict[str, Callable[[Scope, Node, Affine, str], Folded | None]] = {
    "Conv": _fold_conv,
    "ConvTranspose": _fold_conv,
    "Gemm": _fold_gemm,
    "MatMul": _fold_matmul,
}
