"""Indices at one point: each loop in the middle of its iterations, sizes as they are estimated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polyc.loopnest.index import (
    Affine,
    Atom,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Scaled,
    Var,
)
from polyc.types.estimate import estimate
from polyc.types.sizes import Extent, Size

Point = Mapping[str, int]
"""The value of each loop variable; a name that is none of these is a size."""

Value = Callable[[Extent], int]
"""What a size is taken for: `estimate`, or `hinted`."""


def evaluate(index: Affine, point: Point, value: Value = estimate) -> int:
    """The value of an index at a point."""
    return index.constant + sum(c * _atom(atom, point, value) for atom, c in index.terms)


def holds(condition: Condition, point: Point, value: Value = estimate) -> bool:
    """Whether a condition holds at a point."""
    match condition:
        case Compare(operator, left):
            there = evaluate(left, point, value)
            return there >= 0 if operator == "ge" else there == 0
        case Logic(operator, arguments):
            each = (holds(argument, point, value) for argument in arguments)
            return all(each) if operator == "and" else any(each)


def _atom(atom: Atom, point: Point, value: Value) -> int:
    match atom:
        case Var(name):
            return point[name] if name in point else value(Size.of(name))
        case FloorDiv(argument, divisor):
            return evaluate(argument, point, value) // divisor
        case Mod(argument, divisor):
            return evaluate(argument, point, value) % divisor
        case Extremum(which, arguments):
            return (min if which == "min" else max)(evaluate(a, point, value) for a in arguments)
        case Scaled(sizes, argument):
            return value(Size(((sizes, 1),))) * evaluate(argument, point, value)
        case Choice(condition, then, otherwise):
            return evaluate(then if holds(condition, point, value) else otherwise, point, value)
