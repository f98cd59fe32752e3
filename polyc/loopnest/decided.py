"""What is known of loops decides conditions, minima and maxima in them.

    i in 1 .. n:    select(i >= 1, x[max(i - 1, 0)], 0)   ->   select(true, x[i - 1], 0)

The choice itself stays until the proof is done, which compares it with what is stated; behind it
only what is chosen is left (`drop_decided`).
"""

from __future__ import annotations

from dataclasses import replace

from polyc.loopnest.index import Affine, Compare, Condition, Logic, decide
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    If,
    LoopExpr,
    Node,
    Read,
    Test,
    Value,
    rewrite_nodes,
)
from polyc.loopnest.ranges import Known, simplify_condition, simplify_index
from polyc.scop.expr import Call, Cast


def facts_of(condition: Condition, holds: bool) -> tuple[Affine, ...]:
    """Indices that are not negative where a condition holds, or where it does not."""
    match condition:
        case Compare("ge", left):
            return (left,) if holds else (left * -1 - 1,)
        case Compare("eq", left):
            return (left, left * -1) if holds else ()
        case Logic(operator, arguments) if (operator == "and") == holds:
            return tuple(fact for a in arguments for fact in facts_of(a, holds))
    return ()


def simplify_block(block: Block, known: Known) -> Block:
    """A body without loops, with what is known decided."""
    nodes: list[Node] = []
    for node in block.body:
        match node:
            case Block():
                nodes.append(simplify_block(node, known))
            case If(condition, then, otherwise):
                condition = simplify_condition(condition, known)
                decided = decide(condition)
                if decided is not False:
                    then = simplify_block(then, known.and_facts(*facts_of(condition, True)))
                if decided is not True and otherwise:
                    fails = known.and_facts(*facts_of(condition, False))
                    otherwise = simplify_block(otherwise, fails)
                if decided is None:
                    nodes.append(If(condition, then, otherwise))
                elif chosen := then if decided else otherwise:
                    nodes.extend((chosen,) if chosen.locals else chosen.body)
            case Assign():
                nodes.append(_simplified_assign(node, known))
            case _:
                nodes.append(node)
    return replace(block, body=tuple(nodes))


def _simplified_assign(assign: Assign, known: Known) -> Assign:
    def element(e: Element) -> Element:
        return Element(e.array, tuple(simplify_index(i, known) for i in e.index))

    def visit(expr: LoopExpr) -> LoopExpr:
        match expr:
            case Test(condition):
                return replace(expr, condition=simplify_condition(condition, known))
            case Value(index):
                return replace(expr, index=simplify_index(index, known))
            case Read(place, _, dynamic):
                computed = tuple((d, visit(e)) for d, e in dynamic)
                return replace(expr, element=element(place), dynamic=computed)
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(map(visit, arguments)))
            case Cast(argument=argument):
                return replace(expr, argument=visit(argument))
        return expr

    return replace(assign, target=element(assign.target), value=visit(assign.value))


def drop_decided(block: Block) -> Block:
    """The nest with choices that are decided as what they choose. It stands behind the proof.

    select(true, x[i - 1], 0)   ->   x[i - 1]

    What is guarded has only its own conditions to wait for: it is read anyway if all are decided.
    """

    def visit(expr: LoopExpr, is_open: bool) -> LoopExpr:
        match expr:
            case Call("select", (Test(condition), then, otherwise)):
                decided = decide(condition)
                if decided is not None:
                    return visit(then if decided else otherwise, is_open)
                parts = (Test(condition), visit(then, True), visit(otherwise, True))
                return replace(expr, arguments=parts)
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(visit(a, is_open) for a in arguments))
            case Cast(argument=argument):
                return replace(expr, argument=visit(argument, is_open))
            case Read(dynamic=dynamic, guarded=guarded):
                computed = tuple((d, visit(e, is_open)) for d, e in dynamic)
                return replace(expr, dynamic=computed, guarded=guarded and is_open)
        return expr

    def rewrite(node: Node) -> Node:
        return replace(node, value=visit(node.value, False)) if isinstance(node, Assign) else node

    return rewrite_nodes(block, rewrite)
