"""Index expressions and conditions of generated loops as C writes them, over long integers."""

from __future__ import annotations

from polyc.loopnest.index import (
    Affine,
    Atom,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Scaled,
    Var,
    linear,
    of_extent,
)
from polyc.types.sizes import Size


def show_index(index: Affine) -> str:
    """The index as a C expression over long integers."""
    parts: list[str] = []
    for atom, coefficient in index.terms:
        text = _show_atom(atom)
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        parts += [sign, text if size == 1 else f"{size} * {text}"]
    if index.constant or not parts:
        parts += ["-" if index.constant < 0 else "+", str(abs(index.constant))]
    head = parts[1] if parts[0] == "+" else f"-{parts[1]}"
    return " ".join([head, *parts[2:]])


def _show_atom(atom: Atom) -> str:
    match atom:
        case Var(name):
            return name
        case FloorDiv(argument, divisor):
            return f"pc_floordiv({show_index(argument)}, {divisor})"
        case Mod(argument, divisor):
            return f"pc_mod({show_index(argument)}, {divisor})"
        case Extremum(which, arguments):
            text = show_index(arguments[0])
            for argument in arguments[1:]:
                text = f"pc_{which}({text}, {show_index(argument)})"
            return text
        case Scaled(sizes, argument):
            factors = [_show_size(size) for size in sizes]
            return " * ".join([*factors, *([show_index(argument)] if argument.terms else [])])
        case Choice(condition, then, otherwise):
            return f"({show_condition(condition)} ? {show_index(then)} : {show_index(otherwise)})"


def _show_size(name: str) -> str:
    """A factor of a product: its name, or how it follows from others if it has none of its own.

    min(k, n + 1)   ->   pc_min(k, n + 1)
    """
    size = of_extent(Size.of(name))
    text = show_index(size)
    return text if len(size.terms) == 1 and not size.constant else f"({text})"


def show_condition(condition: Condition) -> str:
    """The condition as a C expression."""
    match condition:
        case Compare(operator, left):
            positive = linear(max(left.constant, 0), {a: c for a, c in left.terms if c > 0})
            negative = linear(max(-left.constant, 0), {a: -c for a, c in left.terms if c < 0})
            symbol = ">=" if operator == "ge" else "=="
            return f"{show_index(positive)} {symbol} {show_index(negative)}"
        case Logic(operator, arguments):
            if not arguments:
                return "1" if operator == "and" else "0"
            glue = " && " if operator == "and" else " || "
            return "(" + glue.join(show_condition(a) for a in arguments) + ")"
