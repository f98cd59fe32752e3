"""Reductions over loops of the C compiler's vectors: into a variable, which its lanes have each.

    for j in 0 .. n:  # simd             partial_0 = 0
      y[i] add= A[i, j] * x[j]     ->    for j in 0 .. n:  # simd, reduces partial_0
                                           partial_0 add= A[i, j] * x[j]
                                         y[i] add= partial_0

Only declared reductions, whose reordering the proof has allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from polyc.loopnest.index import variables
from polyc.loopnest.nodes import Assign, Block, Element, For, Local, Node, Read, rewrite_nodes
from polyc.printing.print_c import SUMS
from polyc.scop.expr import Const
from polyc.scop.scop import identity


def accumulate(block: Block) -> Block:
    """The nest with sums over simd loops in variables of their own."""
    names = (f"partial_{k}" for k in count())
    return rewrite_nodes(block, lambda node: _sum(node, names))


def _sum(node: Node, names: Iterator[str]) -> Node:
    if not (isinstance(node, For) and node.kind == "simd" and len(node.body.body) == 1):
        return node
    (assign,) = node.body.body
    if not isinstance(assign, Assign) or node.body.locals or assign.reduction not in SUMS:
        return node
    moving = any(node.var in variables(index) for index in assign.target.index)
    if moving or assign.dtype.kind != "f":
        return node
    assert assign.reduction is not None
    name = next(names)
    local = Local(name, assign.dtype, (), assign.target.array, in_registers=True)
    held = Element(name, ())
    neutral = Const(identity(assign.reduction, assign.dtype), assign.dtype)
    begin = replace(assign, target=held, value=neutral, reduction=None)
    inside = Block((replace(assign, target=held),))
    loop = replace(node, body=inside, reduces=((assign.reduction, name),))
    end = replace(assign, value=Read(held, assign.dtype))
    return Block((begin, loop, end), (local,))
