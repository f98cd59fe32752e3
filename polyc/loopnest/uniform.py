"""What an expression of a vector loop moves with, and whether it is one number for all lanes."""

from __future__ import annotations

from polyc.loopnest.index import variables
from polyc.loopnest.nodes import Assign, For, LoopExpr, Read, Value, children, walk_expr, walk_nodes
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


def widest_in(loop: For) -> int:
    """Bytes of the widest element that the lanes of a vector loop compute with; 0 if it has none.

    A number that is the same in all lanes, as float32(n) of a size n, is computed once for them.
    """
    assigns = (n for n in walk_nodes(loop) if isinstance(n, Assign))
    return max((max(n.dtype.itemsize, _widest(n.value, loop)) for n in assigns), default=0)


def _widest(expr: LoopExpr, loop: For) -> int:
    if is_number(expr, loop):
        return expr.dtype.itemsize
    return max([expr.dtype.itemsize, *(_widest(part, loop) for part in children(expr))])
