"""What an update asks of data: the conditions without which it changes nothing.

y add= p and i < n ? x[i] : 0              p, i < n
c = c or (p and q)                         p, q
a[i] = p ? x[i] : a[i]                     p
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from polyc.loopnest.nodes import Assign, LoopExpr, Read
from polyc.scop.expr import BOOL, Call, Cast, Const, conjuncts
from polyc.scop.scop import identity


def condition_of(assign: Assign) -> LoopExpr | None:
    """What has to hold for an update to change anything: to add what is not neutral, to be true."""
    match assign.value:
        case Call("select", (condition, _, Const(neutral))) if assign.reduction:
            nothing = bool(neutral == identity(assign.reduction, assign.dtype))
            return condition if nothing else None
        case Call("select", (condition, _, Read(element, dynamic=()))) if element == assign.target:
            return None if assign.reduction else condition
    return keeps(assign)


def keeps(assign: Assign) -> LoopExpr | None:
    """What has to hold for an update to change the truth that it reads, and writes again."""
    match assign.value:
        case Call("or", (Read(element, dynamic=()), condition)) if element == assign.target:
            return None if assign.reduction else condition
    return None


def tests_of(condition: LoopExpr | None) -> list[LoopExpr]:
    """The parts of a condition, all of which have to hold; none of what is no condition."""
    return [] if condition is None else list(conjuncts(condition))


def all_of(tests: Sequence[LoopExpr]) -> LoopExpr:
    return reduce(lambda a, b: Call("and", (a, b), BOOL), tests)


def without(assign: Assign, is_answered: Callable[[LoopExpr], bool]) -> Assign:
    """An assignment without the first test of its condition that has been answered."""
    match assign.value:
        case Call("select", (condition, value, other)):
            tests = tests_of(condition)
            answered = next(filter(is_answered, tests), None)
            if answered is None:
                return assign
            left = [test for test in tests if test is not answered]
            value = granted(value, answered)
            if not left:
                return replace(assign, value=value)
            arguments = (all_of(left), value, other)
            return replace(assign, value=replace(assign.value, arguments=arguments))
    return assign


def granted(expr: LoopExpr, test: LoopExpr) -> LoopExpr:
    """An expression where a test holds.

    x[b <= k and k < e ? c[k] : 0], where b <= k   ->   x[k < e ? c[k] : 0]
    """
    if expr == test:
        return Const(True, BOOL)
    match expr:
        case Call(function, arguments):
            parts = tuple(granted(part, test) for part in arguments)
            if function == "select" and parts[0] == Const(True, BOOL):
                return parts[1]
            if function == "and" and Const(True, BOOL) in parts:
                return parts[1] if parts[0] == Const(True, BOOL) else parts[0]
            return replace(expr, arguments=parts)
        case Cast(argument):
            return replace(expr, argument=granted(argument, test))
        case Read(dynamic=dynamic):
            places = tuple((d, granted(place, test)) for d, place in dynamic)
            return replace(expr, dynamic=places)
    return expr
