"""Sums that wait for themselves become several, side by side, in tiles of few vectors.

    local acc[1, 32]                            local acc[1, 32], beside_0[3, 1, 32]
    acc[0][l] = 0                               acc[0][l] = 0;  beside_0[k][0][l] = 0 for k of 3
    for c in 0 .. 64:                     ->    for c in 0 .. 64 step 4:
      for l in 0 .. 32:  # vector                 for l in 0 .. 32:  # vector
        acc[0][l] add= x[c] * w[c][l]               acc[0][l] add= x[c] * w[c][l]
                                                  … beside_0[2][0][l] add= x[c + 3] * w[c + 3][l]
                                                acc[0][l] add= beside_0[k][0][l] for k of 3

Such tiles are what is left of larger ones where an extent is known only at run time
(`remainder.py`), so it is done in loops whose bounds name a size. Only declared reductions, whose
reordering the proof has allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, prod

from polyc.loopnest.index import const, var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Local,
    Node,
    Read,
    extent_of,
    lanes_of,
    rewrite_nodes,
    walk_nodes,
)
from polyc.loopnest.substitute import substitute_block
from polyc.scop.expr import Const
from polyc.scop.scop import identity
from polyc.target.vectors import Vectors

SUMS = 8
"""Vectors that are added to in turn: an addition takes 4 cycles, and two may begin in each."""

WORTHWHILE = 8
"""Additions into each of the sums, for which it pays to begin them and to add them up."""


def add_side_by_side(block: Block, sizes: Collection[str], vectors: Vectors) -> Block:
    """The nest with sums in tiles of few vectors in several places, where loops are open."""
    names = (f"beside_{k}" for k in count())

    def visit(node: Node) -> Node:
        if not (isinstance(node, For) and _is_open(node, sizes) and node.body.locals):
            return node
        return replace(node, body=_split_sums(node.body, vectors, names))

    return rewrite_nodes(block, visit)


def _is_open(loop: For, sizes: Collection[str]) -> bool:
    return bool((variables(loop.lower) | variables(loop.upper)) & set(sizes))


def _split_sums(tile: Block, vectors: Vectors, names: Iterator[str]) -> Block:
    """A tile with the sums of each of its loops in several places."""
    body: list[Node] = []
    kept = list(tile.locals)
    for node in tile.body:
        found = _find_sum(node, tile.locals, vectors)
        if found is None:
            body.append(node)
            continue
        shape = (found.count - 1, *found.local.shape)
        kept.append(replace(found.local, name=next(names), shape=shape))
        body += found.split(kept[-1].name)
    return replace(tile, body=tuple(body), locals=tuple(kept))


@dataclass(frozen=True)
class _Sum:
    """An update of a local array, and the sequential loops around it, the outermost first.

    count: how many sums it becomes.
    """

    update: Assign
    local: Local
    loops: tuple[For, ...]
    count: int

    def split(self, name: str) -> list[Node]:
        """The sums beside the first one begun, all of them updated, and added up."""
        assert self.update.reduction is not None
        neutral = Const(identity(self.update.reduction, self.local.dtype), self.local.dtype)
        inner = self.loops[-1]
        begun, updates, ended = [], [inner.body], []
        for k in range(1, self.count):
            beside = Element(name, (const(k - 1), *self.update.target.index))
            begun.append(
                self._tile(replace(self.update, target=beside, value=neutral, reduction=None))
            )
            moved = self._tile(replace(self.update, target=beside))
            updates.append(substitute_block(moved, {inner.var: var(inner.var) + k}))
            ended.append(self._tile(replace(self.update, value=Read(beside, self.local.dtype))))
        nest: Node = replace(inner, step=self.count, body=Block(tuple(updates)))
        for loop in self.loops[-2::-1]:
            nest = replace(loop, body=Block((nest,)))
        return [*begun, nest, *ended]

    def _tile(self, assign: Assign) -> Block:
        """The loops over the tile, around another assignment."""
        inside = self.loops[-1].body
        return rewrite_nodes(inside, lambda n: assign if isinstance(n, Assign) else n)


def _find_sum(nest: Node, kept: Sequence[Local], vectors: Vectors) -> _Sum | None:
    """The sum that a loop adds up, if it is of few vectors and long."""
    loops: list[For] = []
    while isinstance(nest, For) and nest.kind == "sequential" and nest.step == 1:
        loops.append(nest)
        (nest, *others) = nest.body.body
        if others or loops[-1].body.locals:
            return None
    trips = [extent_of(loop) or 0 for loop in loops]
    update = _find_update(loops[-1].body) if loops else None
    if update is None or not update.reduction:
        return None
    local = next((one for one in kept if one.name == update.target.array), None)
    moving = {v for index in update.target.index for v in variables(index)}
    tile = {node.var for node in walk_nodes(loops[-1].body) if isinstance(node, For)}
    if local is None or moving & {loop.var for loop in loops} or not tile <= moving:
        return None  # what a tile adds up in itself is left to `partial_results.py`
    wanted = ceil(SUMS / _count_vectors(loops[-1].body, update, vectors))
    number = max((n for n in range(1, wanted + 1) if trips[-1] % n == 0), default=1)
    if number == 1 or prod(trips) < WORTHWHILE * number:
        return None
    return _Sum(update, local, tuple(loops), number)


def _find_update(body: Block) -> Assign | None:
    """The one assignment in loops over a tile, whose extents are all known."""
    found = [node for node in walk_nodes(body) if not isinstance(node, Block)]
    loops, (last, *others) = [n for n in found if isinstance(n, For)], found[::-1]
    known = all(n.kind in ("vector", "unroll") and (n.lanes or extent_of(n)) for n in loops)
    plain = not any(isinstance(n, Block) and n.locals for n in walk_nodes(body))
    return last if isinstance(last, Assign) and known and plain and loops == others[::-1] else None


def _count_vectors(body: Block, update: Assign, vectors: Vectors) -> int:
    lanes = vectors.lanes(update.widest)
    loops = [node for node in walk_nodes(body) if isinstance(node, For)]
    return prod(
        ceil(lanes_of(loop) / lanes) if loop.kind == "vector" else extent_of(loop) or 1
        for loop in loops
    )
