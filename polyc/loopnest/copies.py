"""Assignments that only move an element, perhaps under conditions.

shared[t] = select(0 <= i < n, x[i], 0)        x[i], where 0 <= i < n, and zero elsewhere
"""

from __future__ import annotations

from polyc.loopnest.index import Condition
from polyc.loopnest.nodes import LoopExpr, Read, Test
from polyc.scop.expr import Call, Const


def find_source(value: LoopExpr) -> tuple[Read | None, tuple[Condition, ...]]:
    """The element that a value is, where conditions hold; zero elsewhere. None if it is another."""
    match value:
        case Read(dynamic=()):
            return value, ()
        case Call("select", (Test(condition), inner, Const(zero))) if str(zero) in ("0", "0.0"):
            read, conditions = find_source(inner)
            return read, (condition, *conditions)
    return None, ()
