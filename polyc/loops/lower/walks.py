"""Loops whose bounds are data: `for k in range(first[i], first[i + 1]): s += values[k]`.

Of such a loop sets have all iterations that it could have, which is what the arrays have that are
subscripted by its variable; the bounds are locals, and each statement inside asks whether it is
between them. What is left when it is printed is what was written (`codegen/bound_by_data.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyc.loops.lower.affine import Scope, affine
from polyc.loops.read.syntax import (
    Binary,
    Element,
    Expression,
    Loop,
    Name,
    Number,
    commands,
    expressions,
    walk,
)
from polyc.scop.expr import INT64, Const, Expr, Index, call
from polyc.scop.scop import Statement

OUTSIDE = 2**62
"""A place that no array has."""


@dataclass(frozen=True)
class Asked:
    """A question that all statements of a loop ask in each iteration: whether there is one."""

    question: Expression


def find_extent(loop: Loop, scope: Scope) -> isl.PwAff:
    """# L -> Z: how far a loop may go by the arrays that are subscripted by its variable.

    x[k], y[k + 1]   ->   min(len(x), len(y) - 1), but not less than 0
    """
    if loop.step != 1:
        loop.place.refuse(
            f"a bound of the loop over {loop.variable!r} is data, and its step is not 1",
            "count by 1, and multiply",
        )
    shortest: isl.PwAff | None = None
    for command in commands(loop.body):
        for part in (part for e in expressions(command) for part in walk(e)):
            if not isinstance(part, Element):
                continue
            for subscript, extent in zip(part.subscripts, scope.shapes[part.array], strict=False):
                ahead = _ahead(subscript, loop.variable)
                if ahead is not None:
                    size = scope.size(extent).add_constant_val(isl.Val(-ahead))
                    shortest = size if shortest is None else shortest.min(size)
    if shortest is None:
        loop.place.refuse(
            f"a bound of the loop over {loop.variable!r} is not affine in loop variables, sizes "
            "and whole numbers, and no array is subscripted by it",
            "use sums, multiples, //, %, min and max of them, or loop over an array",
        )
    return shortest.max(shortest.sub(shortest))


def _ahead(subscript: Expression, variable: str) -> int | None:
    """How far ahead of a loop's variable a subscript is, if it follows it."""
    match subscript:
        case Name(name) if name == variable:
            return 0
        case Binary("+", Name(name), Number(int() as ahead)) if name == variable:
            return max(ahead, 0)
        case Binary("-", Name(name), Number(int())) if name == variable:
            return 0
    return None


def within(bound: Statement, extent: isl.PwAff, scope: Scope) -> Expr:
    """A bound that is data, looked at: that it is one of 0 .. extent."""
    after = extent.add_constant_val(isl.Val(1))
    after = after.set_tuple_id(isl.dim_type.in_, bound.domain.get_tuple_id())
    for k, iterator in enumerate(scope.iterators):
        after = after.set_dim_id(isl.dim_type.in_, k, isl.Id(iterator))
    negative = call("lt", bound.value, Const(0, INT64))
    place = call("select", negative, Const(OUTSIDE, INT64), bound.value)
    return call("index", place, Index(after, INT64), dtype=INT64)


def picks_places(expression: Expression, scope: Scope) -> bool:
    """Whether data picks places that an expression reads."""
    return any(
        affine(subscript, scope) is None
        for part in walk(expression)
        if isinstance(part, Element)
        for subscript in part.subscripts
    )
