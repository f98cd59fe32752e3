"""Generated loops with other indices in place of loop variables: unrolled, peeled, moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyc.loopnest.index import TRUE, Affine, Compare, Condition, Logic, const, decide, substitute
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    LoopExpr,
    Node,
    Read,
    Test,
    TileMove,
    Value,
    rewrite_nodes,
)
from polyc.scop.expr import Call, Cast


def substitute_condition(condition: Condition, values: Mapping[str, Affine]) -> Condition:
    """condition with loop variables replaced; decided parts are folded."""
    match condition:
        case Compare(operator, left):
            return Compare(operator, substitute(left, values))
        case Logic(operator, arguments):
            kept = []
            for argument in (substitute_condition(a, values) for a in arguments):
                decided = decide(argument)
                if decided is None:
                    kept.append(argument)
                elif decided == (operator == "or"):
                    return TRUE if decided else Logic("or", ())
            return kept[0] if len(kept) == 1 else Logic(operator, tuple(kept))


def substitute_element(element: Element, values: Mapping[str, Affine]) -> Element:
    return Element(element.array, tuple(substitute(i, values) for i in element.index))


def substitute_expr(expr: LoopExpr, values: Mapping[str, Affine]) -> LoopExpr:
    """expr with loop variables replaced."""
    match expr:
        case Read(element, dtype, dynamic, guarded):
            computed = tuple((d, substitute_expr(e, values)) for d, e in dynamic)
            return Read(substitute_element(element, values), dtype, computed, guarded)
        case Value(index):
            return replace(expr, index=substitute(index, values))
        case Test(condition):
            return replace(expr, condition=substitute_condition(condition, values))
        case Call(function, arguments, dtype):
            return Call(function, tuple(substitute_expr(a, values) for a in arguments), dtype)
        case Cast(argument=argument):
            return replace(expr, argument=substitute_expr(argument, values))
        case _:
            return expr


def depends_on(block: Block, name: str) -> bool:
    """Whether a variable occurs in loops, tests and accesses: whether 0 in its place changes any.

    The instances that assignments remember do not count: they are for the proof.
    """
    plain = rewrite_nodes(block, lambda n: replace(n, instance=()) if isinstance(n, Assign) else n)
    return substitute_block(plain, {name: const(0)}) != plain


def substitute_block(block: Block, values: Mapping[str, Affine]) -> Block:
    """The block with loop variables replaced (not those that it binds)."""
    body = tuple(substitute_node(n, values) for n in block.body)
    near = (replace(x, first=substitute_element(x.first, values)) for x in block.near)
    return replace(block, body=body, near=tuple(near))


def substitute_node(node: Node, values: Mapping[str, Affine]) -> Node:
    """node with loop variables replaced (not those that it binds)."""
    match node:
        case Assign():
            return replace(
                node,
                instance=tuple(substitute(i, values) for i in node.instance),
                target=substitute_element(node.target, values),
                value=substitute_expr(node.value, values),
            )
        case Block():
            return substitute_block(node, values)
        case For():
            return replace(
                node,
                lower=substitute(node.lower, values),
                upper=substitute(node.upper, values),
                body=substitute_block(node.body, values),
            )
        case If():
            other = substitute_block(node.otherwise, values) if node.otherwise else None
            return replace(
                node,
                condition=substitute_condition(node.condition, values),
                then=substitute_block(node.then, values),
                otherwise=other,
            )
        case TileMove():
            first, second = (substitute_element(e, values) for e in (node.first, node.second))
            return replace(node, first=first, second=second)
        case _:
            return node
