"""Loops that end where data says, in place of asking in each iteration.

    for e in 0 .. 75:                                   for e in 0 .. min(75, n[o]):
      acc[l] add= e < n[o] ? x[C[o][e]][l] : 0    ->      acc[l] add= x[C[o][e]][l]

All that such a loop does is update, and behind its end what is added is neutral. It is done last,
on loops that have been proven with all their iterations: these are some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyc.loopnest.index import Affine, Var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    LoopExpr,
    Node,
    Read,
    Value,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.scop.expr import Call, Const
from polyc.scop.scop import identity


def end_by_data(block: Block) -> Block:
    """The nest with such loops ended by data."""

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or node.kind != "sequential" or node.end is not None:
            return node
        ends = {_end(assign, node) for assign in _assigns(node.body)}
        end = ends.pop() if len(ends) == 1 else None
        if end is None:
            return node
        plain = rewrite_nodes(
            node.body, lambda n: _without_test(n, node.var) if isinstance(n, Assign) else n
        )
        return replace(node, body=plain, end=end)

    return rewrite_nodes(block, visit)


def _assigns(block: Block) -> Iterator[Assign]:
    return (node for node in walk_nodes(block) if isinstance(node, Assign))


def _end(assign: Assign, loop: For) -> LoopExpr | None:
    """What the loop's variable is compared with, if from there on nothing is added."""
    match assign.value:
        case Call("select", (Call("lt", (Value(index), end)), _, Const(neutral))) if (
            assign.reduction
        ):
            nothing = bool(neutral == identity(assign.reduction, assign.dtype))
        case _:
            return None
    inside = {loop.var, *(node.var for node in walk_nodes(loop.body) if isinstance(node, For))}
    fixed = inside.isdisjoint(v for e in walk_expr(end) for v in _variables(e))
    written = {a.target.array for a in _assigns(loop.body)}
    read = {e.element.array for e in walk_expr(end) if isinstance(e, Read)}
    behind = _is_behind(index - Affine(0, ((Var(loop.var), 1),)), loop)
    return end if nothing and fixed and behind and written.isdisjoint(read) else None


def _variables(expr: LoopExpr) -> Iterator[str]:
    match expr:
        case Read(element):
            for index in element.index:
                yield from variables(index)
        case Value(index):
            yield from variables(index)


def _is_behind(rest: Affine, loop: For) -> bool:
    """Whether what is added to the loop's variable is never negative."""
    starts = {n.var: n.lower for n in walk_nodes(loop.body) if isinstance(n, For)}
    own = (
        isinstance(atom, Var)
        and factor > 0
        and (start := starts.get(atom.name)) is not None
        and start.is_constant
        and start.constant >= 0
        for atom, factor in rest.terms
    )
    return rest.constant >= 0 and all(own)


def _without_test(assign: Assign, name: str) -> Assign:
    """The update without the question, where it is the one that ends the loop."""
    match assign.value:
        case Call("select", (Call("lt", (Value(index), _)), value, _)) if index == Affine(
            0, ((Var(name), 1),)
        ):
            return replace(assign, value=value)
        case _:
            return assign
