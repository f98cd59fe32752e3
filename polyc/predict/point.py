"""Indices at one point: each loop in the middle of its iterations, sizes as they are hinted."""

from __future__ import annotations

from collections.abc import Mapping

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
from polyc.types.estimate import hinted
from polyc.types.sizes import Size

Point = Mapping[str, int]
"""The value of each loop variable; a name that is none of these is a size."""


def evaluate(index: Affine, point: Point) -> int:
    """The value of an index at a point."""
    return index.constant + sum(c * _atom(atom, point) for atom, c in index.terms)


def holds(condition: Condition, point: Point) -> bool:
    """Whether a condition holds at a point."""
    match condition:
        case Compare(operator, left):
            value = evaluate(left, point)
            return value >= 0 if operator == "ge" else value == 0
        case Logic(operator, arguments):
            each = (holds(argument, point) for argument in arguments)
            return all(each) if operator == "and" else any(each)


def _atom(atom: Atom, point: Point) -> int:
    match atom:
        case Var(name):
            return point[name] if name in point else hinted(Size.of(name))
        case FloorDiv(argument, divisor):
            return evaluate(argument, point) // divisor
        case Mod(argument, divisor):
            return evaluate(argument, point) % divisor
        case Extremum(which, arguments):
            return (min if which == "min" else max)(evaluate(a, point) for a in arguments)
        case Scaled(sizes, argument):
            return hinted(Size(((sizes, 1),))) * evaluate(argument, point)
        case Choice(condition, then, otherwise):
            return evaluate(then if holds(condition, point) else otherwise, point)
