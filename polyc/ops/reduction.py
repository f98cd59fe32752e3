"""Reductions over dimensions, scans along one, and normalisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyc.graph.builder import Operand, Value, apply, as_integers, constant_value

Reduction = Callable[..., Value]


def _reduction(op: str, formula: str) -> Reduction:
    def function(
        x: Operand, axes: int | Sequence[int] | None = None, keepdims: bool = True
    ) -> Value:
        return apply(op, [x, as_integers(axes)], keepdims=int(keepdims))

    function.__doc__ = f"ONNX {op}: {formula} over `axes`, or over all dimensions."
    function.__name__ = function.__qualname__ = op
    return function


reduce_sum = _reduction("ReduceSum", "Σ x")
reduce_mean = _reduction("ReduceMean", "the mean of x")
reduce_max = _reduction("ReduceMax", "the maximum of x")
reduce_min = _reduction("ReduceMin", "the minimum of x")
reduce_prod = _reduction("ReduceProd", "Π x")
reduce_l1 = _reduction("ReduceL1", "Σ |x|")
reduce_l2 = _reduction("ReduceL2", "√(Σ x²)")
reduce_log_sum = _reduction("ReduceLogSum", "ln Σ x")
reduce_log_sum_exp = _reduction("ReduceLogSumExp", "ln Σ e**x")
reduce_sum_square = _reduction("ReduceSumSquare", "Σ x²")


def arg_max(
    x: Operand, axis: int = 0, keepdims: bool = True, select_last_index: bool = False
) -> Value:
    """The index, int64, of the first (or last) maximum along `axis`."""
    flags = {"keepdims": int(keepdims), "select_last_index": int(select_last_index)}
    return apply("ArgMax", [x], axis=axis, **flags)


def arg_min(
    x: Operand, axis: int = 0, keepdims: bool = True, select_last_index: bool = False
) -> Value:
    """The index, int64, of the first (or last) minimum along `axis`."""
    flags = {"keepdims": int(keepdims), "select_last_index": int(select_last_index)}
    return apply("ArgMin", [x], axis=axis, **flags)


def cum_sum(x: Operand, axis: int, exclusive: bool = False, reverse: bool = False) -> Value:
    """y[i] = Σ x[j] over j ≤ i along `axis`; exclusive: j < i; reverse: from the end."""
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    return apply("CumSum", [x, constant_value(axis, dtype=np.int64)], **flags)


def cum_prod(x: Operand, axis: int, exclusive: bool = False, reverse: bool = False) -> Value:
    """y[i] = Π x[j] over j ≤ i along `axis`; exclusive: j < i; reverse: from the end."""
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    return apply("CumProd", [x, constant_value(axis, dtype=np.int64)], **flags)


def softmax(x: Operand, axis: int = -1) -> Value:
    """e**x / Σ e**x along `axis`."""
    return apply("Softmax", [x], axis=axis)


def log_softmax(x: Operand, axis: int = -1) -> Value:
    """x - ln Σ e**x along `axis`."""
    return apply("LogSoftmax", [x], axis=axis)


def hardmax(x: Operand, axis: int = -1) -> Value:
    """1 at the first maximum along `axis`, and 0 elsewhere."""
    return apply("Hardmax", [x], axis=axis)


def lp_normalization(x: Operand, axis: int = -1, p: int = 2) -> Value:
    """x / (Σ |x|**p)**(1/p) along `axis`, with p of 1 or 2."""
    return apply("LpNormalization", [x], axis=axis, p=p)


def batch_normalization(
    x: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    epsilon: float = 1e-5,
) -> Value:
    """(x - mean) / √(variance + epsilon) · scale + bias for x[N, C, …], all others [C]."""
    return apply("BatchNormalization", [x, scale, bias, mean, variance], epsilon=epsilon)


def instance_normalization(
    x: Operand, scale: Operand, bias: Operand, epsilon: float = 1e-5
) -> Value:
    """x[N, C, …] normalised over its positions, then · scale[C] + bias[C]."""
    return apply("InstanceNormalization", [x, scale, bias], epsilon=epsilon)


def group_normalization(
    x: Operand, scale: Operand, bias: Operand, num_groups: int, epsilon: float = 1e-5
) -> Value:
    """x[N, C, …] normalised over groups of C / num_groups channels, then · scale[C] + bias[C]."""
    return apply(
        "GroupNormalization", [x, scale, bias], num_groups=num_groups, epsilon=epsilon
    )  # fmt: skip


def layer_normalization(
    x: Operand,
    scale: Operand,
    bias: Operand | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Value:
    """x normalised over its dimensions from `axis` on, then · scale + bias."""
    return apply("LayerNormalization", [x, scale, bias], axis=axis, epsilon=epsilon)


def rms_normalization(x: Operand, scale: Operand, axis: int = -1, epsilon: float = 1e-5) -> Value:
    """x / √(mean(x²) + epsilon) · scale, the mean over the dimensions from `axis` on."""
    return apply("RMSNormalization", [x, scale], axis=axis, epsilon=epsilon)


def mean_variance_normalization(x: Operand, axes: Sequence[int] = (0, 2, 3)) -> Value:
    """(x - mean) / √variance over `axes`."""
    return apply("MeanVarianceNormalization", [x], axes=tuple(axes))


def lrn(x: Operand, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Value:
    """x / (bias + alpha/size · Σ x²)**beta, the sum over `size` neighbouring channels."""
    attributes: dict[str, Any] = {"alpha": alpha, "beta": beta, "bias": bias}
    return apply("LRN", [x], size=size, **attributes)
