"""Loops that keep what they update in registers: results are loaded before, and stored behind.

    for k in 0 .. n:  # hold                  for i in 0 .. 4: for j in 0 .. 16: acc[i, j] = C[i, j]
      for i in 0 .. 4:  # unroll              for k in 0 .. n:
        for j in 0 .. 16:  # vector     ->      for i in 0 .. 4: for j in 0 .. 16:
          C[i, j] add= A[i, k] * B[k, j]          acc[i, j] add= A[i, k] * B[k, j]
                                              for i in 0 .. 4: for j in 0 .. 16: C[i, j] = acc[i, j]

Not if the loop does not run: others may write there at the same time. Before the proof, results
along a vector loop of any number of iterations are cut into vectors, the last with idle lanes:

    for k in 0 .. n:  # hold                  for t in a .. b step 16:
      for j in a .. b:  # vector      ->        for k in 0 .. n:  # hold, as above
        C[j] add= A[k] * B[k, j]                 for l in 0 .. min(16, b - t):  # vector of 16 lanes
                                                   C[t + l] add= A[k] * B[k, t + l]

That nothing else in such a loop touches the same elements is proven (`analysis/held.py`). No sum
changes its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from polyc.loopnest.index import Affine, Compare, const, extremum, var, variables
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
from polyc.loopnest.substitute import substitute_block


def cut_results(block: Block, simd_bytes: int) -> Block:
    """The nest with `hold` loops for one vector of results at a time, where these are any number.

    simd_bytes: what a vector holds.
    """
    return rewrite_nodes(block, lambda node: _in_vectors(node, simd_bytes))


def hold(block: Block) -> Block:
    """The nest with the results of `hold` loops in local arrays meanwhile."""
    names = (f"acc_{k}" for k in count())
    return rewrite_nodes(block, lambda node: _held(node, names))


def held_element(loop: For) -> tuple[Assign, list[For]] | None:
    """What a loop around one assignment updates at places that stay, and the loops over them."""
    found = _only_assignment(loop)
    if found is None:
        return None
    assign, around = found
    moving = frozenset[str]().union(*(variables(index) for index in assign.target.index))
    points = [each for each in around if each.var in moving]
    if loop in points or any(_extent(p) is None or p.step != 1 for p in points):
        return None
    return assign, points


def _only_assignment(loop: For) -> tuple[Assign, list[For]] | None:
    """The one assignment in a loop, and the loops around it, from this one inwards."""
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
    return (node, around) if isinstance(node, Assign) else None


def _extent(loop: For) -> int | None:
    """The number of places that a loop goes through, or that its lanes have."""
    return loop.lanes or extent_of(loop)


def _in_vectors(node: Node, simd_bytes: int) -> Node:
    """A `hold` loop for one vector at a time of a vector loop that it has inside."""
    if not (isinstance(node, For) and node.kind == "hold"):
        return node
    found = _only_assignment(node)
    if found is None:
        return node
    assign, (*around, last) = found
    bounds = variables(last.lower) | variables(last.upper)
    if last.kind != "vector" or last.step != 1 or _extent(last) is not None:
        return node
    if bounds & {loop.var for loop in around}:
        return node
    start, lane, lanes = f"{last.var}_start", f"{last.var}_lane", simd_bytes // assign.widest
    moved = substitute_block(last.body, {last.var: var(start) + var(lane)})
    left = extremum("min", (const(lanes), last.upper - var(start)))
    vector = replace(last, var=lane, lower=const(0), upper=left, lanes=lanes, body=moved)
    inside = rewrite_nodes(Block((node,)), lambda each: vector if each is last else each)
    return replace(last, var=start, step=lanes, kind="sequential", body=inside)


def _held(node: Node, names: Iterator[str]) -> Node:
    if not (isinstance(node, For) and node.kind == "hold"):
        return node
    sequential = replace(node, kind="sequential")
    found = held_element(node)
    if found is None:
        return sequential
    assign, points = found
    shape = tuple(_extent(p) or 0 for p in points)
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
