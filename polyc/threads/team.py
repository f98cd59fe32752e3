"""How the threads of a team go through a kernel on a CPU: who does what, and where all wait.

    fill;  parallel tiles;  parallel rest          one thread: fill
                                             ->    barrier
    (tiles and rest at the same time)              parallel tiles
                                                   parallel rest

All threads go through the outermost nodes, a *team* block. They share out the iterations of a
parallel loop, and one of them does what stands between such loops. The proof is of the result, and
the printer adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from polyc.loopnest.nodes import Barrier, Block, For, If, Kernel, Node, walk_nodes


def share_out(kernel: Kernel) -> Kernel:
    """The kernel as a team executes it, in the order of its text but for concurrent blocks.

    The driver, who knows what comes next, sees to a barrier behind the last node.
    """
    return replace(kernel, body=_team(kernel.body))


def _team(block: Block) -> Block:
    """The pieces of a block, with a barrier between two of them unless they are concurrent."""
    nodes: list[Node] = []
    for piece in _pieces(block):
        nodes += [Barrier()] if nodes and not block.concurrent else []
        nodes.append(_share(piece))
    return Block(tuple(nodes), team=True)


def _pieces(block: Block) -> Iterator[Node]:
    """The nodes of a block, those next to each other without a parallel loop taken together."""
    if not _has_parallel(block):
        yield block
        return
    assert not block.locals, "a local array is shared by the iterations of a parallel loop"
    if block.concurrent:
        yield from block.body
        return
    for has_parallel, nodes in groupby(block.body, _has_parallel):
        if has_parallel:
            yield from nodes
        else:
            yield Block(tuple(nodes))


def _has_parallel(node: Node) -> bool:
    return any(isinstance(n, For) and n.kind == "parallel" for n in walk_nodes(node))


def _share(node: Node) -> Node:
    """A piece as the team executes it."""
    if not _has_parallel(node):
        return node if isinstance(node, Block) else Block((node,))
    match node:
        case For(kind="parallel"):
            return node
        case For(body=body):
            inside = _team(body)
            return replace(node, body=replace(inside, body=(*inside.body, Barrier())))
        case If(then=then, otherwise=otherwise):
            return replace(node, then=_team(then), otherwise=otherwise and _team(otherwise))
        case Block():
            return _team(node)
        case _:
            raise AssertionError("only loops, conditions and blocks hold parallel loops")
