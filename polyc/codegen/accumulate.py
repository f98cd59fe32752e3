"""Reductions over loops of the C compiler's vectors: into a variable, which its lanes have each.

    for j in 0 .. n:  # simd             partial_0 = 0
      y[i] add= A[i, j] * x[j]     ->    for j in 0 .. n:  # simd, reduces partial_0
                                           partial_0 add= A[i, j] * x[j]
                                         y[i] add= partial_0

Where all is read in rows, it becomes vectors: several at a time, then one, then one with idle
lanes. `partial_results.py` adds them side by side, else each addition would wait for the last one,
and adds up their lanes once. The C compiler would have each lane's result in memory, and add those
one after another.

    for j in 0 .. n:  # simd             for j in 0 .. 32 (n / 32) step 32:
      y[i] add= A[i, j] * x[j]     ->      for l in 0 .. 32: y[i] add= …       # vector
                                         for j in 32 (n / 32) .. 8 (n / 8) step 8:
                                           for l in 0 .. 8: y[i] add= …        # vector
                                         for j in 8 (n / 8) .. n step 8:
                                           for l in 0 .. n - j: y[i] add= …    # vector of 8 lanes

Only declared reductions, whose reordering the proof has allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TypeGuard

from polyc.loopnest.index import Affine, Compare, const, extremum, floordiv, stride, var, variables
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
from polyc.scop.expr import BOOL, Const
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
    if moving or assign.dtype == BOOL:
        return node
    if not all(_in_rows(e.element, node.var) for e in walk_expr(assign.value) if _is_read(e)):
        return _reduced(node, assign, names)
    lanes = max(1, simd_bytes // assign.widest)
    filled = _fill(node, lanes)
    if any(_is_read(e) and e.dynamic for e in walk_expr(assign.value)):
        rest = _reduced(replace(node, lower=filled), assign, names)
        fits = Compare("ge", node.upper - node.lower - lanes)
        return Block((If(fits, Block((_cut(node, node.lower, filled, lanes),))), rest))
    several = _fill(node, VECTORS * lanes)
    return Block(
        (
            _cut(node, node.lower, several, VECTORS * lanes),
            _cut(node, several, filled, lanes),
            _cut(node, filled, node.upper, lanes, node.upper - var(node.var)),
        )
    )


def _fill(loop: For, size: int) -> Affine:
    """Where the last of a loop's vectors of so many lanes ends that is full."""
    # The bounds of a loop that does not run may lie anywhere.
    trips = extremum("max", (const(0), loop.upper - loop.lower))
    return loop.lower + floordiv(trips, size) * size


def _cut(loop: For, start: Affine, stop: Affine, size: int, left: Affine | None = None) -> For:
    """A part of a loop as vectors of so many lanes, or as one for the iterations that are left."""
    lane = f"{loop.var}_l"
    moved = substitute_block(loop.body, {loop.var: var(loop.var) + var(lane)})
    upper, lanes = (const(size), 0) if left is None else (left, size)
    vector = For(lane, const(0), upper, 1, moved, "vector", lanes=lanes)
    body = Block((vector,))
    return replace(loop, lower=start, upper=stop, step=size, body=body, kind="sequential")


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
