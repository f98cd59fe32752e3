"""Assignments and expressions of generated loops with other elements, or other conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from polyc.loopnest.index import Condition
from polyc.loopnest.nodes import Assign, Element, For, LoopExpr, Read, Test
from polyc.scop.expr import Call, Cast


def rewrite_elements(assign: Assign, rewrite: Callable[[Element], Element]) -> Assign:
    """The assignment with every element that it touches rewritten."""
    value = rewrite_reads(assign.value, rewrite)
    return replace(assign, target=rewrite(assign.target), value=value)


def rewrite_loop(loop: For, rewrite: Callable[[Element], Element]) -> For:
    """The loop, but not its body, with every element rewritten that it touches itself."""
    said = (loop.begin, loop.end, loop.only, loop.left)
    begin, end, only, left = (None if e is None else rewrite_reads(e, rewrite) for e in said)
    ahead = tuple(map(rewrite, loop.ahead))
    return replace(loop, ahead=ahead, begin=begin, end=end, only=only, left=left)


def rewrite_reads(expr: LoopExpr, rewrite: Callable[[Element], Element]) -> LoopExpr:
    """The expression with every element that it reads rewritten."""
    match expr:
        case Read(element, dtype, dynamic, guarded):
            computed = tuple((d, rewrite_reads(e, rewrite)) for d, e in dynamic)
            return Read(rewrite(element), dtype, computed, guarded)
        case Call(function, arguments, dtype):
            return Call(function, tuple(rewrite_reads(a, rewrite) for a in arguments), dtype)
        case Cast(argument=argument):
            return replace(expr, argument=rewrite_reads(argument, rewrite))
    return expr


def rewrite_tests(expr: LoopExpr, rewrite: Callable[[Condition], Condition]) -> LoopExpr:
    """The expression with every condition in it rewritten."""
    match expr:
        case Test(condition):
            return replace(expr, condition=rewrite(condition))
        case Read(dynamic=dynamic):
            return replace(expr, dynamic=tuple((d, rewrite_tests(e, rewrite)) for d, e in dynamic))
        case Call(arguments=arguments):
            return replace(expr, arguments=tuple(rewrite_tests(a, rewrite) for a in arguments))
        case Cast(argument=argument):
            return replace(expr, argument=rewrite_tests(argument, rewrite))
        case _:
            return expr
