"""Conditions on sizes go out of loops: what is asked in each iteration has one answer for a call.

    for x in 0 .. ceil(n / 9):                if n >= 121:
      for o in 0 .. 48:                         for x in 0 .. ceil(n / 9):
        if n >= 121:                 ->           for o in 0 .. 48: A
          A                                     else:
        else:                                     for x in 0 .. ceil(n / 9):
          B                                         for o in 0 .. 48: B

isl asks where it knows of a loop that it runs once for small sizes, and says what that iteration is
without it. Such a condition inside of a loop would keep it from being cut into vectors, and what it
updates from being kept in registers. A parallel loop stays outside: it belongs to all threads.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from polyc.loopnest.index import compared, variables
from polyc.loopnest.nodes import Block, For, If, Node, rewrite_nodes


def unswitch(block: Block, sizes: Set[str]) -> Block:
    """The nest with the same instances in the same order, and such conditions out of loops.

    They stay beside what is done in any case, and in a parallel loop. `sizes` are the variables
    that no loop binds.
    """

    def settle(node: Node) -> Node:
        match node:
            case Block(body=body) if len(body) > 1 and not node.concurrent:
                joined = _join(body, sizes)
                return node if len(joined) == len(body) else replace(node, body=joined)
            case For(kind=kind, body=Block(body=(If() as test,))) if kind != "parallel":
                return _take_out(node, test) if _asks_sizes(test, sizes) else node
        return node

    return rewrite_nodes(block, settle)


def _join(body: tuple[Node, ...], sizes: Set[str]) -> tuple[Node, ...]:
    """if c: A; if c: B   ->   if c: A; B"""
    joined: list[Node] = []
    for node in body:
        match joined[-1:], node:
            case [If(condition) as last], If() as test if (
                condition == test.condition and _asks_sizes(test, sizes)
            ):
                others = [other for other in (last.otherwise, test.otherwise) if other]
                both = _in_order([last.then, test.then])
                joined[-1] = If(test.condition, both, _in_order(others) if others else None)
            case _:
                joined.append(node)
    return tuple(joined)


def _take_out(loop: For, test: If) -> If:
    """for: if c: A else: B   ->   if c: for: A  else: for: B"""

    def around(inner: Block) -> Block:
        return Block((replace(loop, body=replace(loop.body, body=_nodes(inner))),))

    return If(test.condition, around(test.then), test.otherwise and around(test.otherwise))


def _in_order(blocks: Sequence[Block]) -> Block:
    return Block(tuple(node for block in blocks for node in _nodes(block)))


def _nodes(block: Block) -> tuple[Node, ...]:
    """What a block consists of; itself, if there are arrays that live as long as it does."""
    return block.body if block == Block(block.body) else (block,)


def _asks_sizes(test: If, sizes: Set[str]) -> bool:
    return all(variables(index) <= sizes for index in compared(test.condition))
