"""Normalisations, and losses."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.movement import axis_of, some_axes
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOATS, Rejected, Value

COARSE = FLOATS[:2]
"""Types for what cancels much."""


def image(s: tuple[int, ...]) -> bool:
    """Batch, channels, and at least one dimension of space, all with elements."""
    return len(s) in (3, 4, 5) and 0 not in s


def per_channel(b: Builder, x: Value, axis: int = 1, **draw: float) -> Value:
    """A vector with an element a channel."""
    return b.make((x.shape[axis],), x.dtype, **draw)


def _epsilon(b: Builder, x: Value) -> float | None:
    return b.real(2.0**-7, 2.0**-13, dtype=x.dtype)


def _stash(x: Value) -> dict[str, int]:
    """The type of what is computed on the way: float32 unless told."""
    return {"stash_type": TensorProto.DOUBLE} if x.dtype == np.float64 else {}


@operator("LayerNormalization", "RMSNormalization", weight=1)
def layer_norm(b: Builder, op: str) -> object:
    """Over the last dimensions."""
    if op == "RMSNormalization" and b.traits.opset < 23:
        raise Rejected("newer")
    # The reference knows the second for float32 sums only.
    types = FLOATS if op == "LayerNormalization" else (FLOATS[0], *FLOATS[2:])
    x = b.pick(types, lambda s: len(s) > 0 and 0 not in s and np.prod(s[-1:]) > 1)
    axis = axis_of(b, len(x.shape)) if b.chance(0.4) else -1
    shape = x.shape[axis:]
    inputs = [x, b.make(shape, x.dtype)]
    outputs: list[bool] = [True]
    if op == "LayerNormalization":
        if b.chance(0.6):
            inputs.append(b.make(shape, x.dtype))
        outputs += [True, True][: b.integer(0, 2)] if x.dtype == FLOATS[0] else []
    return b.add(
        op, inputs, Kind.SUM, outputs=outputs, axis=axis, epsilon=_epsilon(b, x), **_stash(x)
    )


@operator("BatchNormalization", weight=1)
def batch_norm(b: Builder, op: str) -> object:
    """With the statistics that are given."""
    x = b.pick(FLOATS, lambda s: len(s) in (2, 3, 4, 5) and 0 not in s)
    scale, bias, mean = (per_channel(b, x) for _ in range(3))
    variance = per_channel(b, x, low=0.3, high=2)
    return b.add(op, [x, scale, bias, mean, variance], Kind.SUM, epsilon=_epsilon(b, x))


@operator("InstanceNormalization", weight=0.6)
def instance_norm(b: Builder, op: str) -> object:
    """Over the dimensions of space."""
    x = b.pick(FLOATS, lambda s: image(s) and np.prod(s[2:]) > 1)
    return b.add(op, [x, per_channel(b, x), per_channel(b, x)], Kind.SUM, epsilon=_epsilon(b, x))


@operator("GroupNormalization", weight=0.6)
def group_norm(b: Builder, op: str) -> object:
    """Over groups of channels."""
    x = b.pick(FLOATS, lambda s: image(s) and np.prod(s[2:]) > 1)
    groups = b.one_of([g for g in range(1, x.shape[1] + 1) if x.shape[1] % g == 0])
    return b.add(
        op,
        [x, per_channel(b, x), per_channel(b, x)],
        Kind.SUM,
        num_groups=groups,
        epsilon=_epsilon(b, x),
        **_stash(x),
    )


@operator("LpNormalization", weight=0.4)
def lp_norm(b: Builder, op: str) -> object:
    """Along an axis."""
    x = b.pick(FLOATS[:3], lambda s: len(s) > 0 and 0 not in s)
    return b.add(op, [x], Kind.SUM, axis=axis_of(b, len(x.shape)), p=b.integer(1, 2))


@operator("MeanVarianceNormalization", weight=0.4)
def mvn(b: Builder, op: str) -> object:
    """Over some axes."""
    x = b.pick(COARSE, lambda s: len(s) == 4 and 0 not in s and np.prod(s) > 4)
    axes = some_axes(b, 4, 2) if b.chance(0.6) else None
    return b.add(op, [x], Kind.SUM, axes=axes)


@operator("LRN", weight=0.5)
def lrn(b: Builder, op: str) -> object:
    """Over neighbouring channels."""
    x = b.pick(FLOATS, image)
    return b.add(op, [x], Kind.SUM, size=b.one_of((1, 3, 5)), alpha=0.03125, beta=0.625, bias=1.5)


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=0.5)
def loss(b: Builder, op: str) -> object:
    """With and without weights, and an index that is ignored."""
    x = b.pick(FLOATS[:3], lambda s: len(s) in (2, 3, 4) and 0 not in s)
    target = b.make(
        (x.shape[0], *x.shape[2:]), np.int64, low=0, high=min(r.shape[1] for r in x.runs) - 1
    )
    inputs = [x, target]
    if b.chance(0.4):
        inputs.append(per_channel(b, x, low=0.3, high=2))
    ignored = 0 if b.chance(0.2) else None
    if ignored is not None and all((r.shadows[0] == 0).all() for r in target.runs):
        raise Rejected("a mean of nothing")
    outputs = b.integer(1, 2) if op == "SoftmaxCrossEntropyLoss" else 1
    how = b.one_of(("none", "sum", "mean"))
    return b.add(op, inputs, Kind.SUM, outputs=outputs, reduction=how, ignore_index=ignored)
