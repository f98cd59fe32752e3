"""The multiply-add that a nest of an instruction's loops stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.loopnest.index import const
from polyc.loopnest.nodes import Assign, Block, Element, For, LoopExpr, Node, Read
from polyc.scop.expr import Call, Cast


@dataclass(frozen=True)
class MultiplyAdd:
    """sums add= mul(left, right), inside `loops`, outermost first; factors as they are stored."""

    loops: tuple[For, ...]
    sums: Element
    left: Read
    right: Read


def match_multiply_add(nest: For) -> MultiplyAdd:
    """What is inside a nest of loops of its kind, which all begin at 0."""
    loops: list[For] = []
    node: Node = nest
    while isinstance(node, For):
        assert node.kind == nest.kind
        assert node.lower == const(0)
        loops.append(node)
        node = only_node(node.body)
    assert isinstance(node, Assign)
    assert node.reduction == "add"
    assert isinstance(node.value, Call)
    assert node.value.function == "mul"
    left, right = map(_stored, node.value.arguments)
    return MultiplyAdd(tuple(loops), node.target, left, right)


def only_node(block: Block) -> Node:
    """The one node of a block, blocks in it opened up."""
    (node,) = block.body
    return only_node(node) if isinstance(node, Block) else node


def _stored(factor: LoopExpr) -> Read:
    """A factor as it is stored; the instruction widens it."""
    match factor:
        case Read():
            return factor
        case Cast(Read() as read, dtype) if dtype == np.float32:
            return read
    raise AssertionError(f"{factor} is not what a fragment is loaded from")
