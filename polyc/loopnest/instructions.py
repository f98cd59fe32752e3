"""Whether loops are what an instruction does: by types, expressions and strides, never by names.

    for l in 0 .. 16:  # vector                       dot4.u8s8, where
      for r in 0 .. 4:  # instruction dot4.u8s8   ->    a: A + r        the same for all lanes
        y[j + l] add= mul(i32(A[k + r]),                b: B + 4 l + r  one register
                          i32(B[k / 4][j + l][r]))      acc: y + l

A row of the table (`target/instructions/`) is a nest. The loops around an assignment are that nest
if they have as many iterations, if the value is the row's with a load in place of each operand, and
if every load and the result move from iteration to iteration as the row's lane map has it. What is
the same in all lanes is repeated in a register. In place of a load may stand functions of loads and
numbers, all of the operand's type, which are applied to whole registers: (B[…] >> 4) & 15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from polyc.loopnest.index import Affine, stride, times, variables, weighted_sum
from polyc.loopnest.nodes import (
    Assign,
    Element,
    For,
    LoopExpr,
    Read,
    Value,
    extent_of,
    walk_expr,
)
from polyc.scop.expr import Call, Cast, Const, Expr
from polyc.target.instructions.matrices import MatrixInstruction
from polyc.target.instructions.rows import LANES, Operand, Term, VectorInstruction
from polyc.types.element_types import scalar_type
from polyc.types.sizes import Extent

Addressing = Callable[[Element], Affine]
"""The offset of an element in its array."""

Formula: TypeAlias = LoopExpr | Expr
"""An expression over elements of memory, or of arrays."""

Row: TypeAlias = VectorInstruction | MatrixInstruction

COMMUTE = frozenset({"add", "mul"})


@dataclass(frozen=True)
class Mismatch:
    """Why loops are not an instruction."""

    reason: str


@dataclass(frozen=True)
class Match:
    """What an instruction is applied to: the value that fills each operand."""

    row: VectorInstruction
    values: Mapping[str, LoopExpr]


def address(element: Element, shape: Sequence[Extent]) -> Affine:
    """The offset of an element in a row-major array."""
    steps = _steps(tuple(shape))
    return weighted_sum(
        (i, step) if isinstance(step, int) else (times(i, step), 1)
        for i, step in zip(element.index, steps, strict=True)
    )


@lru_cache(maxsize=1024)
def _steps(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """How far apart elements are along each dimension: (3, n, 4)  ->  4n, 4, 1."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def match_nest(
    row: VectorInstruction, loops: Sequence[For], assign: Assign, place: Addressing
) -> Match | Mismatch:
    """Loops around an assignment, that over the lanes first, as an instruction."""
    nest = row.nest
    counts = [extent_of(loop) for loop in loops[1:]]
    if len(loops) != len(nest.loops) or counts != [*nest.loops[1:]]:
        wanted = ", ".join(map(str, nest.loops[1:])) or "no"
        return Mismatch(f"inside of the lanes it has {wanted} iterations, and these are {counts}")
    if assign.reduction != nest.reduction:
        return Mismatch(f"it is {_shown(nest.reduction)}, and this is {_shown(assign.reduction)}")
    bound = bind(row, assign)
    if bound is None:
        types = ", ".join(scalar_type(o.dtype) for o in nest.operands if o.dtype is not None)
        return Mismatch(f"what it computes of {types or 'its operands'} is another expression")
    moves = _strides(assign.target, loops, place)
    if moves != [*nest.result.steps]:
        return Mismatch(f"results lie {_spaced(nest.result.steps)}, and these {_spaced(moves)}")
    for operand in nest.operands:
        for part in walk_expr(bound[operand.name]):
            wrong = _find_mismatch(operand, part, loops, assign, place)
            if wrong:
                return Mismatch(f"its operand {operand.name} {wrong}")
    return Match(row, bound)


def _find_mismatch(
    operand: Operand, part: LoopExpr, loops: Sequence[For], assign: Assign, place: Addressing
) -> str:
    """What keeps a part of an expression from filling a register of an operand; "" if nothing."""
    if part.dtype != operand.dtype:
        return f"is computed from {scalar_type(part.dtype)}"
    match part:
        case Const():
            return ""
        case Value(index):
            moves = variables(index) & {loop.var for loop in loops}
            return "depends on the number of a lane" if moves else ""
        case Call(function) if function != "index":
            return ""
        case Read(element) if not (part.dynamic or part.guarded):
            if element.array == assign.target.array:
                return "is what it updates"
            lane, *inner = _strides(element, loops, place)
            if inner == [*operand.steps[1:]] and lane in (0, operand.steps[0]):
                return ""
            return (
                f"lies {_spaced(operand.steps)}, or the same for all lanes, and {element.array} "
                f"lies {_spaced([lane, *inner])}"
            )
        case Read():
            return "is loaded from where an index says"
        case _:
            return "is chosen, or converted"


def bind(row: VectorInstruction, assign: Assign) -> Mapping[str, LoopExpr] | None:
    """What stands in place of each operand of a row's expression; None if it is another one."""
    return unify(row, assign.reduction, assign.value)


def unify(row: Row, reduction: str | None, value: Formula) -> Mapping[str, Any] | None:
    """The same for any expression that is assigned, or reduced, to an array of its type."""
    return next(unify_all(row, reduction, value), None)


def unify_all(row: Row, reduction: str | None, value: Formula) -> Iterator[Mapping[str, Any]]:
    """Each way in which it is: factors of a product may be exchanged."""
    nest = row.nest
    types: set[np.dtype] = set()
    if reduction == nest.reduction and _is_typed(nest.result, value.dtype, types):
        yield from _unify(nest.value, value, types)


def _is_typed(operand: Operand, dtype: np.dtype, types: set[np.dtype]) -> bool:
    """Whether an element of the type may be the operand's; `types` are those of any type so far."""
    if operand.dtype is None:
        types.add(dtype)
        return len(types) == 1
    return operand.dtype == dtype


def _unify(term: Term, expr: Formula, types: set[np.dtype]) -> Iterator[dict[str, Any]]:
    """Each way in which an expression is a term."""
    if isinstance(term, Operand):
        if _is_typed(term, expr.dtype, types):
            yield {term.name: expr}
        return
    match expr:
        case Call(function, arguments, dtype):
            orders: list[tuple[Formula, ...]] = [arguments]
            if function in COMMUTE and len(arguments) == 2:
                orders.append(arguments[::-1])
        case Cast(argument, dtype):
            function, orders = "cast", [(argument,)]
        case _:
            return
    if function != term.function or len(orders[0]) != len(term.arguments):
        return
    if term.dtype is not None and term.dtype != dtype:
        return
    for order in orders:
        yield from _unify_all(term.arguments, order, types)


def _unify_all(
    terms: Sequence[Term], exprs: Sequence[Formula], types: set[np.dtype]
) -> Iterator[dict[str, Any]]:
    if not terms:
        yield {}
        return
    for first in _unify(terms[0], exprs[0], types):
        for rest in _unify_all(terms[1:], exprs[1:], types):
            yield first | rest


def find_move(
    rows: Iterable[VectorInstruction], *, is_store: bool, is_full: bool, step: int
) -> VectorInstruction:
    """The first row that loads a register whose lanes lie `step` apart in memory, or stores it.

    is_full: every lane stands for an iteration, and none is left idle.
    """
    for row in rows:
        nest = row.nest
        if not isinstance(nest.value, Operand) or nest.reduction or len(nest.loops) > 1:
            continue
        memory = nest.result if is_store else nest.value
        fits = memory.steps[0] == step or isinstance(memory.steps[0], str)
        if memory.in_memory and fits and (nest.loops[0] == LANES) == is_full:
            return row
    raise AssertionError(f"no instruction moves vectors whose lanes are {step} apart")


def _strides(element: Element, loops: Sequence[For], place: Addressing) -> list[int | None]:
    offset = place(element)
    return [stride(offset, loop.var) for loop in loops]


def _shown(reduction: str | None) -> str:
    return f"a reduction by {reduction}" if reduction else "an assignment"


def _spaced(steps: Sequence[int | str | None]) -> str:
    apart = ["at no fixed distance" if s is None else str(s) for s in steps]
    return f"{' and '.join(apart)} apart from iteration to iteration"
