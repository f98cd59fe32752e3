"""What an expression of a vector loop moves with, and whether it is one number for all lanes."""

from __future__ import annotations

from polyc.loopnest.index import variables
from polyc.loopnest.nodes import For, LoopExpr, Read, Value, walk_expr
from polyc.types.element_types import is_narrow


def variables_of(expr: LoopExpr) -> frozenset[str]:
    """The loop variables in the indices of an expression."""
    found: set[str] = set()
    for e in walk_expr(expr):
        indices = e.element.index if isinstance(e, Read) else ()
        for index in (*indices, *((e.index,) if isinstance(e, Value) else ())):
            found |= variables(index)
    return frozenset(found)


def is_number(expr: LoopExpr, lanes: For | None) -> bool:
    """Whether an expression is of literals and loop variables alone, and the same in all lanes."""
    parts = [*walk_expr(expr)]
    if any(isinstance(e, Read) or e.dtype.kind not in "iuf" or is_narrow(e.dtype) for e in parts):
        return False
    return lanes is None or lanes.var not in variables_of(expr)
