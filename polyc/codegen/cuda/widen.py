"""Vector loops on a GPU: loads and stores of up to 128 bits, and scalar code between them.

    for l in 0 .. 4:  # vector             for l in 0 .. 4:  # vector
      y[e + l] = x[e + l] + b       ->       wide_0[l] = x[e + l]
                                           wide_1[0] = wide_0[0] + b; … wide_1[3] = wide_0[3] + b
                                           for l in 0 .. 4:  # vector
                                             y[e + l] = wide_1[l]

A thread computes with scalars only; but one wide access takes the place of four narrow ones. An
access is wide if lanes are neighbours and their first address is a multiple of the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.codegen.cuda.fold import Multiples, drop_remainders, fold, fold_address, multiple_of
from polyc.codegen.index import Affine, const, substitute, var
from polyc.codegen.loopnest import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    LoopExpr,
    Node,
    Read,
    Test,
    extent_of,
    substitute_node,
)
from polyc.scop.expr import Call, Cast

WIDTHS = (4, 8, 16)
"""Bytes of a wide access."""

Shapes = Mapping[str, tuple[int, ...]]


def widen(block: Block, shapes: Shapes) -> Block:
    """The nest with vector loops as wide accesses and copies for each lane.

    shapes: of the arrays in memory, by name.
    """
    return _Widener(iter(range(1 << 30))).block(block, shapes, {})


@dataclass(frozen=True)
class _Widener:
    names: Iterator[int]

    def block(self, block: Block, shapes: Shapes, known: Multiples) -> Block:
        held = {x.name: x.shape for x in block.locals if x.space == "shared"}
        inside = {**shapes, **held}
        return replace(block, body=tuple(self.node(n, inside, known) for n in block.body))

    def node(self, node: Node, shapes: Shapes, known: Multiples) -> Node:
        match node:
            case Block():
                return self.block(node, shapes, known)
            case If(then=then, otherwise=other):
                other = self.block(other, shapes, known) if other else None
                return replace(node, then=self.block(then, shapes, known), otherwise=other)
            case For(kind="vector"):
                return Block(tuple(self.vector(node, shapes, known)))
            case For():
                if (
                    node.lower.is_constant
                    and node.step > 1
                    and node.lower.constant % node.step == 0
                ):
                    known = {**known, node.var: node.step}
                return replace(node, body=self.block(node.body, shapes, known))
        return node

    def vector(self, loop: For, shapes: Shapes, known: Multiples) -> Iterator[Node]:
        """A vector loop, statement by statement."""
        lanes = extent_of(loop)
        assert lanes is not None
        assert loop.lower == const(0)
        for node in loop.body.body:
            if isinstance(node, Assign):
                yield _Lanes(self.names, loop, lanes, shapes, known, []).split(node)
            else:
                yield from _copies(node, loop.var, lanes)


def _copies(node: Node, lane: str, lanes: int) -> Iterator[Node]:
    for k in range(lanes):
        yield substitute_node(node, {lane: const(k)})


@dataclass(frozen=True)
class _Lanes:
    """One assignment in all lanes; `locals` gathers what is loaded and stored at once."""

    names: Iterator[int]
    loop: For
    lanes: int
    shapes: Shapes
    known: Multiples
    locals: list[Local]

    def split(self, assign: Assign) -> Block:
        loads: dict[Element, Assign] = {}
        value = self.replaced(assign.value, loads)
        new, after = replace(assign, value=value), []
        if assign.reduction is None and self.is_wide(assign.target, assign.dtype):
            held = self.hold(assign.dtype)
            new = replace(new, target=held)
            back = replace(assign, target=assign.target, value=Read(held, assign.dtype))
            after = [self.together(back)]
        before = [self.together(load) for load in loads.values()]
        scalar = _copies(new, self.loop.var, self.lanes)
        return Block((*before, *scalar, *after), tuple(self.locals))

    def together(self, assign: Assign) -> For:
        return replace(self.loop, body=Block((assign,)))

    def hold(self, dtype: np.dtype) -> Element:
        """One lane of a new vector in registers."""
        local = Local(f"wide_{next(self.names)}", dtype, (self.lanes,), "", True)
        self.locals.append(local)
        return Element(local.name, (var(self.loop.var),))

    def replaced(self, expr: LoopExpr, loads: dict[Element, Assign]) -> LoopExpr:
        """The expression with wide loads taken out."""
        match expr:
            case Read(element, dtype, (), False) if self.is_wide(element, dtype):
                if element not in loads:
                    loads[element] = Assign("", (), self.hold(dtype), expr, dtype)
                return Read(loads[element].target, dtype)
            case Call(function="select", arguments=(Test(), *_)):
                return expr  # only one branch is read
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(self.replaced(a, loads) for a in arguments))
            case Cast(argument=argument):
                return replace(expr, argument=self.replaced(argument, loads))
        return expr

    def is_wide(self, element: Element, dtype: np.dtype) -> bool:
        """Whether the lanes of an access are neighbours from a multiple of the lanes on."""
        shape = self.shapes.get(element.array)
        if shape is None or self.lanes * dtype.itemsize not in WIDTHS:
            return False
        address = fold_address(element, shape)
        places = [
            fold(drop_remainders(substitute(address, self.lane(k)), self.lanes, self.known))
            for k in range(self.lanes)
        ]
        aligned = multiple_of(places[0], self.known) % self.lanes == 0
        return aligned and all(p == places[0] + k for k, p in enumerate(places))

    def lane(self, k: int) -> dict[str, Affine]:
        return {self.loop.var: const(k)}
