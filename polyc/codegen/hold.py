"""Loops that keep what they update in registers: results are loaded before, and stored behind.

    for k in 0 .. n:  # hold                  for i in 0 .. 4: for j in 0 .. 16: acc[i, j] = C[i, j]
      for i in 0 .. 4:  # unroll              for k in 0 .. n:
        for j in 0 .. 16:  # vector     ->      for i in 0 .. 4: for j in 0 .. 16:
          C[i, j] add= A[i, k] * B[k, j]          acc[i, j] add= A[i, k] * B[k, j]
                                              for i in 0 .. 4: for j in 0 .. 16: C[i, j] = acc[i, j]

Not if the loop does not run: others may write there at the same time.

That nothing else in such a loop touches the same elements is proven (`analysis/held.py`). No sum
changes its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from polyc.loopnest.index import Affine, Compare, var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    Node,
    Read,
    extent_of,
    rewrite_nodes,
)
from polyc.loopnest.rewrite import rewrite_elements


def hold(block: Block) -> Block:
    """The nest with the results of `hold` loops in local arrays meanwhile."""
    names = (f"acc_{k}" for k in count())
    return rewrite_nodes(block, lambda node: _held(node, names))


def held_element(loop: For) -> tuple[Assign, list[For]] | None:
    """What a loop around one assignment updates at places that stay, and the loops over them."""
    node: Node = loop
    around: list[For] = []
    while isinstance(node, For | Block):
        if isinstance(node, For):
            around.append(node)
            node = node.body
        elif len(node.body) == 1 and not node.locals:
            node = node.body[0]
        else:
            return None
    if not isinstance(node, Assign):
        return None
    moving = frozenset[str]().union(*(variables(index) for index in node.target.index))
    points = [each for each in around if each.var in moving]
    if loop in points or any(extent_of(p) is None or p.step != 1 for p in points):
        return None
    return node, points


def _held(node: Node, names: Iterator[str]) -> Node:
    if not (isinstance(node, For) and node.kind == "hold"):
        return node
    sequential = replace(node, kind="sequential")
    found = held_element(node)
    if found is None:
        return sequential
    assign, points = found
    shape = tuple(extent_of(p) or 0 for p in points)
    local = Local(next(names), assign.dtype, shape, assign.target.array)
    place = Element(local.name, tuple(_position(p) for p in points))

    def moved(each: Node) -> Node:
        if not isinstance(each, Assign):
            return each
        return rewrite_elements(each, lambda e: place if e == assign.target else e)

    begin = replace(assign, target=place, value=Read(assign.target, assign.dtype), reduction=None)
    end = replace(assign, value=Read(place, assign.dtype), reduction=None)
    inside = rewrite_nodes(Block((sequential,)), moved)
    block = Block((_around(begin, points), *inside.body, _around(end, points)), (local,))
    return block if extent_of(node) else If(Compare("ge", node.upper - node.lower - 1), block)


def _position(loop: For) -> Affine:
    """The number of an iteration."""
    return var(loop.var) - loop.lower


def _around(assign: Assign, points: list[For]) -> Node:
    node: Node = assign
    for loop in reversed(points):
        node = replace(loop, body=Block((node,)))
    return node
