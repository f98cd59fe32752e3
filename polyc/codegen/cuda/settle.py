"""Bounds that depend on loops around them become conditions, where a loop must have a fixed size.

    for c0 in 0 .. 4:  # block                     for c0 in 0 .. 4:  # block
      for c1 in 0 .. 256:  # thread          ->      for c1 in 0 .. 256:  # thread
        for c2 in 0 .. min(4, 1000 - …):  # vector     for c2 in 0 .. 4:  # vector
                                                         if c2 < 1000 - …:

On a GPU no loop is peeled: the blocks at a border run the text of all the others. What the ranges
of the loops decide is folded. A condition around loops over threads goes into them.
"""

from __future__ import annotations

from dataclasses import replace

from polyc.loopnest.index import Compare, Condition, Logic, const, decide, var
from polyc.loopnest.nodes import Block, For, If, Node
from polyc.loopnest.ranges import Ranges, interval, simplify_condition, simplify_index
from polyc.loopnest.substitute import substitute_block

KEPT = ("block", "thread", "combine", "mma", "wgmma", "copy", "box")
"""Kinds of loops that are there even for one iteration."""


def settle(block: Block, ranges: Ranges | None = None) -> Block:
    """The nest with loops of fixed size over blocks, threads, copies and lanes."""
    ranges = ranges or {}
    body: list[Node] = []
    for node in block.body:
        body.extend(_settle(node, ranges))
    return replace(block, body=tuple(body))


def _settle(node: Node, ranges: Ranges) -> tuple[Node, ...]:
    match node:
        case Block():
            inside = settle(node, ranges)
            return (inside,) if inside.body else ()
        case If(condition, then, otherwise):
            return _branch(condition, then, otherwise, ranges)
        case For():
            return _loop(node, ranges)
        case _:
            return (node,)


def _branch(
    condition: Condition, then: Block, otherwise: Block | None, ranges: Ranges
) -> tuple[Node, ...]:
    known = simplify_condition(condition, ranges)
    decided = decide(known)
    if decided is not None:
        chosen = then if decided else otherwise
        inside = settle(chosen, ranges) if chosen else None
        return (inside,) if inside and inside.body else ()
    other = settle(otherwise, ranges) if otherwise else None
    inside = settle(then, ranges)
    if other is None and inside.body and all(map(_is_phase, inside.body)) and not inside.locals:
        return tuple(_ask_inside(node, known) for node in inside.body)
    return (If(known, inside, other),)


def _is_phase(node: Node) -> bool:
    return isinstance(node, For) and node.kind == "thread"


def _ask_inside(node: Node, condition: Condition) -> Node:
    """A loop over threads with a condition inside: all threads come by, and barriers may follow."""
    assert isinstance(node, For)
    inner = node.body.body
    if len(inner) == 1 and _is_phase(inner[0]) and not node.body.locals:
        return replace(node, body=Block((_ask_inside(inner[0], condition),)))
    return replace(node, body=Block((If(condition, node.body),)))


def _loop(loop: For, ranges: Ranges) -> tuple[Node, ...]:
    lower, upper = simplify_index(loop.lower, ranges), simplify_index(loop.upper, ranges)
    first, last = interval(lower, ranges)[0], interval(upper, ranges)[1] - 1
    if last < first:
        return ()
    body = loop.body
    if loop.kind != "sequential":
        start = lower.constant if lower.is_constant else first
        if not (lower.is_constant and upper.is_constant):
            due: list[Condition] = []
            if not lower.is_constant:
                due.append(Compare("ge", var(loop.var) - lower))
            due.append(Compare("ge", upper - 1 - var(loop.var)))
            body = Block((If(Logic("and", tuple(due)), body),))
        lower, upper = const(start), const(last + 1)
    if first == last and loop.kind not in KEPT:
        return (settle(substitute_block(body, {loop.var: lower}), ranges),)
    inside = {**ranges, loop.var: (first, last)}
    return (replace(loop, lower=lower, upper=upper, body=settle(body, inside)),)
