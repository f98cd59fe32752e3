"""Calls of other kernels: the body of the called one, with its names replaced.

def scale(x, a):                         scale(y, 2 * b)   ->   a_1 = 2 * b
    for i in range(len(x)):                                     for i_1 in range(len(y)):
        x[i] *= a                                                   y[i_1] *= a_1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from polyc.loops.read.syntax import (
    Assign,
    Branch,
    Command,
    Element,
    Expression,
    Extent,
    Function,
    Loop,
    Name,
    Place,
    rewrite,
)


@runtime_checkable
class Callee(Protocol):
    """What may be called as a statement: something with the `Function` of a kernel."""

    @property
    def function(self) -> Function: ...


def inline(
    callee: Function, given: Sequence[Expression], suffix: str, place: Place
) -> Iterator[Command]:
    """The body of a kernel on what it is given; numbers are computed once, before it begins.

    Names of its own get a suffix with a character that no name of Python has.
    """
    if len(given) != len(callee.arguments):
        wanted = f"kernel {callee.name!r} takes {len(callee.arguments)} arguments"
        place.refuse(f"{wanted}, not {len(given)}", f"give {', '.join(callee.arguments)}")
    arrays: dict[str, str] = {}
    for name, value in zip(callee.arguments, given, strict=True):
        if name in callee.arrays:
            if not isinstance(value, Name):
                place.refuse(
                    f"argument {name!r} of kernel {callee.name!r} is an array", "give it by name"
                )
            arrays[name] = value.name
        else:
            yield Assign(Name(_own(name, suffix), place), value, None, place)
    if len(set(arrays.values())) < len(arrays):
        place.refuse("one array is given as two arguments of a kernel", "give different ones")
    yield from _renamed(callee.body, arrays, suffix)


def _own(name: str, suffix: str) -> str:
    return f"{name}.{suffix}"


def _renamed(body: tuple[Command, ...], arrays: dict[str, str], suffix: str) -> tuple[Command, ...]:
    def leaf(part: Expression) -> Expression:
        match part:
            case Name(name):
                return replace(part, name=_own(name, suffix))
            case Element(array) | Extent(array):
                return replace(part, array=arrays[array])
        return part

    def visit(command: Command) -> Command:
        match command:
            case Assign(target, value):
                written = rewrite(target, leaf)
                assert isinstance(written, Name | Element)
                return replace(command, target=written, value=rewrite(value, leaf))
            case Loop(variable, start, stop, body=inside):
                return replace(
                    command,
                    variable=_own(variable, suffix),
                    left=_own(command.left, suffix) if command.left else "",
                    start=rewrite(start, leaf),
                    stop=rewrite(stop, leaf),
                    body=tuple(map(visit, inside)),
                )
            case Branch(condition, then, otherwise):
                return Branch(
                    rewrite(condition, leaf),
                    tuple(map(visit, then)),
                    tuple(map(visit, otherwise)),
                    command.place,
                )

    return tuple(map(visit, body))
