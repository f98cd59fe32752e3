"""Softmax and its kin: each row along one axis, from its maximum and the sum of its exponentials.

m[i] = max x[i, :]     e[i, j] = exp(x[i, j] - m[i])     s[i] = sum e[i, :]     y = e * (1 / s)

Terms that are no normal numbers are 0: beside a sum of at least 1 they are nothing, but where a
mask of -100 makes them they would take most of the time (`runtime/polyc_f32_exp.h`).

One division a row: s is at least 1, the exponential of the maximum, so that 1 / s is a normal
number and each y within 1.5 ulp of e / s.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.scop.expr import Expr
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    constant,
    either,
    eq,
    exp_normal,
    isnan,
    log,
    mul,
    reciprocal,
    select,
    sub,
)
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import grid_iterators, statistic


def _rows(node: Node, ref: Ref) -> tuple[int, list[int]]:
    """The axis of the rows, and the other dimensions."""
    axis = normalize_axis(node.get("axis", -1), ref.rank)
    return axis, [k for k in range(ref.rank) if k != axis]


def _shifted(ref: Ref, maximum: Ref, kept: Sequence[int], space: Space) -> Expr:
    """x - max of its row, which keeps exp from overflowing."""
    element = space.load(ref, *space.iterators)
    return sub(element, space.load(maximum, *grid_iterators(kept)))


def _maximum(ctx: Lowering, node: Node, ref: Ref, kept: Sequence[int]) -> Ref:
    return statistic(
        ctx, node, ref, kept, "max", lambda space: space.load(ref, *space.iterators), "max"
    )


@lowers("Softmax")
def lower_softmax(ctx: Lowering, node: Node) -> None:
    """y = exp(x - max) * (1 / sum of exp(x - max) along the axis)"""
    ref = ctx.ref(node.inputs[0])
    _, kept = _rows(node, ref)
    maximum = _maximum(ctx, node, ref, kept)
    powers = ctx.array(f"{node.outputs[0]}_exp", ref.dtype, ref.shape)
    space = ctx.grid(node, ref.shape)
    power = exp_normal(_shifted(ref, maximum, kept, space))
    ctx.assign(node, space, powers, space.iterators, power)
    inverse = statistic(
        ctx,
        node,
        powers,
        kept,
        "inverse",
        lambda space: space.load(powers, *space.iterators),
        "add",
        lambda _, total: reciprocal(total),
    )
    end = ctx.grid(node, ref.shape)
    share = mul(end.load(powers, *end.iterators), end.load(inverse, *grid_iterators(kept)))
    ctx.assign(node, end, ctx.result(node), end.iterators, share)


@lowers("LogSoftmax")
def lower_log_softmax(ctx: Lowering, node: Node) -> None:
    """y = (x - max) - log(sum of exp(x - max)) along the axis"""
    ref = ctx.ref(node.inputs[0])
    _, kept = _rows(node, ref)
    maximum = _maximum(ctx, node, ref, kept)
    logarithm = statistic(
        ctx,
        node,
        ref,
        kept,
        "log_sum",
        lambda space: exp_normal(_shifted(ref, maximum, kept, space)),
        "add",
        lambda _, total: log(total),
    )
    end = ctx.grid(node, ref.shape)
    value = sub(_shifted(ref, maximum, kept, end), end.load(logarithm, *grid_iterators(kept)))
    ctx.assign(node, end, ctx.result(node), end.iterators, value)


@lowers("Hardmax")
def lower_hardmax(ctx: Lowering, node: Node) -> None:
    """y = 1 at the first maximum of the row (NaN counts as largest), 0 elsewhere"""
    ref = ctx.ref(node.inputs[0])
    axis, kept = _rows(node, ref)
    maximum = _maximum(ctx, node, ref, kept)

    def candidate(space: Space) -> Expr:
        element = space.load(ref, *space.iterators)
        largest = eq(element, space.load(maximum, *grid_iterators(kept)))
        chosen = either(largest, isnan(element))
        return select(chosen, space.index(f"i{axis}"), space.number(ref.shape[axis]))

    first = statistic(ctx, node, ref, kept, "first", candidate, "min")
    end = ctx.grid(node, ref.shape)
    hit = eq(end.index(f"i{axis}"), end.load(first, *grid_iterators(kept)))
    one, zero = constant(1, ref.dtype), constant(0, ref.dtype)
    ctx.assign(node, end, ctx.result(node), end.iterators, select(hit, one, zero))
