"""The larger or smaller of two values, as people write it, and reductions by it.

    top = max(top, x[i])                        top larger=  x[i]
    if x[i] > top: top = x[i]             ->
    top = x[i] if x[i] > top else top

Python keeps the first of two unless the other is greater, which NaN never is. So a maximum passes
over NaN, and is the same in whatever order it is taken, except that zeros of both signs are equal.
`max(x[i], top)` is not: NaN would stay if it comes first, and be lost after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyc.loops.read.functions import BY_NAME
from polyc.loops.read.syntax import (
    Apply,
    Choice,
    Comparison,
    Element,
    Expression,
    Name,
    Number,
    same_but_for_places,
    walk,
)
from polyc.loops.read.types import is_whole
from polyc.scop.expr import Expr, call
from polyc.scop.scop import Reduction, identity

FLOATS: dict[str, Reduction] = {"min": "smaller", "max": "larger"}
WHOLE: dict[str, Reduction] = {"min": "min", "max": "max"}


def operator_of(function: str, dtype: np.dtype) -> Reduction:
    """What Python's `min` or `max` is of numbers of a type."""
    return WHOLE[function] if is_whole(dtype) else FLOATS[function]


def extremum(function: str, parts: Sequence[Expr]) -> Expr:
    """`min` or `max` of values of one type: the first that no other is less, or greater, than."""
    result = parts[0]
    for part in parts[1:]:
        result = call(operator_of(function, part.dtype), result, part)
    return result


def as_extremum(at: Expression) -> Apply | None:
    """The expression as a call of `min` or `max`, if it is one of two or more values.

    b if b > a else a   ->   max(a, b)
    """
    match at:
        case Apply(function) if BY_NAME[function].rule == "least":
            return at
        case Choice(Comparison("<" | ">" as operator, left, right), then, otherwise):
            less, greater = (left, right) if operator == "<" else (right, left)
            for name, taken, kept in (("min", less, greater), ("max", greater, less)):
                if same_but_for_places(then, taken) and same_but_for_places(otherwise, kept):
                    return Apply(name, (otherwise, then), at.place)
    return None


def reduced_by(
    target: Name | Element, at: Expression, dtype: np.dtype
) -> tuple[str, Expression] | None:
    """`min` or `max`, and the value, if what is assigned is that of the target and the value.

    max(top, a, b)   ->   max(-inf, a, b), where b counts as well if a is NaN
    """
    found = as_extremum(at)
    if found is None or not same_but_for_places(found.arguments[0], target):
        return None
    rest = found.arguments[1:]
    runtime = BY_NAME[found.function].runtime
    if len(rest) > 1 and not is_whole(dtype):
        nothing = identity(operator_of(runtime, dtype), dtype)
        rest = (Number(float(nothing), found.place), *rest)
    value = rest[0] if len(rest) == 1 else replace(found, arguments=rest)
    if any(same_but_for_places(part, target) for part in walk(value)):
        return None
    return runtime, value
