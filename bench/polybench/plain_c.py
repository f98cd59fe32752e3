"""The loops of a kernel as the C that one would write by hand: the same order, nothing transformed.

    for i in range(len(x)):              for (int64_t i = 0; i < 2000; i++)
        for j in range(i):        ->         for (int64_t j = 0; j < i; j++)
            x[i] -= L[i, j] * x[j]               x[i] -= L[i][j] * x[j];

Sizes are written as numbers, arrays as restricted pointers to rows of a known length: a compiler is
told all that it could find out. Subscripts are taken as they are; none may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.polybench.plain_expression import C_TYPES, HELPERS, RESERVED, Expressions
from polyc.loops.read.infer import infer
from polyc.loops.read.syntax import (
    Assign,
    Binary,
    Branch,
    Command,
    Element,
    Function,
    Loop,
    Name,
    commands,
)
from polyc.loops.read.types import argument_of, settle
from polyc.names import fresh, identifier

INDENT = "    "


@dataclass(frozen=True)
class PlainC:
    """The text of a C function, and its parameters: arrays, and numbers that are no integers."""

    text: str
    name: str
    parameters: tuple[str, ...]


def print_plain(function: Function, arguments: Mapping[str, Any]) -> PlainC:
    """A kernel in C for arguments of these shapes, and for these whole numbers."""
    types = infer(function, {n: argument_of(n, v) for n, v in arguments.items()})
    shapes = {n: v.shape for n, v in arguments.items() if isinstance(v, np.ndarray)}
    numbers = {n: int(v) for n, v in arguments.items() if isinstance(v, int | np.integer)}
    names = _name_all(function)
    expressions = Expressions(types, names, shapes)
    name = fresh(identifier(function.name), RESERVED)
    given = [n for n in function.arguments if n not in numbers]
    lines = ["#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>", "", *HELPERS, ""]
    parameters = ", ".join(_parameter(expressions, n) for n in given)
    lines.append(f"void {name}({parameters}) {{")
    lines += [f"{INDENT}const int64_t {names[n]} = {value};" for n, value in numbers.items()]
    for local in _locals(function):
        lines.append(f"{INDENT}{C_TYPES[settle(types.names[local])]} {names[local]};")
    lines += _Printer(expressions).body(function.body, 1)
    return PlainC("\n".join([*lines, "}", ""]), name, tuple(given))


def _locals(function: Function) -> list[str]:
    """The names that are assigned to, in order."""
    assigned = (c.target for c in commands(function.body) if isinstance(c, Assign))
    return list(dict.fromkeys(t.name for t in assigned if isinstance(t, Name)))


def _name_all(function: Function) -> dict[str, str]:
    """Every name of the kernel -> its name in C."""
    loops = [c.variable for c in commands(function.body) if isinstance(c, Loop)]
    found: dict[str, str] = {}
    taken = set(RESERVED)
    for name in dict.fromkeys([*function.arguments, *_locals(function), *loops]):
        plain = identifier(name) or "i"
        found[name] = fresh(f"v{plain}" if plain[0].isdigit() else plain, taken)
        taken.add(found[name])
    return found


def _parameter(expressions: Expressions, name: str) -> str:
    """double A[restrict 20][30], or double alpha."""
    called = expressions.names[name]
    if name not in expressions.shapes:
        return f"{C_TYPES[settle(expressions.types.names[name])]} {called}"
    extents = [str(max(n, 1)) for n in expressions.shapes[name]]
    first = f"[restrict {extents[0]}]"
    rest = "".join(f"[{n}]" for n in extents[1:])
    return f"{C_TYPES[expressions.types.elements[name]]} {called}{first}{rest}"


@dataclass(frozen=True)
class _Printer:
    """Commands as lines of C."""

    expressions: Expressions

    def body(self, body: tuple[Command, ...], depth: int) -> Iterator[str]:
        for command in body:
            match command:
                case Assign():
                    yield f"{INDENT * depth}{self.assign(command)}"
                case Loop():
                    yield f"{INDENT * depth}{self.head(command)} {{"
                    yield from self.body(command.body, depth + 1)
                    yield f"{INDENT * depth}}}"
                case Branch(condition, then, otherwise):
                    yield f"{INDENT * depth}if ({self.expressions.truth(condition)}) {{"
                    yield from self.body(then, depth + 1)
                    if otherwise:
                        yield f"{INDENT * depth}}} else {{"
                        yield from self.body(otherwise, depth + 1)
                    yield f"{INDENT * depth}}}"

    def head(self, loop: Loop) -> str:
        """for (int64_t i = 0; i < n; i++), or until a local is true."""
        i = self.expressions.names[loop.variable]
        start, stop = (self.expressions.whole(e) for e in (loop.start, loop.stop))
        test = "<" if loop.step > 0 else ">"
        step = {1: f"{i}++", -1: f"{i}--"}.get(loop.step, f"{i} += {loop.step}")
        going = f"{i} {test} {stop}"
        if loop.left:
            going = f"!{self.expressions.names[loop.left]} && {going}"
        return f"for (int64_t {i} = {start}; {going}; {step})"

    def assign(self, at: Assign) -> str:
        """A target, the operator of C if there is one, and the value in the target's type."""
        target = self.expressions.target(at.target)
        dtype = self._kept(at.target)
        if at.operator in ("+", "-", "*", "/") and not (at.operator == "/" and dtype.kind == "i"):
            return f"{target} {at.operator}= {self.expressions.value(at.value, dtype)};"
        value = at.value
        if at.operator:
            value = Binary(at.operator, at.target, at.value, at.place)
        return f"{target} = {self.expressions.value(value, dtype)};"

    def _kept(self, target: Name | Element) -> np.dtype:
        types = self.expressions.types
        if isinstance(target, Element):
            return types.elements[target.array]
        return settle(types.names[target.name])
