"""Reductions into something else than the whole of output 0: a slice, a second output, a statistic.

Each is the three statements of `Lowering.accumulate`: initialise a total, update it, finish it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from polyc.graph.ir import Node
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.emit import Emitter
from polyc.scop.lower.functions import absolute, div, mul, power, sqrt
from polyc.scop.lower.space import Ref, Space
from polyc.scop.scop import Reduction

Finish = Callable[[Space, Expr], Expr]


def grid_iterators(dimensions: Iterable[int]) -> list[str]:
    """The iterators of `Lowering.grid` for some dimensions: (0, 2) -> i0, i2."""
    return [f"i{k}" for k in dimensions]


def accumulate_into(
    ctx: Emitter,
    node: Node,
    target: Ref,
    space: Space,
    at: Sequence[str],
    value: Expr,
    operator: Reduction,
    finish: Finish = lambda _, total: total,
    into: Sequence[str] | None = None,
    where: str = "",
) -> None:
    """target[into] = finish(op over the other iterators of value), as `Lowering.accumulate`.

    `where` is a condition on `at`: results for which it does not hold are left as they are.
    """
    kept = {i: space.extents[i] for i in at}
    total = ctx.array(f"{target.array}_acc", value.dtype, list(kept.values()))
    space = space.restricted(where) if where else space
    ctx.reduce(node, space, total, at, value, operator, where)
    end = replace(ctx.space(node, **kept), where=where)
    done = cast(finish(end, end.load(total, *at)), target.dtype)
    ctx.assign(node, end, target, at if into is None else into, done)


def statistic(
    ctx: Lowering,
    node: Node,
    ref: Ref,
    kept: Sequence[int],
    name: str,
    value: Callable[[Space], Expr],
    operator: Reduction,
    finish: Finish | None = None,
) -> Ref:
    """A temporary s[kept] = finish(op of value over the other dimensions of a tensor).

        kept (0,):   s[i0] = finish(sum of value(i0, i1, i2) over i1, i2)

    `value` gets the grid over `ref` with the iterators i0, i1, …; `name` ends the array's name.
    """
    space = ctx.grid(node, ref.shape)
    at, element = grid_iterators(kept), value(space)
    shape = [ref.shape[k] for k in kept]
    target = ctx.array(f"{node.outputs[0]}_{name}", element.dtype, shape)
    if finish is None:
        ctx.reduce(node, space, target, at, element, operator)
    else:
        accumulate_into(ctx, node, target, space, at, element, operator, finish)
    return target


def mean_of(count: int) -> Finish:
    """total -> total / count"""
    return lambda end, total: div(total, end.number(count, total.dtype))


def power_of_magnitude(x: Expr, p: int) -> Expr:
    """|x|^p, with no call of pow for the common exponents."""
    if p == 1:
        return absolute(x)
    if p == 2:
        return mul(x, x)
    return power(absolute(x), p)


def root_of(p: int) -> Finish:
    """total -> total^(1/p)"""

    def finish(_: Space, total: Expr) -> Expr:
        if p == 1:
            return total
        if p == 2:
            return sqrt(total)
        return power(total, 1 / p)

    return finish
