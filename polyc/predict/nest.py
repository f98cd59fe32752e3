"""A kernel's loops with their iterations counted, and how far each access moves with each loop.

for i in 0 .. 100 step 13:          Loop i, 8 iterations
  for k in 0 .. 256:                  Loop k, 256 iterations
    acc[0] add= x[i][k] …               x: 13 rows apart with i, one element with k
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from polyc.loopnest.index import Affine, Var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Kernel,
    Node,
    Read,
    extent_of,
    walk_expr,
    walk_nodes,
)
from polyc.predict.point import Point, evaluate, holds
from polyc.types.estimate import hinted

LINE = 64
"""Bytes of a cache line."""

LANES = ("vector", "simd", "instruction")
STRAIGHT = (*LANES, "unroll")

SHORT, WRITTEN_OUT = 8, 36
"""Iterations of a loop, and vector assignments in all of them, that gcc -O3 writes out."""


@dataclass(frozen=True)
class Shape:
    """An array as a kernel sees it: its extents as stored.

    is_local: it is the kernel's own; in_registers: no loop is left that its accesses move with, so
    that its elements are variables.
    """

    dtype: np.dtype
    extents: tuple[int, ...]
    is_local: bool
    in_registers: bool = False

    @property
    def bytes(self) -> int:
        return prod(self.extents) * self.dtype.itemsize


@dataclass(frozen=True)
class Access:
    """How one access moves: spans[d][v] is how far dimension d goes in all iterations of v.

    `place` is the index at the first iterations, `steps` what one step of a variable adds to the
    last dimension, where that is a constant; `outer`: those that move another dimension.
    """

    array: str
    dtype: np.dtype
    is_write: bool
    place: tuple[int, ...]
    spans: tuple[Mapping[str, int], ...]
    steps: Mapping[str, int]
    outer: frozenset[str]

    def moves_with(self, name: str) -> bool:
        return name in self.steps or name in self.outer

    def step(self, name: str) -> int | None:
        """Elements between two iterations of a loop; None where these are far apart."""
        return None if name in self.outer else self.steps.get(name, 0)


@dataclass(frozen=True)
class Leaf:
    """An assignment, and its accesses, the target's first."""

    assign: Assign
    accesses: tuple[Access, ...]

    @property
    def target(self) -> Access:
        return self.accesses[0]


@dataclass(frozen=True)
class Loop:
    """A loop: its variable, what it is, how often it runs, and what it runs."""

    node: For
    trips: int
    body: tuple[Tree, ...]

    @property
    def var(self) -> str:
        return self.node.var

    @cached_property
    def is_straight(self) -> bool:
        """Whether no branch is left of it: its iterations are lanes, or copies of the body.

        The C compiler writes out short loops around little text by itself.
        """
        if self.node.kind in STRAIGHT:
            return True
        is_short = self.node.kind == "sequential" and self.trips <= SHORT
        return is_short and extent_of(self.node) is not None and self.text <= WRITTEN_OUT

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is straight, and all that it runs."""
        return self.is_straight and all(map(is_plain, self.body))

    @cached_property
    def text(self) -> int:
        """Vector assignments in all iterations; very many where a loop is left."""
        inside = sum(1 if isinstance(tree, Leaf) else tree.text for tree in self.body)
        return inside if self.node.kind in LANES else self.trips * inside


Tree = Loop | Leaf


def is_plain(tree: Tree) -> bool:
    """Whether no loop is left of a tree."""
    return isinstance(tree, Leaf) or tree.is_plain


@dataclass(frozen=True)
class Nest:
    """A kernel as trees in order, and its arrays."""

    trees: tuple[Tree, ...]
    arrays: Mapping[str, Shape]


def read_nest(kernel: Kernel) -> Nest:
    """The loops of a kernel at typical sizes; of two branches that which is taken in the middle."""
    arrays = {
        p.name: Shape(p.dtype, tuple(map(hinted, p.shape)), is_local=False) for p in kernel.params
    }
    for node in walk_nodes(kernel.body):
        if isinstance(node, Block):
            for local in node.locals:
                arrays[local.name] = Shape(local.dtype, local.shape, is_local=True)
    trees = tuple(_read(kernel.body, {}, {}))
    in_memory = set(_in_memory(trees, frozenset()))
    return Nest(
        trees,
        {
            name: replace(shape, in_registers=shape.is_local and name not in in_memory)
            for name, shape in arrays.items()
        },
    )


def _in_memory(trees: tuple[Tree, ...], around: frozenset[str]) -> Iterator[str]:
    """Arrays whose accesses move with loops that are left; `around`: those."""
    for tree in trees:
        if isinstance(tree, Leaf):
            yield from (a.array for a in tree.accesses if any(map(a.moves_with, around)))
        else:
            yield from _in_memory(tree.body, around if tree.is_straight else around | {tree.var})


def _read(node: Node, point: Point, ends: Mapping[str, tuple[int, int]]) -> Iterator[Tree]:
    """ends: the first and the last value of each variable around."""
    match node:
        case Block(body=body):
            for child in body:
                yield from _read(child, point, ends)
        case If(condition, then, otherwise):
            taken = then if holds(condition, point) else otherwise
            if taken:
                yield from _read(taken, point, ends)
        case For(var, lower, upper, step, body):
            first = evaluate(lower, point)
            trips = -(-(evaluate(upper, point) - first) // step) if node.only is None else 1
            if trips > 0:
                last = first + (trips - 1) * step
                middle = {**point, var: first + trips // 2 * step}
                inside = tuple(_read(body, middle, {**ends, var: (first, last)}))
                yield Loop(node, trips, inside)
        case Assign():
            yield Leaf(node, tuple(_accesses(node, point, ends)))


def _accesses(
    assign: Assign, point: Point, ends: Mapping[str, tuple[int, int]]
) -> Iterator[Access]:
    yield _access(assign.target, assign.dtype, True, point, ends)
    for read in dict.fromkeys(e for e in walk_expr(assign.value) if isinstance(e, Read)):
        yield _access(read.element, read.dtype, False, point, ends)


def _access(
    element: Element,
    dtype: np.dtype,
    is_write: bool,
    point: Point,
    ends: Mapping[str, tuple[int, int]],
) -> Access:
    start = {**point, **{name: first for name, (first, _) in ends.items()}}
    spans = tuple(_spans(index, point, ends) for index in element.index)
    steps: dict[str, int] = {}
    outer = {name for own in spans[:-1] for name in own}
    for name in spans[-1] if spans else ():
        step = _step(element.index[-1], name)
        if step is None:
            outer.add(name)
        elif step:
            steps[name] = step
    place = tuple(evaluate(index, start) for index in element.index)
    return Access(element.array, dtype, is_write, place, spans, steps, frozenset(outer))


def _spans(index: Affine, point: Point, ends: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """How far an index goes with each variable, the others in the middle."""
    found = {}
    for name in variables(index) & ends.keys():
        first, last = (evaluate(index, {**point, name: end}) for end in ends[name])
        if first != last:
            found[name] = abs(last - first)
    return found


def _step(index: Affine, name: str) -> int | None:
    """What one step of a variable adds to an index; None if that is not constant."""
    step = 0
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            step += coefficient if atom.name == name else 0
        elif name in variables(Affine(0, ((atom, 1),))):
            return None
    return step
