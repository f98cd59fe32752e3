"""Reductions over loops of the C compiler's vectors: into a variable, which its lanes have each.

    for j in 0 .. n:  # simd             partial_0 = 0
      y[i] add= A[i, j] * x[j]     ->    for j in 0 .. n:  # simd, reduces partial_0
                                           partial_0 add= A[i, j] * x[j]
                                         y[i] add= partial_0

Where all is read in rows, the part of a long loop that fills several vectors becomes vectors, which
`partial_results.py` adds side by side: else each addition waits for the last one.

    for j in 0 .. n:  # simd             if n >= 32: for j in 0 .. 32 (n / 32) step 32:
      y[i] add= A[i, j] * x[j]     ->                   for l in 0 .. 32:  # vector
                                                          y[i] add= A[i, j + l] * x[j + l]
                                         for j in 32 (max(n, 0) / 32) .. n:  # simd: as above

Only declared reductions, whose reordering the proof has allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TypeGuard

from polyc.loopnest.index import Compare, const, extremum, floordiv, stride, var, variables
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
from polyc.loopnest.substitute import substitute_block
from polyc.printing.print_c import SUMS
from polyc.scop.expr import Const
from polyc.scop.scop import identity

VECTORS = 4
"""That are added side by side: an addition takes 3 to 4 cycles, and two may begin in each. Of what
is picked by data, which takes longer than to add it, one."""


def accumulate(block: Block, simd_bytes: int) -> Block:
    """The nest with sums over simd loops in variables of their own."""
    names = (f"rest_{k}" for k in count())
    return rewrite_nodes(block, lambda node: _sum(node, names, simd_bytes))


def _sum(node: Node, names: Iterator[str], simd_bytes: int) -> Node:
    if not (isinstance(node, For) and node.kind == "simd" and len(node.body.body) == 1):
        return node
    (assign,) = node.body.body
    if not isinstance(assign, Assign) or node.body.locals or assign.reduction not in SUMS:
        return node
    moving = any(node.var in variables(index) for index in assign.target.index)
    if moving or assign.dtype.kind != "f":
        return node
    if not all(_in_rows(e.element, node.var) for e in walk_expr(assign.value) if _is_read(e)):
        return _reduced(node, assign, names)
    picked = any(_is_read(e) and e.dynamic for e in walk_expr(assign.value))
    size = (1 if picked else VECTORS) * max(1, simd_bytes // assign.widest)
    trips = node.upper - node.lower
    # The bounds of a loop that does not run may lie anywhere.
    middle = node.lower + floordiv(extremum("max", (const(0), trips)), size) * size
    lane = f"{node.var}_l"
    moved = substitute_block(node.body, {node.var: var(node.var) + var(lane)})
    vectors = For(lane, const(0), const(size), 1, moved, "vector")
    whole = replace(node, upper=middle, step=size, body=Block((vectors,)), kind="sequential")
    rest = _reduced(replace(node, lower=middle), assign, names)
    return Block((If(Compare("ge", trips - size), Block((whole,))), rest))


def _is_read(expr: LoopExpr) -> TypeGuard[Read]:
    return isinstance(expr, Read)


def _in_rows(element: Element, name: str) -> bool:
    """Whether an access stays, or moves to the next element of its row, or to the one before."""
    *outer, last = [stride(index, name) for index in element.index] or [0]
    return not any(outer) and None not in outer and last in (0, 1, -1)


def _reduced(node: For, assign: Assign, names: Iterator[str]) -> Node:
    """A sum in a variable that the C compiler's lanes share."""
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
