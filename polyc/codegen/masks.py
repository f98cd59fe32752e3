"""Masks: conditions that lanes keep in registers, as wide as what they were found of.

    c[0..8] = s[0..8] > best[0..8]                  b8, a byte a lane
    best[0..8] = c[0..8] ? s[0..8] : best[0..8]

    ->   c[0..8] = mask of s[0..8] > best[0..8]     i64, -1 where it holds, and 0 elsewhere
         best[0..8] = c[0..8] chooses s[0..8], best[0..8]

A vector unit compares numbers of 64 bits into masks of 64 bits a lane, or of one bit. To make bytes
of these, and masks again of the bytes, takes gcc 12 some twenty instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    Local,
    LoopExpr,
    Node,
    Read,
    children,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.scop.expr import BOOL, ORDERED, Call, Cast

COMBINED = {"and": "bitand", "or": "bitor", "xor": "bitxor", "not": "bitnot"}
"""Functions of conditions -> the same of masks."""


def widen_masks(block: Block) -> Block:
    """The nest with conditions in registers as masks, where they are used for choices alone."""

    def widen(node: Node) -> Node:
        if not isinstance(node, Block):
            return node
        masks = _find(node)
        if not masks:
            return node
        inside = rewrite_nodes(node, lambda n: _rewritten(n, masks))
        return replace(inside, locals=tuple(_typed(local, masks) for local in inside.locals))

    return rewrite_nodes(block, widen)


def _typed(local: Local, masks: Mapping[str, int]) -> Local:
    return replace(local, dtype=_integer(masks[local.name])) if local.name in masks else local


def _integer(width: int) -> np.dtype:
    return np.dtype(f"i{width}")


def _find(block: Block) -> dict[str, int]:
    """The locals of a block that can be masks -> the bytes of their lanes."""
    own = {local.name for local in block.locals if local.dtype == BOOL and local.in_registers}
    if not own:
        return {}
    scalar = {a.target.array for a in _outside_lanes(block)}
    scalar |= {r.element.array for a in _outside_lanes(block) for r in _reads(a.value)}
    assigns = [n for n in walk_nodes(block) if isinstance(n, Assign)]
    masks: dict[str, int] = {}
    for assign in assigns:
        if assign.target.array in own - scalar and not assign.reduction:
            masks.setdefault(assign.target.array, _width(assign.value))
    while True:
        found = _Uses(masks)
        spoilt = {name for assign in assigns for name in found.spoilt(assign)}
        kept = {name: width for name, width in masks.items() if width and name not in spoilt}
        if kept == masks:
            return masks
        masks = kept


def _outside_lanes(node: Node) -> Iterator[Assign]:
    """The assignments that stand in no vector loop."""
    match node:
        case Assign():
            yield node
        case For(kind="vector"):
            return
        case For(body=body):
            yield from _outside_lanes(body)
        case Block(body=nodes):
            for each in nodes:
                yield from _outside_lanes(each)
        case _:
            yield from (n for n in walk_nodes(node) if isinstance(n, Assign))


def _reads(expr: LoopExpr) -> Iterator[Read]:
    return (e for e in walk_expr(expr) if isinstance(e, Read))


def _width(condition: LoopExpr) -> int:
    """Bytes of the numbers that a condition compares; 0 if it compares none."""
    if not isinstance(condition, Call):
        return 0
    if condition.function in ORDERED:
        return condition.arguments[0].dtype.itemsize
    if condition.function in COMBINED:
        return max(map(_width, condition.arguments))
    return 0


@dataclass(frozen=True)
class _Uses:
    """What becomes of conditions if those of `masks` are masks of so many bytes."""

    masks: Mapping[str, int]

    def spoilt(self, assign: Assign) -> set[str]:
        """The masks that an assignment does not make as one, or needs as a byte."""
        name = assign.target.array
        width = self.masks.get(name)
        if not width:
            return self._spoilt(assign.value)
        if assign.reduction or not self.is_mask(assign.value, width):
            return {name} | self._spoilt(assign.value)
        return self._inside(assign.value)

    def is_mask(self, condition: LoopExpr, width: int) -> bool:
        """Whether a condition can be a mask of so many bytes."""
        match condition:
            case Read(element=element, dynamic=()):
                return self.masks.get(element.array) == width
            case Call(function, arguments) if function in ORDERED:
                kind = arguments[0].dtype
                return kind.kind in "iuf" and kind.itemsize == width and _moves(condition)
            case Call(function, arguments) if function in COMBINED:
                return all(self.is_mask(a, width) for a in arguments)
        return False

    def _spoilt(self, expr: LoopExpr) -> set[str]:
        """The masks that an expression needs as bytes."""
        parts = list(children(expr))
        found: set[str] = set()
        if isinstance(expr, Read):  # with what its subscripts read, which are of one lane each
            found = {expr.element.array} & {*self.masks}
            found = found.union(*(self._named(e) for _, e in expr.dynamic))
        elif isinstance(expr, Call) and expr.function == "select" and self._chooses(expr):
            test, *parts = expr.arguments
            found = self._inside(test)
        return found.union(*map(self._spoilt, parts))

    def _inside(self, mask: LoopExpr) -> set[str]:
        """The same of a condition that is a mask."""
        if not isinstance(mask, Call):
            return set()
        below = self._inside if mask.function in COMBINED else self._spoilt
        return set[str]().union(*map(below, mask.arguments))

    def _named(self, expr: LoopExpr) -> set[str]:
        return {r.element.array for r in _reads(expr)} & {*self.masks}

    def _chooses(self, choice: Call[LoopExpr]) -> bool:
        """Whether a choice between numbers is one by a mask as wide as they are."""
        test, kind = choice.arguments[0], choice.dtype
        reads_mask = bool(self._named(test))
        return reads_mask and kind.kind in "iuf" and self.is_mask(test, kind.itemsize)

    def value(self, expr: LoopExpr) -> LoopExpr:
        """An expression with choices by masks."""
        match expr:
            case Call("select", (test, then, otherwise), dtype) if self._chooses(expr):
                mask = self.mask(test, dtype.itemsize)
                return Call("choose", (mask, self.value(then), self.value(otherwise)), dtype)
            case Call(function, arguments, dtype):
                return Call(function, tuple(map(self.value, arguments)), dtype)
            case Cast(argument=argument):
                return replace(expr, argument=self.value(argument))
        return expr

    def mask(self, condition: LoopExpr, width: int) -> LoopExpr:
        """A condition as a mask."""
        match condition:
            case Read():
                return replace(condition, dtype=_integer(width))
            case Call(function, arguments) if function in ORDERED:
                sides = tuple(map(self.value, arguments))
                return Call(f"mask_{function}", sides, _integer(width))
            case Call(function, arguments):
                parts = tuple(self.mask(a, width) for a in arguments)
                return Call(COMBINED[function], parts, _integer(width))
        raise AssertionError(f"{condition} is no mask")


def _moves(condition: LoopExpr) -> bool:
    """Whether a condition reads anything: what does not is one number for all lanes."""
    return any(True for _ in _reads(condition))


def _rewritten(node: Node, masks: Mapping[str, int]) -> Node:
    if not isinstance(node, Assign):
        return node
    uses, width = _Uses(masks), masks.get(node.target.array)
    if width:
        return replace(node, value=uses.mask(node.value, width), dtype=_integer(width))
    return replace(node, value=uses.value(node.value))
