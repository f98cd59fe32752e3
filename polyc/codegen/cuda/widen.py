"""Vector loops on a GPU: loads and stores of up to 128 bits, and scalar code between them.

    for l in 0 .. 4:  # vector             for l in 0 .. 4:  # vector
      y[e + l] = x[e + l] + b       ->       wide0[l] = x[e + l]
                                           wide1[0] = wide0[0] + b; … wide1[3] = wide0[3] + b
                                           for l in 0 .. 4:  # vector
                                             y[e + l] = wide1[l]

A thread computes with scalars only; but one wide access takes the place of four narrow ones. An
access is wide if lanes are neighbours and their first address is a multiple of the lanes. Booleans
stay alone: a lane of a vector of them is a mask to the printer. What is read, or done, under a
condition is wide if the condition is the same for all lanes:

    select(4 t + l < 8, x[4 t + l], 0)   ->   if (t < 2) wide0 = x[4 t …] else wide0 = 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.codegen.cuda.fold import drop_remainders, fold, fold_address
from polyc.codegen.cuda.hoist import hoist_loads
from polyc.loopnest.copies import find_source
from polyc.loopnest.index import (
    Affine,
    Compare,
    Condition,
    Logic,
    const,
    var,
)
from polyc.loopnest.multiples import Multiples, multiple_of
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
    Test,
    extent_of,
)
from polyc.loopnest.rewrite import rewrite_elements, rewrite_tests
from polyc.loopnest.substitute import substitute_condition, substitute_element, substitute_node
from polyc.scop.expr import Call, Cast, Const

WIDTHS = (4, 8, 16)
"""Bytes of a wide access."""

Shapes = Mapping[str, tuple[int, ...]]


def widen(block: Block, shapes: Shapes) -> Block:
    """The nest with vector loops as wide accesses and copies for each lane.

    shapes: of the arrays in memory, by name.
    """
    return _Widener(iter(range(1 << 30)), frozenset(shapes)).block(block, shapes, {})


@dataclass(frozen=True)
class _Widener:
    """`memory` are the arrays in global memory; other arrays that have a shape are shared."""

    names: Iterator[int]
    memory: frozenset[str]

    def block(self, block: Block, shapes: Shapes, known: Multiples) -> Block:
        held = {x.name: x.shape for x in block.locals if x.space == "shared" and _lies_wide(x)}
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
            case For(kind="copy"):
                return Block(tuple(self.copy(node, shapes, known)))
            case For(kind="sequential") if new := self.hoisted(node, shapes, known):
                return new
            case For():
                if (
                    node.lower.is_constant
                    and node.step > 1
                    and node.lower.constant % node.step == 0
                ):
                    known = {**known, node.var: node.step}
                return replace(node, body=self.block(node.body, shapes, known))
        return node

    def hoisted(self, loop: For, shapes: Shapes, known: Multiples) -> For | None:
        """A loop around products with what they read of shared memory in front of them."""
        shared = {name: shape for name, shape in shapes.items() if name not in self.memory}
        return hoist_loads(loop, shared, self.names, known)

    def copy(self, loop: For, shapes: Shapes, known: Multiples) -> Iterator[Node]:
        """A loop of copies: as wide ones as it can be made of, or as one that goes by registers."""
        (assign,) = loop.body.body
        assert isinstance(assign, Assign)
        lanes = extent_of(loop) or 1
        width = lanes
        while width * assign.dtype.itemsize >= WIDTHS[0]:
            cut = _Lanes(self.names, replace(loop, upper=const(width)), width, shapes, known, [])
            first = var(loop.var) if width > 1 else const(0)
            parts = [_moved(assign, loop.var, first + k) for k in range(0, lanes, width)]
            copies = [cut.in_background(part) for part in parts]
            if all(copies):
                yield from (copy for copy in copies if copy)
                return
            width //= 2
        yield from self.vector(replace(loop, kind="vector"), shapes, known)

    def vector(self, loop: For, shapes: Shapes, known: Multiples) -> Iterator[Node]:
        """A vector loop, statement by statement."""
        lanes = extent_of(loop)
        assert lanes is not None
        assert loop.lower == const(0)
        for node in loop.body.body:
            cut = _Lanes(self.names, loop, lanes, shapes, known, [])
            match node:
                case Assign():
                    yield cut.split(node)
                case If(condition, then, None) if together := cut.together(condition):
                    inside = replace(loop, body=then)
                    yield If(together, Block(tuple(self.vector(inside, shapes, known))))
                case _:
                    yield from cut.copies(node)


def _lies_wide(local: Local) -> bool:
    """Whether what a wide access has lies together, wherever a swizzle has put it."""
    if local.swizzle is None:
        return True
    return (1 << local.swizzle.to) * local.dtype.itemsize >= WIDTHS[-1]


@dataclass(frozen=True)
class _Load:
    """A wide load into a held vector; under a condition, and what is there instead."""

    assign: Assign
    condition: Condition | None
    instead: Const | None


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
        loads: dict[object, _Load] = {}
        new, after = replace(assign, value=self.replaced(assign.value, loads)), []
        together = self.neighbours(assign.target, assign.dtype)
        if assign.reduction is None and together is not None:
            held = self.hold(assign.dtype)
            new = replace(new, target=held)
            after = [self.at_once(replace(assign, target=together, value=Read(held, assign.dtype)))]
        before = [self.loaded(load) for load in loads.values()]
        return Block((*before, *self.copies(new), *after), tuple(self.locals))

    def in_background(self, assign: Assign) -> For | None:
        """The copies of all lanes as one, if memory has it so."""
        read, conditions = find_source(assign.value)
        if read is None or any(self.together(c) is None for c in conditions):
            return None
        value = rewrite_tests(assign.value, lambda c: self.together(c) or c)
        assign = replace(assign, value=value)
        elements = (read.element, assign.target)
        source, target = (self.neighbours(e, assign.dtype) for e in elements)
        if source is None or target is None:
            return None
        places = dict(zip(elements, (source, target), strict=True))
        return self.at_once(rewrite_elements(assign, lambda e: places[e]))

    def at_once(self, assign: Assign) -> For:
        return replace(self.loop, body=Block((assign,)))

    def copies(self, node: Node) -> Iterator[Node]:
        """The node for each lane."""
        for k in range(self.lanes):
            lane = substitute_node(node, {self.loop.var: const(k)})
            yield rewrite_elements(lane, self.placed) if isinstance(lane, Assign) else lane

    def hold(self, dtype: np.dtype) -> Element:
        """One lane of a new vector."""
        local = Local(f"wide{next(self.names)}", dtype, (self.lanes,), "", True, is_tile=True)
        self.locals.append(local)
        return Element(local.name, (var(self.loop.var),))

    def loaded(self, load: _Load) -> Node:
        """A wide load; where its condition does not hold, the value that there is instead."""
        wide = self.at_once(load.assign)
        if load.condition is None or load.instead is None:
            return wide
        other = replace(load.assign, value=load.instead)
        return If(load.condition, Block((wide,)), Block(tuple(self.copies(other))))

    def replaced(self, expr: LoopExpr, loads: dict[object, _Load]) -> LoopExpr:
        """The expression with wide loads taken out."""
        match expr:
            case Read(element, dtype, (), False):
                together = self.neighbours(element, dtype)
                return expr if together is None else self.load(expr, together, loads)
            case Call(function="select", arguments=(Test(), *_)):
                return self.chosen(expr, loads)
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(self.replaced(a, loads) for a in arguments))
            case Cast(argument=argument):
                return replace(expr, argument=self.replaced(argument, loads))
        return expr

    def chosen(self, expr: LoopExpr, loads: dict[object, _Load]) -> LoopExpr:
        """A choice between an element and zero as a wide load, if all lanes choose alike."""
        read, conditions = find_source(expr)
        if read is None:
            return expr  # only one branch is read
        alike = self.together(Logic("and", conditions))
        together = self.neighbours(read.element, read.dtype)
        if alike is None or together is None:
            return expr
        zero = Const(0, read.dtype)
        return self.load(replace(read, guarded=False), together, loads, alike, zero)

    def load(
        self,
        read: Read,
        together: Element,
        loads: dict[object, _Load],
        condition: Condition | None = None,
        instead: Const | None = None,
    ) -> Read:
        """The lane of a wide load, which is there once for all that read the same."""
        key = (together, condition, instead)
        if key not in loads:
            value = replace(read, element=together)
            assign = Assign("", (), self.hold(read.dtype), value, read.dtype)
            loads[key] = _Load(assign, condition, instead)
        return Read(loads[key].assign.target, read.dtype)

    def together(self, condition: Condition) -> Condition | None:
        """The condition as it is for all lanes; None if they differ."""
        lanes = [
            self.tightened(substitute_condition(condition, {self.loop.var: const(k)}))
            for k in range(self.lanes)
        ]
        return lanes[0] if all(lane == lanes[0] for lane in lanes) else None

    def tightened(self, condition: Condition) -> Condition:
        """The condition of one lane, with what is less than the step of its index taken out.

        4 t + 3 - 8 >= 0   ->   4 t - 8 >= 0
        """
        match condition:
            case Logic(operator, arguments):
                return Logic(operator, tuple(map(self.tightened, arguments)))
            case Compare(operator, left):
                index = fold(drop_remainders(left, self.lanes, self.known))
                step = multiple_of(index - index.constant, self.known)
                rest = index.constant % step if step and operator == "ge" else 0
                return Compare(operator, index - rest)

    def neighbours(self, element: Element, dtype: np.dtype) -> Element | None:
        """The element with its place as  multiple of the lanes + lane,  if it is one."""
        shape = self.shapes.get(element.array)
        if not shape or dtype == np.bool_ or self.lanes * dtype.itemsize not in WIDTHS:
            return None
        lanes = [substitute_element(element, {self.loop.var: const(k)}) for k in range(self.lanes)]
        places = [self.placed(lane).index[-1] for lane in lanes]
        if multiple_of(places[0], self.known) % self.lanes:
            return None
        if any(place != places[0] + k for k, place in enumerate(places)):
            return None
        return _in_row(element, places[0] + var(self.loop.var))

    def placed(self, element: Element) -> Element:
        """An element of an array in memory, with its address in shortest form."""
        shape = self.shapes.get(element.array)
        if not shape:
            return element
        address = fold_address(element, shape)
        return _in_row(element, fold(drop_remainders(address, self.lanes, self.known)))


def _moved(assign: Assign, name: str, place: Affine) -> Assign:
    new = substitute_node(assign, {name: place})
    assert isinstance(new, Assign)
    return new


def _in_row(element: Element, place: Affine) -> Element:
    """The element by its offset alone."""
    return replace(element, index=(*(const(0),) * (len(element.index) - 1), place))
