"""Values that one iteration writes and the next one reads go on in a variable.

    for j in 1 .. n:                        if n >= 2:
      A[j] = min(A[j - 1] + 1, B[j])          last_0 = A[0]
                                       ->     for j in 1 .. n:
                                                last_0 = min(last_0 + 1, B[j])
                                                A[j] = last_0

A store and the load behind it take a core some five cycles; a register takes none (scalar
replacement: Callahan, Carr and Kennedy 1990, "Improving register allocation for subscripted
variables"). Only where one assignment in the loop writes the array, so that nothing comes between;
what is read after it in the text stays in memory. No result changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from polyc.loopnest.index import Affine, Compare, const, var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    LoopExpr,
    Node,
    Read,
    rewrite_nodes,
    walk_expr,
)
from polyc.loopnest.rewrite import rewrite_elements
from polyc.loopnest.substitute import substitute_element
from polyc.scop.expr import Call


def carry(block: Block) -> Block:
    """The nest with what innermost loops hand on from iteration to iteration in variables."""
    names = (f"last_{k}" for k in count())
    return rewrite_nodes(block, lambda node: _carried(node, names))


def _carried(node: Node, names: Iterator[str]) -> Node:
    if not (isinstance(node, For) and node.kind == "sequential" and node.step == 1):
        return node
    assigns = [n for n in node.body.body if isinstance(n, Assign)]
    if not assigns or len(assigns) < len(node.body.body):
        return node
    loop, before, locals_ = node, list[Node](), list[Local]()
    for assign in assigns:
        previous = _previous(node, assign, assigns)
        if previous is None:
            continue
        name = next(names)
        held = Element(name, ())
        locals_.append(Local(name, assign.dtype, (), assign.target.array, in_registers=True))
        first = substitute_element(previous, {node.var: node.lower})
        before.append(_set(assign, held, Read(first, assign.dtype)))
        loop = replace(loop, body=_in_variable(loop.body, assign, previous, held))
    if not locals_:
        return node
    runs = Compare("ge", node.upper - node.lower - 1)
    return If(runs, Block((*before, loop), tuple(locals_)))


def _previous(loop: For, assign: Assign, assigns: list[Assign]) -> Element | None:
    """What an assignment has written in the iteration before, if it or one before it reads that."""
    target = assign.target
    own = {local.name for local in loop.body.locals}
    if target.array in own or not any(loop.var in variables(i) for i in target.index):
        return None
    if sum(other.target.array == target.array for other in assigns) > 1:
        return None
    earlier: Affine = var(loop.var) - const(1)
    previous = substitute_element(target, {loop.var: earlier})
    reads = [
        part
        for other in assigns[: assigns.index(assign) + 1]
        for part in walk_expr(other.value)
        if isinstance(part, Read) and part.element == previous
    ]
    plain = reads and not any(read.guarded or read.dynamic for read in reads)
    return previous if plain and reads[0].dtype == assign.dtype else None


def _in_variable(body: Block, assign: Assign, previous: Element, held: Element) -> Block:
    """The body with the value in the variable up to the assignment, which sets it."""
    nodes: list[Node] = []
    done = False
    for node in body.body:
        if not isinstance(node, Assign) or done:
            nodes.append(node)
            continue
        done = node.statement == assign.statement and node.target == assign.target
        moved = rewrite_elements(node, lambda e: held if e == previous else e)
        if not done:
            nodes.append(moved)
            continue
        value: LoopExpr = moved.value
        if moved.reduction:
            value = Call(moved.reduction, (Read(node.target, node.dtype), value), node.dtype)
        nodes += [_set(node, held, value), _set(node, node.target, Read(held, node.dtype))]
    return replace(body, body=tuple(nodes))


def _set(assign: Assign, target: Element, value: LoopExpr) -> Assign:
    return replace(assign, target=target, value=value, reduction=None)
