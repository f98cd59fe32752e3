"""Reductions over vector loops: partial results in registers, combined after the last one.

    for j in 0 .. 1024 step 64:            for l in 0 .. 64:  # vector
      for l in 0 .. 64:  # vector            partial[l] = 0
        acc add= x[j + l]             ->   for j in 0 .. 1024 step 64:
    for l in 0 .. 16:  # vector              for l in 0 .. 64:  # vector
      acc add= x[1024 + l]                     partial[l] add= x[j + l]
                                           for l in 0 .. 16:  # vector
                                             partial[l] add= x[1024 + l]
                                           for l in 0 .. 32:  # vector
                                             partial[l] add= partial[l + 32]
                                           for l in 0 .. 16:  # vector
                                             partial[l] add= partial[l + 16]
                                           for l in 0 .. 16:  # vector
                                             acc add= partial[l]

Only declared reductions, whose reordering the proof has allowed; a target that moves with a loop
around it is left to that loop. Several vectors are added side by side, so that none waits for the
last addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeGuard

import numpy as np

from polyc.loopnest.index import Affine, const, var, variables
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
    extent_of,
    lanes_of,
    walk_nodes,
)
from polyc.scop.expr import Const
from polyc.scop.scop import Reduction, identity
from polyc.target.vectors import Vectors


def privatise(block: Block, vectors: Vectors, names: Iterator[int]) -> Block:
    """The nest with each run of updates of one place through vector loops given partial results."""
    body: list[Node] = []
    for place, run in groupby(block.body, _find_place):
        nodes = tuple(run)
        if place is not None and _pays(nodes, place.lanes(vectors)):
            new = _Run(place, place.lanes(vectors), vectors.masked, {}, names)
            body.append(new.split(nodes))
        else:
            body += [_inside(n, vectors, names) for n in nodes]
    return replace(block, body=tuple(body))


def _inside(node: Node, vectors: Vectors, names: Iterator[int]) -> Node:
    match node:
        case Block():
            return privatise(node, vectors, names)
        case For(body=body):
            return replace(node, body=privatise(body, vectors, names))
        case If(then=then, otherwise=other):
            other = privatise(other, vectors, names) if other else None
            return replace(node, then=privatise(then, vectors, names), otherwise=other)
        case _:
            return node


@dataclass(frozen=True)
class _Place:
    """What updates have in common that reduce into one place; `widest`: bytes, see `Assign`."""

    statement: str
    target: Element
    dtype: np.dtype
    reduction: Reduction
    widest: int

    def lanes(self, vectors: Vectors) -> int:
        return vectors.lanes(self.widest)

    def update(self, target: Element, value: LoopExpr) -> Assign:
        return Assign(self.statement, (), target, value, self.dtype, self.reduction)


def _find_place(node: Node) -> _Place | None:
    """The one place that all below a node is reduced into, if loops over it can be split up.

    Its vector loops have a constant extent, and one update as their body.
    """
    places: set[_Place | None] = set()
    bound: set[str] = set()
    for inner in walk_nodes(node):
        match inner:
            case Assign(statement, _, target, _, dtype, reduction) if reduction:
                places.add(_Place(statement, target, dtype, reduction, inner.widest))
            case For(var=name, kind="sequential"):
                bound.add(name)
            case For(var=name, kind="vector", step=1, body=Block(body=(Assign(),))):
                bound.add(name)
                if not (inner.lanes or extent_of(inner)) or not inner.lower.is_constant:
                    return None
            case Block(locals=()):
                pass
            case _:
                return None
    place = places.pop() if len(places) == 1 else None
    moves = {v for i in place.target.index for v in variables(i)} if place else set()
    return None if moves & bound else place


def _pays(nodes: Sequence[Node], lanes: int) -> bool:
    """Whether several vectors meet in the place, one after the other or side by side."""
    vectors = 0
    for node in nodes:
        if isinstance(node, For) and node.kind == "sequential":
            return any(_is_vector(n) for n in walk_nodes(node))
        if _is_vector(node):
            vectors += lanes_of(node) // lanes
    return vectors > 1


def _is_vector(node: Node) -> TypeGuard[For]:
    return isinstance(node, For) and node.kind == "vector" and lanes_of(node) > 1


@dataclass(frozen=True)
class _Run:
    """The rewrite of one run of updates. `partials` are the locals made so far, by their extent.

    Whole vectors share one local; what is left of a loop behind them goes there as well where
    vectors can be `masked`, and has a local of its own where they cannot.
    """

    place: _Place
    lanes: int
    masked: bool
    partials: dict[int, Local]
    names: Iterator[int]

    def split(self, nodes: Sequence[Node]) -> Block:
        extents = [lanes_of(n) for node in nodes for n in walk_nodes(node) if _is_vector(n)]
        whole = max(extent // self.lanes * self.lanes for extent in extents)
        whole = max(whole, self.lanes) if self.masked else whole
        body = [self._rewrite(n, whole, repeated=False) for n in nodes]
        locals_ = tuple(self.partials.values())
        first = nodes[0]
        if _is_vector(first) and lanes_of(first) // self.lanes * self.lanes == whole:
            body[0] = _assigned(body[0], locals_[0].name)
            starts = [self._start(local) for local in locals_[1:]]
        else:
            starts = [self._start(local) for local in locals_]
        ends = [n for local in locals_ for n in self._combine(local)]
        return Block((*starts, *body, *ends), locals_)

    def _rewrite(self, node: Node, whole: int, repeated: bool) -> Node:
        """A node with its vectors reduced into locals; what runs once needs none for a rest."""
        if isinstance(node, Block):
            return replace(node, body=tuple(self._rewrite(n, whole, repeated) for n in node.body))
        if not isinstance(node, For):
            return node
        if not _is_vector(node):
            inside = self._rewrite(node.body, whole, repeated=True)
            return replace(node, body=inside if isinstance(inside, Block) else Block((inside,)))
        if node.lanes:  # as many iterations as a call brings, a vector's at most
            stop = node.upper - node.lower
            return self._into(node, const(0), stop, max(whole, node.lanes))
        extent = extent_of(node) or 0
        rest = extent % self.lanes
        parts: list[Node] = []
        if extent > rest:
            parts.append(self._into(node, 0, extent - rest, whole))
        if rest and self.masked and rest != self.lanes // 2:
            last = self._into(node, extent - rest, extent, whole)
            parts.append(replace(last, idle=self.lanes - rest))
        elif rest and repeated:
            parts.append(self._into(node, extent - rest, extent, rest))
        elif rest:
            parts.append(replace(node, lower=node.lower + (extent - rest)))
        return parts[0] if len(parts) == 1 else Block(tuple(parts))

    def _into(self, loop: For, start: Affine | int, stop: Affine | int, size: int) -> For:
        """Iterations start … stop of a vector loop, reduced into the local of an extent."""
        if size not in self.partials:
            name = f"partial_{next(self.names)}"
            shape, source = (size,), self.place.target.array
            self.partials[size] = Local(name, self.place.dtype, shape, source, is_tile=True)
        lower = loop.lower + start
        update = loop.body.body[0]
        assert isinstance(update, Assign)
        target = Element(self.partials[size].name, (var(loop.var) - lower,))
        body = Block((replace(update, target=target),))
        return replace(loop, lower=lower, upper=loop.lower + stop, body=body)

    def _start(self, local: Local) -> For:
        value = Const(identity(self.place.reduction, local.dtype), local.dtype)
        update = self.place.update(Element(local.name, (LANE,)), value)
        return _vector(local.shape[0], replace(update, reduction=None))

    def _combine(self, local: Local) -> Iterator[For]:
        """Half of the vectors onto the other half, until one is left; its lanes at the end."""
        vectors, rest = divmod(local.shape[0], self.lanes)
        first = Element(local.name, (LANE,))
        while not rest and vectors > 1:
            half = vectors // 2
            vectors -= half
            other = Element(local.name, (LANE + vectors * self.lanes,))
            fold = self.place.update(first, Read(other, local.dtype))
            yield _vector(half * self.lanes, fold)
        end = self.place.update(self.place.target, Read(first, local.dtype))
        yield _vector(rest or self.lanes, end)


def _assigned(node: Node, name: str) -> Node:
    """Vector loops over whole vectors of a local, which begin its life: no update is needed."""
    match node:
        case Block(body=(head, *rest)):
            return replace(node, body=(_assigned(head, name), *rest))
        case For(body=Block(body=(Assign() as update,))) if update.target.array == name:
            return replace(node, body=Block((replace(update, reduction=None),)))
    raise AssertionError(f"{node} does not begin with vectors of {name}")


LANE = var("l")


def _vector(extent: int, assign: Assign) -> For:
    return For("l", const(0), const(extent), 1, Block((assign,)), "vector")
