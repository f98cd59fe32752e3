"""Normalizations: every element relative to the mean and the deviation of its group.

    mean[i]      =  sum of x[i, :] / n
    variance[i]  =  sum of (x[i, :] - mean[i])^2 / n
    inverse[i]   =  1 / sqrt(variance[i] + epsilon)
    y[i, j]      =  (x[i, j] - mean[i]) * inverse[i] * scale + bias

The variance takes a second pass over the differences: mean(x^2) - mean(x)^2 cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axes, normalize_axis
from polyc.graph.simplify.rewriting import is_filled
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    add,
    constant,
    div,
    eq,
    mul,
    power,
    reciprocal,
    select,
    sqrt,
    square,
    sub,
)
from polyc.scop.lower.movement.padding import Padding, pads_input
from polyc.scop.lower.products.contraction import broadcast_indices
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import grid_iterators, mean_of, power_of_magnitude, root_of, statistic
from polyc.scop.lower.windows.window import read_padded

Affine = Callable[[Space, Expr], Expr]
"""(space of the last statement, normalized value) -> scaled and shifted value."""


def element_of(ref: Ref) -> Callable[[Space], Expr]:
    """x[i0, i1, …] for the grid over x."""
    return lambda space: space.load(ref, *space.iterators)


def inverse_root(epsilon: float) -> Callable[[Expr], Expr]:
    """variance -> 1 / sqrt(variance + epsilon)"""
    return lambda variance: reciprocal(sqrt(add(variance, epsilon)))


def _count(ref: Ref, kept: Sequence[int]) -> int:
    return math.prod(n for k, n in enumerate(ref.shape) if k not in kept)


def _mean(
    ctx: Lowering,
    node: Node,
    ref: Ref,
    kept: Sequence[int],
    name: str,
    value: Callable[[Space], Expr],
    then: Callable[[Expr], Expr] = lambda mean: mean,
) -> Ref:
    """A temporary m[kept] = then(mean of value over the other dimensions)."""
    mean = mean_of(_count(ref, kept))
    return statistic(
        ctx, node, ref, kept, name, value, "add", lambda end, total: then(mean(end, total))
    )


def moments_of(
    ctx: Lowering,
    node: Node,
    ref: Ref,
    kept: Sequence[int],
    name: str,
    then: Callable[[Expr], Expr],
) -> tuple[Ref, Ref]:
    """mean[kept] and then(variance)[kept], over the other dimensions of a tensor."""
    mean = _mean(ctx, node, ref, kept, "mean", element_of(ref))

    def deviation(space: Space) -> Expr:
        return square(sub(element_of(ref)(space), space.load(mean, *grid_iterators(kept))))

    return mean, _mean(ctx, node, ref, kept, name, deviation, then)


def write_normalized(
    ctx: Lowering,
    node: Node,
    ref: Ref,
    target: Ref,
    moments: tuple[Ref, Ref],
    kept: Sequence[int],
    affine: Affine,
) -> None:
    """target = affine((x - mean[kept]) * inverse[kept])"""
    space = ctx.grid(node, ref.shape)
    mean, inverse = (cast(space.load(m, *grid_iterators(kept)), ref.dtype) for m in moments)
    normal = mul(sub(element_of(ref)(space), mean), inverse)
    ctx.assign(node, space, target, space.iterators, affine(space, normal))


def affine_of(ctx: Lowering, node: Node, indices: Callable[[Ref], Sequence[str]]) -> Affine:
    """normal * scale + bias for inputs 1 and 2 (if there), read at the indices given for each.

    One number for all channels is no array: group norms are exported with scales of 1, biases of 0.
    """

    def read(position: int, space: Space, dtype: np.dtype) -> Expr | None:
        if not ctx.has(node, position):
            return None
        value = ctx.graph.value(node.inputs[position])
        if value is not None and value.size and is_filled(value, value.flat[0]):
            return constant(value.flat[0], dtype)
        parameter = ctx.ref(node.inputs[position])
        return cast(space.load(parameter, *indices(parameter)), dtype)

    def apply(space: Space, normal: Expr) -> Expr:
        scale, bias = (read(position, space, normal.dtype) for position in (1, 2))
        if scale is not None and scale != constant(1, normal.dtype):
            normal = mul(normal, scale)
        return normal if bias is None else add(normal, bias)

    return apply


@lowers("InstanceNormalization")
def lower_instance_normalization(ctx: Lowering, node: Node) -> None:
    """Each image of each channel on its own."""
    ref, kept = ctx.ref(node.inputs[0]), (0, 1)
    then = inverse_root(node.get("epsilon", 1e-5))
    moments = moments_of(ctx, node, ref, kept, "inverse", then)
    affine = affine_of(ctx, node, lambda _: ["i1"])
    write_normalized(ctx, node, ref, ctx.result(node), moments, kept, affine)


@lowers("GroupNormalization")
def lower_group_normalization(ctx: Lowering, node: Node) -> None:
    """Channels in groups: x[n, c, …] is seen as x[n, g, k, …] where c = K*g + k."""
    ref, groups = ctx.ref(node.inputs[0]), node.attributes["num_groups"]
    members = ref.shape[1] // groups
    shape = (ref.shape[0], groups, members, *ref.shape[2:])
    new = [f"i{k}" for k in range(len(shape))]
    channel = f"{members}*i1 + i2"
    view = f"{{ [{', '.join(new)}] -> [{', '.join(['i0', channel, *new[3:]])}] }}"
    split, target = ref.through(view, shape), ctx.result(node).through(view, shape)
    then = inverse_root(node.get("epsilon", 1e-5))
    moments = moments_of(ctx, node, split, (0, 1), "inverse", then)
    affine = affine_of(ctx, node, lambda _: [channel])
    write_normalized(ctx, node, split, target, moments, (0, 1), affine)


@lowers("LayerNormalization")
def lower_layer_normalization(ctx: Lowering, node: Node) -> None:
    """All dimensions from `axis` on together; outputs 1 and 2 are the mean and the inverse."""
    ref = ctx.ref(node.inputs[0])
    kept = range(normalize_axis(node.get("axis", -1), ref.rank))
    then = inverse_root(node.get("epsilon", 1e-5))
    moments = moments_of(ctx, node, ref, kept, "inverse", then)
    affine = affine_of(
        ctx, node, lambda p: broadcast_indices(grid_iterators(range(ref.rank)), p.shape)
    )
    write_normalized(ctx, node, ref, ctx.result(node), moments, kept, affine)
    for position, moment in enumerate(moments, start=1):
        if position < len(node.outputs) and node.outputs[position]:
            target = ctx.result(node, position)
            space = ctx.grid(node, moment.shape)
            at = [*space.iterators, *["0"] * (target.rank - moment.rank)]
            ctx.assign(node, space, target, at, cast(element_of(moment)(space), target.dtype))


@lowers("RMSNormalization")
def lower_rms_normalization(ctx: Lowering, node: Node) -> None:
    """y = x / sqrt(mean of x^2 + epsilon) * scale, over all dimensions from `axis` on"""
    ref, scale = ctx.ref(node.inputs[0]), ctx.ref(node.inputs[1])
    kept = range(normalize_axis(node.get("axis", -1), ref.rank))
    then = inverse_root(node.get("epsilon", 1e-5))
    inverse = _mean(
        ctx, node, ref, kept, "inverse", lambda space: square(element_of(ref)(space)), then
    )
    target, space = ctx.result(node), ctx.grid(node, ref.shape)
    normal = mul(element_of(ref)(space), space.load(inverse, *grid_iterators(kept)))
    factor = space.load(scale, *broadcast_indices(space.iterators, scale.shape))
    value = mul(cast(normal, target.dtype), cast(factor, target.dtype))
    ctx.assign(node, space, target, space.iterators, value)


@lowers("MeanVarianceNormalization")
def lower_mean_variance_normalization(ctx: Lowering, node: Node) -> None:
    """y = (x - mean) / (sqrt(variance) + 1e-9) over `axes`; the constant is the standard's."""
    ref = ctx.ref(node.inputs[0])
    axes = normalize_axes(node.get("axes", (0, 2, 3)), ref.rank)
    kept = [k for k in range(ref.rank) if k not in axes]

    def then(variance: Expr) -> Expr:
        return reciprocal(add(sqrt(variance), 1e-9))

    moments = moments_of(ctx, node, ref, kept, "inverse", then)
    write_normalized(ctx, node, ref, ctx.result(node), moments, kept, lambda _, normal: normal)


@lowers("LpNormalization")
def lower_lp_normalization(ctx: Lowering, node: Node) -> None:
    """y = x / (sum of |x|^p)^(1/p) along the axis; 0 where that norm is 0"""
    ref, p = ctx.ref(node.inputs[0]), node.get("p", 2)
    axis = normalize_axis(node.get("axis", -1), ref.rank)
    kept = [k for k in range(ref.rank) if k != axis]

    def magnitude(space: Space) -> Expr:
        return power_of_magnitude(element_of(ref)(space), p)

    norm = statistic(ctx, node, ref, kept, "norm", magnitude, "add", root_of(p))
    space, zero = ctx.grid(node, ref.shape), constant(0, ref.dtype)
    divisor = space.load(norm, *grid_iterators(kept))
    quotient = div(element_of(ref)(space), divisor)
    value = select(eq(divisor, zero), zero, quotient)
    ctx.assign(node, space, ctx.result(node), space.iterators, value)


@pads_input("LRN")
def pad_lrn(ctx: Lowering, node: Node) -> Padding:
    """Zeros for the channels that the first and the last windows lack."""
    size, rank = node.attributes["size"], ctx.type(node.inputs[0]).rank
    rest = (0,) * (rank - 2)
    return Padding((0, (size - 1) // 2, *rest), (0, size // 2, *rest), 0)


@lowers("LRN")
def lower_lrn(ctx: Lowering, node: Node) -> None:
    """y[n, c] = x[n, c] / (bias + alpha / size * sum of x[n, c + r - (size-1)/2]^2)^beta"""
    ref, size = ctx.ref(node.inputs[0]), node.attributes["size"]
    alpha, beta, bias = node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    source = read_padded(ctx, node, pad_lrn(ctx, node))
    at = grid_iterators(range(ref.rank))
    space = ctx.space(node, **dict(zip(at, ref.shape, strict=True)), r=size)
    value = square(space.load(source, "i0", "i1 + r", *at[2:]))

    def finish(end: Space, total: Expr) -> Expr:
        base = add(bias, mul(alpha / size, total))
        divisor = _root_power(base, beta) if min(alpha, bias) >= 0 else power(base, beta)
        return div(end.load(source, "i0", f"i1 + {(size - 1) // 2}", *at[2:]), divisor)

    ctx.accumulate(node, space, at, value, "add", finish)


def _root_power(base: Expr, exponent: float) -> Expr:
    """base ** exponent, for a base that is not negative: quarters up to 1 by square roots.

    Two correctly rounded roots and a product are as accurate as a power, and several times faster.
    """
    root = sqrt(base)
    match exponent:
        case 0.25:
            return sqrt(root)
        case 0.5:
            return root
        case 0.75:
            return mul(root, sqrt(root))
        case 1:
            return base
    return power(base, exponent)
