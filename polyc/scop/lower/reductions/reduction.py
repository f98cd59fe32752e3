"""Reductions along dimensions, and the positions of extremes.

ReduceMean   T[i]  = 0;   T[i] += X[i, r];   Y[i] = T[i] / R
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.shapes.reduction import resolve_reduce_axes
from polyc.scop.expr import BOOL, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    absolute,
    add,
    as_float,
    div,
    either,
    eq,
    exp_normal,
    is_float,
    isinf,
    isnan,
    log,
    select,
    sqrt,
    square,
    sub,
)
from polyc.scop.lower.movement.views import optional_ints
from polyc.scop.lower.space import Ref, Space
from polyc.scop.scop import Reduction


@dataclass(frozen=True)
class Form:
    """finish(operator over value(x), number of elements)"""

    operator: Reduction
    value: Callable[[Expr], Expr] = lambda x: x
    finish: Callable[[Expr, Expr | int], Expr] = lambda total, count: total


FORMS = {
    "ReduceSum": Form("add"),
    "ReduceMean": Form("add", as_float, lambda total, count: div(total, count)),
    "ReduceMax": Form("max"),
    "ReduceMin": Form("min"),
    "ReduceProd": Form("mul"),
    "ReduceL1": Form("add", absolute),
    "ReduceL2": Form("add", lambda x: square(as_float(x)), lambda total, count: sqrt(total)),
    "ReduceLogSum": Form("add", as_float, lambda total, count: log(total)),
    "ReduceSumSquare": Form("add", square),
}

OF_BOOL: dict[Reduction, Reduction] = {"max": "or", "min": "and"}


@dataclass(frozen=True)
class Axes:
    """How a reduction walks its input: iterators i0, i2 are kept, r1 is reduced.

    read: indices of the input; kept: the iterators of the result; into: indices of the output.
    """

    extents: dict[str, int]
    read: tuple[str, ...]
    kept: tuple[str, ...]
    into: tuple[str, ...]
    count: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing is reduced: each element of the output is one of the input."""
        return len(self.kept) == len(self.extents)


def find_axes(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Axes:
    """Kept iterators come first; a reduced dimension of extent 1 needs none.

    (2, 3, 4), (1,), keepdims -> { S[i0, i2, r1] }, read [i0, r1, i2], into [i0, 0, i2]
    """
    kept = {f"i{k}": n for k, n in enumerate(shape) if k not in axes}
    reduced = {f"r{k}": n for k, n in enumerate(shape) if k in axes and n != 1}
    read = [f"i{k}" if k not in axes else "0" if n == 1 else f"r{k}" for k, n in enumerate(shape)]
    into = [
        f"i{k}" if k not in axes else "0" for k in range(len(shape)) if k not in axes or keepdims
    ]
    count = math.prod(shape[k] for k in axes)
    return Axes({**kept, **reduced}, tuple(read), tuple(kept), tuple(into), count)


def _node_axes(ctx: Lowering, node: Node, ref: Ref) -> Axes:
    listed = optional_ints(ctx, node, 1, "axes")
    axes = resolve_reduce_axes(listed, ref.rank, bool(node.get("noop_with_empty_axes", 0)))
    return find_axes(ref.shape, axes, bool(node.get("keepdims", 1)))


@lowers(*FORMS)
def lower_reduce(ctx: Lowering, node: Node) -> None:
    """Y[i] = finish(op of value(X[i, r]) over r)"""
    ref, form = ctx.ref(node.inputs[0]), FORMS[node.op]
    axes = _node_axes(ctx, node, ref)
    space = ctx.space(node, **axes.extents)
    value = form.value(space.load(ref, *axes.read))
    operator = OF_BOOL[form.operator] if ref.dtype == BOOL else form.operator

    def finish(end: Space, total: Expr) -> Expr:
        return form.finish(total, end.number(axes.count, total.dtype))

    accumulate(ctx, node, space, axes, value, operator, finish)


@lowers("ReduceLogSumExp")
def lower_log_sum_exp(ctx: Lowering, node: Node) -> None:
    """Y[i] = m[i] + log(sum of exp(X[i, r] - m[i]) over r), m[i] = max of X[i, r], finite"""
    ref = ctx.ref(node.inputs[0])
    axes = _node_axes(ctx, node, ref)

    def element(space: Space) -> Expr:
        return as_float(space.load(ref, *axes.read))

    first = ctx.space(node, **axes.extents)
    largest = ctx.array(f"{node.outputs[0]}_max", element(first).dtype,
                        [axes.extents[i] for i in axes.kept])  # fmt: skip
    ctx.reduce(node, first, largest, axes.kept, element(first), "max")

    def shift(space: Space) -> Expr:
        m = space.load(largest, *axes.kept)
        return select(isinf(m), 0, m)  # inf - inf would be NaN

    space = ctx.space(node, **axes.extents)
    value = exp_normal(sub(element(space), shift(space)))
    accumulate(ctx, node, space, axes, value, "add", lambda end, t: add(shift(end), log(t)))


@lowers("ArgMax", "ArgMin")
def lower_arg_reduce(ctx: Lowering, node: Node) -> None:
    """Y[i] = first (or last) r with X[i, r] = m[i]; NaN is the extreme of a row that holds one."""
    ref = ctx.ref(node.inputs[0])
    axis = normalize_axis(node.get("axis", 0), ref.rank)
    axes = find_axes(ref.shape, (axis,), bool(node.get("keepdims", 1)))
    first = ctx.space(node, **axes.extents)
    extreme = ctx.array(f"{node.outputs[0]}_extreme", ref.dtype,
                        [axes.extents[i] for i in axes.kept])  # fmt: skip
    operator: Reduction = "max" if node.op == "ArgMax" else "min"
    ctx.reduce(node, first, extreme, axes.kept, first.load(ref, *axes.read), operator)
    space = ctx.space(node, **axes.extents)
    x = space.load(ref, *axes.read)
    hit: Expr = eq(x, space.load(extreme, *axes.kept))
    if is_float(x):
        hit = either(hit, isnan(x))
    last = bool(node.get("select_last_index", 0))
    position = space.index(axes.read[axis])
    value = select(hit, position, -1 if last else space.number(axes.count))
    accumulate(ctx, node, space, axes, value, "max" if last else "min")


def accumulate(
    ctx: Lowering,
    node: Node,
    space: Space,
    axes: Axes,
    value: Expr,
    operator: Reduction,
    finish: Callable[[Space, Expr], Expr] = lambda _, total: total,
) -> None:
    """Y[into] = finish(op of value); one statement where there is nothing to reduce."""
    if axes.is_empty:
        result = ctx.result(node)
        done = cast(finish(space, value), result.dtype)
        ctx.assign(node, space, result, axes.into, done)
    else:
        ctx.accumulate(node, space, axes.kept, value, operator, finish, axes.into)
