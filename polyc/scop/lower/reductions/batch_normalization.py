"""BatchNormalization: one mean, variance, scale and bias for each channel.

y[n, c, …]  =  (x[n, c, …] - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import add, mul
from polyc.scop.lower.reductions.normalization import (
    affine_of,
    inverse_root,
    moments_of,
    write_normalized,
)
from polyc.scop.lower.space import Ref

CHANNEL = (1,)


@lowers("BatchNormalization")
def lower_batch_normalization(ctx: Lowering, node: Node) -> None:
    """With constants y = x * a[c] + b[c]; else, and in training mode, by the formula above."""
    ref, target = ctx.ref(node.inputs[0]), ctx.result(node)
    if ref.rank == 1:  # a batch with a single channel
        view, shape = "{ [i0, i1] -> [i0] }", (*ref.shape, 1)
        ref, target = ref.through(view, shape), target.through(view, shape)
    values = [ctx.graph.value(name) for name in node.inputs[1:5]]
    training = bool(node.get("training_mode", 0))
    if not training and all(v is not None for v in values):
        scale, bias, mean, variance = (np.asarray(v, np.float64) for v in values)
        _lower_constant(ctx, node, ref, target, (scale, bias, mean, variance))
        return
    if training:
        mean_ref, variance_ref = moments_of(ctx, node, ref, CHANNEL, "variance", lambda v: v)
        _update_running(ctx, node, 1, mean_ref)
        _update_running(ctx, node, 2, variance_ref)
    else:
        mean_ref, variance_ref = (ctx.ref(name) for name in node.inputs[3:5])
    moments = (mean_ref, _inverse(ctx, node, variance_ref))
    affine = affine_of(ctx, node, lambda _: ["i1"])
    write_normalized(ctx, node, ref, target, moments, CHANNEL, affine)


def _lower_constant(
    ctx: Lowering, node: Node, ref: Ref, target: Ref, parameters: tuple[np.ndarray, ...]
) -> None:
    """y = x * a + b with a = scale / sqrt(variance + epsilon), b = bias - mean * a, in float64."""
    scale, bias, mean, variance = parameters
    factor = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
    shift = bias - mean * factor
    name = node.outputs[0]
    a = ctx.constant(f"{name}_factor", factor.astype(ref.dtype))
    b = ctx.constant(f"{name}_shift", shift.astype(ref.dtype))
    space = ctx.grid(node, ref.shape)
    scaled = mul(space.load(ref, *space.iterators), space.load(a, "i1"))
    value = add(scaled, space.load(b, "i1"))
    ctx.assign(node, space, target, space.iterators, value)


def _inverse(ctx: Lowering, node: Node, variance: Ref) -> Ref:
    """A temporary 1 / sqrt(variance[c] + epsilon), so that no element computes a root."""
    space = ctx.space(node, c=variance.shape[0])
    inverse = ctx.array(f"{node.outputs[0]}_inverse", variance.dtype, variance.shape)
    value = inverse_root(node.get("epsilon", 1e-5))(space.load(variance, "c"))
    ctx.assign(node, space, inverse, ["c"], value)
    return inverse


def _update_running(ctx: Lowering, node: Node, position: int, batch: Ref) -> None:
    """Output `position`: running * momentum + batch * (1 - momentum)."""
    if position >= len(node.outputs) or not node.outputs[position]:
        return
    running, target = ctx.ref(node.inputs[2 + position]), ctx.result(node, position)
    momentum, space = node.get("momentum", 0.9), ctx.space(node, c=batch.shape[0])
    old, new = (cast(space.load(r, "c"), target.dtype) for r in (running, batch))
    value = add(
        mul(old, momentum),
        mul(new, 1 - momentum),
    )
    ctx.assign(node, space, target, ["c"], value)
