"""What a kernel says, as plain data: loops, conditions and assignments, before types are known.

A `Function` is made by `parse.py` from Python's syntax tree, and `lower` makes a `Scop` of it.
Each node knows its place in the file, so that whatever is refused later can be pointed at.

    for i in range(1, n):              Loop("i", 1, n, 1, (
        A[i] += A[i - 1] * 0.5    ->       Assign(Element("A", (i,)), A[i - 1] * 0.5, "+"),))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from polyc.errors import UnsupportedLoop


@dataclass(frozen=True)
class Place:
    """Where something stands: a file, a line and a column, both counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def refuse(self, rule: str, way_out: str) -> NoReturn:
        """Raise UnsupportedLoop: what stands here breaks a rule of the subset."""
        raise UnsupportedLoop(f"{self}: {rule}; {way_out}")


@dataclass(frozen=True)
class Number:
    """A literal of Python: an int, a float, or a bool."""

    value: int | float | bool
    place: Place


@dataclass(frozen=True)
class Name:
    """A loop variable, a local scalar, or an argument that is a number."""

    name: str
    place: Place


@dataclass(frozen=True)
class Extent:
    """A.shape[axis]."""

    array: str
    axis: int
    place: Place


@dataclass(frozen=True)
class Element:
    """A[subscripts]."""

    array: str
    subscripts: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True)
class Operation:
    """left operator right."""

    operator: str
    left: Expression
    right: Expression
    place: Place


class Binary(Operation):
    """An operator of arithmetic or of bits."""


class Comparison(Operation):
    """A comparison, which gives a boolean."""


class Logic(Operation):
    """ "and" or "or" of booleans; what stands right is looked at only where it decides."""


@dataclass(frozen=True)
class Unary:
    """operator operand: "-", "+", "~" or "not"."""

    operator: str
    operand: Expression
    place: Place


@dataclass(frozen=True)
class Choice:
    """then if condition else otherwise."""

    condition: Expression
    then: Expression
    otherwise: Expression
    place: Place


@dataclass(frozen=True)
class Apply:
    """A function of the table in `functions.py`, applied."""

    function: str
    arguments: tuple[Expression, ...]
    place: Place


Expression: TypeAlias = (
    Number | Name | Extent | Element | Binary | Unary | Comparison | Logic | Choice | Apply
)


@dataclass(frozen=True)
class Assign:
    """target = value, or target operator= value."""

    target: Name | Element
    value: Expression
    operator: str | None
    place: Place


@dataclass(frozen=True)
class Loop:
    """for variable in range(start, stop, step); if there is a local `left`, until it is true."""

    variable: str
    start: Expression
    stop: Expression
    step: int
    body: tuple[Command, ...]
    place: Place
    left: str = ""


@dataclass(frozen=True)
class Branch:
    """if condition: then; else: otherwise."""

    condition: Expression
    then: tuple[Command, ...]
    otherwise: tuple[Command, ...]
    place: Place


Command: TypeAlias = Assign | Loop | Branch


@dataclass(frozen=True)
class Function:
    """A kernel: its arguments by name, in order, and what it does. `arrays` are subscripted."""

    name: str
    arguments: tuple[str, ...]
    arrays: frozenset[str]
    body: tuple[Command, ...]
    place: Place

    @property
    def written(self) -> frozenset[str]:
        """The arrays of which elements are assigned."""
        targets = (c.target for c in commands(self.body) if isinstance(c, Assign))
        return frozenset(target.array for target in targets if isinstance(target, Element))


def operands(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is made of."""
    match expression:
        case Element(subscripts=parts) | Apply(arguments=parts):
            return parts
        case Operation(left=left, right=right):
            return left, right
        case Unary(operand=operand):
            return (operand,)
        case Choice(condition, then, otherwise):
            return condition, then, otherwise
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Every sub-expression, parents first."""
    yield expression
    for part in operands(expression):
        yield from walk(part)


def commands(body: tuple[Command, ...]) -> Iterator[Command]:
    """Every command of a body, those inside of others as well, in the order of the text."""
    for command in body:
        yield command
        match command:
            case Loop(body=inside):
                yield from commands(inside)
            case Branch(then=then, otherwise=otherwise):
                yield from commands(then)
                yield from commands(otherwise)


def expressions(command: Command) -> tuple[Expression, ...]:
    """The expressions of a command itself; the target of an assignment comes first."""
    match command:
        case Assign(target, value):
            return target, value
        case Loop(start=start, stop=stop):
            return start, stop
        case Branch(condition=condition):
            return (condition,)


def rewrite(expression: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The expression with `leaf` applied to every part of it, innermost first."""
    match expression:
        case Element(subscripts=parts):
            expression = replace(expression, subscripts=tuple(rewrite(p, leaf) for p in parts))
        case Apply(arguments=parts):
            expression = replace(expression, arguments=tuple(rewrite(p, leaf) for p in parts))
        case Operation(left=left, right=right):
            expression = replace(expression, left=rewrite(left, leaf), right=rewrite(right, leaf))
        case Unary(operand=operand):
            expression = replace(expression, operand=rewrite(operand, leaf))
        case Choice(condition, then, otherwise):
            expression = replace(
                expression,
                condition=rewrite(condition, leaf),
                then=rewrite(then, leaf),
                otherwise=rewrite(otherwise, leaf),
            )
    return leaf(expression)


def same_but_for_places(one: Expression, other: Expression) -> bool:
    """Whether two expressions are the same, wherever they stand in the text."""
    nowhere = Place("", 0, 0)
    parts = (rewrite(e, lambda part: replace(part, place=nowhere)) for e in (one, other))
    first, second = parts
    return first == second
