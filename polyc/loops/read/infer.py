"""Types of locals and of expressions, found before anything is lowered.

A local scalar has one type in the whole kernel: that in which all values assigned to it meet. So
`s = 0.0; s += x[i]` is a float32 sum if x is of float32, as it is in Python, and `c = 0; c += 0.5`
is a float64 from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from polyc.loops.read.functions import BY_NAME
from polyc.loops.read.syntax import (
    Apply,
    Assign,
    Binary,
    Choice,
    Comparison,
    Element,
    Expression,
    Extent,
    Function,
    Logic,
    Loop,
    Name,
    Number,
    Unary,
    commands,
)
from polyc.loops.read.types import (
    FLOAT64,
    Argument,
    Type,
    floating,
    is_bool,
    is_float,
    is_whole,
    join,
    quotient,
)
from polyc.scop.expr import BOOL


@dataclass(frozen=True)
class Types:
    """The types of names: arguments that are numbers, and locals; and of arrays' elements."""

    names: Mapping[str, Type]
    elements: Mapping[str, np.dtype]

    def of(self, expression: Expression) -> Type:
        """The type of an expression; UnsupportedLoop where it has none in the subset."""
        match expression:
            case Number(value):
                return type(value)
            case Extent():
                return int
            case Name(name):
                return self.names.get(name, int)
            case Element(array):
                return self.elements[array]
            case Comparison(_, left, right):
                self.of(left), self.of(right)
                return BOOL
            case Logic():
                return BOOL
            case Choice(_, then, otherwise):
                return join(self.of(then), self.of(otherwise))
            case Unary(operator, operand):
                return self._unary(expression, operator, self.of(operand))
            case Binary():
                return self._binary(expression)
            case Apply():
                return self._apply(expression)

    def _unary(self, at: Unary, operator: str, inside: Type) -> Type:
        if operator == "not":
            return BOOL
        if operator == "~" and is_float(inside):
            at.place.refuse("`~` of a float", "use it on integers")
        if is_bool(inside):
            at.place.refuse(f"`{operator}` of a boolean", "write `not`, or int(…)")
        return inside

    def _binary(self, at: Binary) -> Type:
        a, b = self.of(at.left), self.of(at.right)
        met = join(a, b)
        if at.operator in ("&", "|", "^", "<<", ">>") and is_float(met):
            at.place.refuse(f"`{at.operator}` of a float", "use it on integers")
        if is_bool(met) and at.operator not in ("&", "|", "^"):
            at.place.refuse(f"`{at.operator}` of two booleans", "write int(…) around them")
        if at.operator == "/":
            return quotient(a, b)
        if at.operator == "**" and a is int and b is int and _is_negative(at.right):
            return float
        return met

    def _apply(self, at: Apply) -> Type:
        known = BY_NAME[at.function]
        inside = [self.of(a) for a in at.arguments]
        met = inside[0]
        for other in inside[1:]:
            met = join(met, other)
        if known.rule == "double":
            return float
        if known.rule == "whole":
            return int
        if known.rule == "convert":
            assert known.dtype is not None
            return known.dtype
        if is_bool(met):
            at.place.refuse(f"`{at.function}` of booleans", "write int(…) around them")
        if known.rule == "floating":
            return floating(met)
        return met


def _is_negative(expression: Expression) -> bool:
    return isinstance(expression, Unary) and expression.operator == "-"


def infer(function: Function, arguments: Mapping[str, Argument]) -> Types:
    """The types of a kernel on arguments of these types."""
    elements = {n: a.dtype for n, a in arguments.items() if a.dims is not None}
    names: dict[str, Type] = {}
    for name, argument in arguments.items():
        if argument.dims is None:
            names[name] = int if is_whole(argument.dtype) else argument.dtype
            names[name] = {BOOL: bool, FLOAT64: float}.get(argument.dtype, names[name])
    loops = {c.variable for c in commands(function.body) if isinstance(c, Loop)}
    changed = True
    while changed:
        changed = False
        for command in commands(function.body):
            if not (isinstance(command, Assign) and isinstance(command.target, Name)):
                continue
            name = command.target.name
            if name in loops:
                command.place.refuse(f"{name!r} is the variable of a loop", "choose another name")
            value = command.value
            if command.operator and name in names:
                value = Binary(command.operator, command.target, value, command.place)
            try_type = Types(names, elements).of(value)
            met = join(names[name], try_type) if name in names else try_type
            # (NumPy takes a dtype and Python's type for equal, and float64 for None.)
            if name not in names or (names[name] != met or type(names[name]) is not type(met)):
                names[name], changed = met, True
    return Types(names, elements)
