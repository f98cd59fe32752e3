"""Long chains of operations, step by step for several vectors, and not vector by vector.

    y[0..16] = h(g(f(x[0..16])))             s[0..16] = f(x[0..16])      s[16..32] = f(x[16..32])
    y[16..32] = h(g(f(x[16..32])))    ->     t[0..16] = g(s[0..16])      t[16..32] = g(s[16..32])
                                             y[0..16] = h(t[0..16])      y[16..32] = h(t[16..32])

A core runs what is ready of the next hundred operations or so. In a long chain each waits for the
one before, so that of one vector alone hardly two are ready at a time; those of the next vector
come too late. A step is a few operations, and has a register for each vector; what the chain
computes twice, it is taken once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from polyc.codegen.spell import run_in
from polyc.loopnest.index import var
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Local,
    LoopExpr,
    Node,
    Read,
    children,
    extent_of,
    walk_expr,
)
from polyc.scop.expr import Call, Cast
from polyc.types.element_types import is_narrow

LONG = 40
"""Operations of a chain from which on it is taken in steps: fewer of several vectors are seen
together anyway."""

STEP = 4
"""Operations of a step."""

TOGETHER = 4
"""Vectors that take a step one after another: a division or a root is ready by then."""


def in_steps(loop: For, pieces: Sequence[For], run: Assign) -> Block | None:
    """A long assignment in all pieces of a vector loop; None if it is short, or stays whole."""
    count = sum(isinstance(e, Call | Cast) for e in walk_expr(run.value))
    if len(pieces) < 2 or count < LONG or not loop.lower.is_constant or not _is_eager(run.value):
        return None
    cut = _Cut(loop, run)
    last = replace(run, value=cut.value(run.value))
    if not cut.steps:
        return None
    body = tuple(_run(pieces, (*cut.steps, last)))
    return Block(body, tuple(cut.locals))


def _run(pieces: Sequence[For], steps: Sequence[Assign]) -> Iterator[Node]:
    for k in range(0, len(pieces), TOGETHER):
        for step in steps:
            for piece in pieces[k : k + TOGETHER]:
                yield run_in(piece, step)


def _is_eager(value: LoopExpr) -> bool:
    """Whether all parts of an expression may be computed whatever others come to."""
    return not any(isinstance(e, Read) and (e.dynamic or e.guarded) for e in walk_expr(value))


@dataclass
class _Cut:
    """The steps of an assignment, as they are found, operands first."""

    loop: For
    run: Assign
    steps: list[Assign] = field(default_factory=list)
    locals: list[Local] = field(default_factory=list)
    known: dict[LoopExpr, Read] = field(default_factory=dict)

    def value(self, expr: LoopExpr) -> LoopExpr:
        """The expression, with steps taken out of it."""
        new, _ = self._visit(expr, is_whole=True)
        return new

    def _visit(self, expr: LoopExpr, is_whole: bool = False) -> tuple[LoopExpr, int]:
        """(the expression, or the register that holds it by then, operations that are left)."""
        found = self.known.get(expr)
        if found is not None:
            return found, 0
        if not isinstance(expr, Call | Cast):
            return expr, 0
        visited = [self._visit(part) for part in children(expr)]
        count = 1 + sum(n for _, n in visited)
        parts = tuple(part for part, _ in visited)
        new = (
            replace(expr, argument=parts[0])
            if isinstance(expr, Cast)
            else replace(expr, arguments=parts)
        )
        if is_whole or count < STEP or not self._can_be_held(expr):
            return new, count
        self.known[expr] = held = self._hold(new)
        return held, 0

    def _can_be_held(self, expr: LoopExpr) -> bool:
        """Whether an expression is a vector of numbers that functions are applied to."""
        moves = any(isinstance(e, Read) for e in walk_expr(expr))
        return moves and expr.dtype.kind in "iuf" and not is_narrow(expr.dtype)

    def _hold(self, value: LoopExpr) -> Read:
        """The register of a step."""
        name = f"pc_step_{len(self.steps)}"
        place = Element(name, (var(self.loop.var) - self.loop.lower,))
        extent = extent_of(self.loop) or 0
        self.locals.append(Local(name, value.dtype, (extent,), self.run.target.array, is_tile=True))
        self.steps.append(Assign(self.run.statement, (), place, value, value.dtype))
        return Read(place, value.dtype)
