"""Indices that divide by a constant, in vectors that no multiple of it cuts.

    for t in 0 .. 768 step 48:  # parallel              for t in 0 .. 768 step 48:  # parallel
      for l in 16 .. 32:  # vector                ->      for l in 16 .. 32:  # vector
        y[floor((t + l)/64)][(t + l) mod 64] = …            y[floor((t + 16)/64)][… + l - 16] = …

So a vector that writes a head of an attention is stored as one, and not lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyc.loopnest.index import FloorDiv, Mod
from polyc.loopnest.multiples import Multiples, divide_once, with_loop
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Node,
    Read,
    extent_of,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.rewrite import rewrite_elements


def divide_in_vectors(block: Block) -> Block:
    """The nest with such divisions made once a vector."""
    assigns = (node for node in walk_nodes(block) if isinstance(node, Assign))
    if not any(_divides(element) for assign in assigns for element in _elements(assign)):
        return block
    return _visit_block(block, {})


def _visit_block(block: Block, known: Multiples) -> Block:
    return replace(block, body=tuple(_visit(node, known) for node in block.body))


def _visit(node: Node, known: Multiples) -> Node:
    match node:
        case Block():
            return _visit_block(node, known)
        case If(then=then, otherwise=otherwise):
            other = _visit_block(otherwise, known) if otherwise else None
            return replace(node, then=_visit_block(then, known), otherwise=other)
        case For(kind="vector") if node.step == 1 and extent_of(node) is not None:
            return replace(node, body=_divide(node, known))
        case For(body=body):
            return replace(node, body=_visit_block(body, with_loop(known, node)))
        case _:
            return node


def _divide(loop: For, known: Multiples) -> Block:
    def divided(element: Element) -> Element:
        return replace(element, index=tuple(divide_once(i, loop, known) for i in element.index))

    def rewrite(node: Node) -> Node:
        if not isinstance(node, Assign) or not any(map(_divides, _elements(node))):
            return node
        return rewrite_elements(node, divided)

    return rewrite_nodes(loop.body, rewrite)


def _elements(assign: Assign) -> Iterator[Element]:
    yield assign.target
    yield from (e.element for e in walk_expr(assign.value) if isinstance(e, Read))


def _divides(element: Element) -> bool:
    return any(isinstance(atom, FloorDiv | Mod) for i in element.index for atom, _ in i.terms)
