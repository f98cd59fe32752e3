"""Expressions of a kernel in C, with as few brackets and conversions as Python's meaning allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyc.loops.read import syntax
from polyc.loops.read.functions import BY_NAME, COMPARED
from polyc.loops.read.infer import Types
from polyc.loops.read.types import FLOAT64, compared, is_whole, quotient, settle
from polyc.scop.expr import BOOL, INT64
from polyc.types.element_types import scalar_type

C_TYPES: Mapping[np.dtype, str] = {
    np.dtype("float32"): "float",
    np.dtype("float64"): "double",
    **{np.dtype(f"{sign}int{n}"): f"{sign}int{n}_t" for sign in ("", "u") for n in (8, 16, 32, 64)},
    np.dtype("bool"): "bool",
}

SHORT = {c: scalar_type(dtype) for dtype, c in C_TYPES.items() if dtype != BOOL}

HELPERS: Sequence[str] = (
    "#define FLOOR_DIV(a, b) ((a) / (b) - ((a) % (b) != 0 && ((a) < 0) != ((b) < 0)))",
    "#define FLOOR_MOD(a, b) ((a) - (b) * FLOOR_DIV(a, b))",
    *(
        f"static inline {c} {name}_{short}({c} a, {c} b) {{ return b {sign} a ? b : a; }}"
        for c, short in SHORT.items()
        for name, sign in (("min", "<"), ("max", ">"))
    ),
)
"""What C has no operator for; Python's min gives the first of those that are equal."""

_LIBRARY = (
    "sqrt exp expm1 exp2 log log2 log1p sin cos tan sinh cosh tanh trunc asin acos atan asinh "
    "acosh atanh erf pow fmod copysign floor ceil"
)
_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm typeof bool true false main fabs fabsf llabs "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t"
)

RESERVED = frozenset(
    [*_LIBRARY.split(), *(f"{name}f" for name in _LIBRARY.split()), *_KEYWORDS.split()]
    + [f"{name}_{short}" for name in ("min", "max") for short in SHORT.values()]
)
"""What no name of a kernel may be called in C."""

_LEVEL = {"*": 7, "/": 7, "+": 6, "-": 6, "<<": 5, ">>": 5, "&": 3, "^": 2, "|": 1}
_COMPARISON, _AND, _OR, _CHOICE, _ATOM, _UNARY = 4, 0, -1, -2, 9, 8
_BITS = ("&", "|", "^", "<<", ">>")

Text = tuple[str, int]
"""C, and how tightly its outermost operator binds."""


@dataclass(frozen=True)
class Expressions:
    """How expressions of one kernel are written. names: those of the kernel -> those in C."""

    types: Types
    names: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    def value(self, at: syntax.Expression, dtype: np.dtype) -> str:
        """The expression as a value of a type."""
        return self._value(at, dtype)[0]

    def whole(self, at: syntax.Expression) -> str:
        """A bound, or a subscript."""
        return self.value(at, INT64)

    def truth(self, at: syntax.Expression) -> str:
        """A condition."""
        return self._own(at)[0]

    def target(self, at: syntax.Name | syntax.Element) -> str:
        """What is assigned to."""
        return self._own(at)[0]

    def combine(
        self, operator: str, left: syntax.Expression, right: syntax.Expression
    ) -> syntax.Binary:
        return syntax.Binary(operator, left, right, left.place)

    # -- each gives a `Text` ------------------------------------------------------------------

    def _value(self, at: syntax.Expression, dtype: np.dtype) -> Text:
        type_ = self.types.of(at)
        if not isinstance(type_, np.dtype) and dtype != BOOL:  # Python's take the type they meet
            match at:
                case syntax.Number(value):
                    return _literal(value, dtype)
                case syntax.Unary("-" | "+" as sign, operand):
                    return f"{sign}{_bracket(self._value(operand, dtype), _ATOM)}", _UNARY
                case syntax.Choice():
                    return self._choice(at, dtype)
        own = settle(type_)
        text = self._own(at)
        if own == dtype:
            return text
        return f"({C_TYPES[dtype]}){_bracket(text, _UNARY)}", _UNARY

    def _own(self, at: syntax.Expression) -> Text:
        """The expression in its own type."""
        own = settle(self.types.of(at))
        match at:
            case syntax.Number(value):
                return _literal(value, own)
            case syntax.Name(name):
                return self.names[name], _ATOM
            case syntax.Extent(array, axis):
                return str(self.shapes[array][axis]), _ATOM
            case syntax.Element(array, subscripts):
                inside = "".join(f"[{self.whole(s)}]" for s in subscripts)
                return f"{self.names[array]}{inside}", _ATOM
            case syntax.Unary(operator, operand):
                sign = "!" if operator == "not" else operator
                text = f"{sign}{_bracket(self._value(operand, own), _ATOM)}", _UNARY
                return self._wrapped(text, own)
            case syntax.Binary():
                return self._wrapped(self._binary(at, own), own)
            case syntax.Comparison(operator, left, right):
                return self._compared(operator, left, right)
            case syntax.Logic(operator, left, right):
                sign, level = ("&&", _AND) if operator == "and" else ("||", _OR)
                sides = (_bracket(self._own(side), _COMPARISON) for side in (left, right))
                return f" {sign} ".join(sides), level
            case syntax.Choice():
                return self._choice(at, own)
            case syntax.Apply():
                return self._apply(at, own)

    def _wrapped(self, text: Text, own: np.dtype) -> Text:
        """A result in its own type: C computes with small integers as with int."""
        if not is_whole(own) or own.itemsize >= np.dtype(np.int32).itemsize:
            return text
        return f"({C_TYPES[own]}){_bracket(text, _UNARY)}", _UNARY

    def _binary(self, at: syntax.Binary, own: np.dtype) -> Text:
        if at.operator == "/":
            own = settle(quotient(self.types.of(at.left), self.types.of(at.right)))
        left, right = self._value(at.left, own), self._value(at.right, own)
        suffix = "f" if own == np.float32 else ""
        if at.operator == "**":
            if isinstance(at.right, syntax.Number) and at.right.value == 2:
                return f"{_bracket(left, 7)} * {_bracket(left, 8)}", 7
            power = f"pow{suffix}({left[0]}, {right[0]})"
            return (power, _ATOM) if own.kind == "f" else (f"({C_TYPES[own]}){power}", _UNARY)
        if at.operator in ("//", "%"):
            if own.kind == "f":
                floor = f"floor{suffix}({_bracket(left, 7)} / {_bracket(right, 8)})"
                rest = f"{_bracket(left, 6)} - {_bracket(right, 8)} * {floor}"
                return (floor, _ATOM) if at.operator == "//" else (rest, 6)
            macro = "FLOOR_DIV" if at.operator == "//" else "FLOOR_MOD"
            return f"{macro}({left[0]}, {right[0]})", _ATOM
        level = _LEVEL[at.operator]
        if at.operator in _BITS:  # people do not know how tightly these bind
            return f"{_bracket(left, _UNARY)} {at.operator} {_bracket(right, _UNARY)}", level
        # a - (b + c) and a + (b + c) keep their brackets: floats are not associative.
        return f"{_bracket(left, level)} {at.operator} {_bracket(right, level + 1)}", level

    def _choice(self, at: syntax.Choice, dtype: np.dtype) -> Text:
        sides = (_bracket(self._value(side, dtype), _OR) for side in (at.then, at.otherwise))
        return f"{_bracket(self._own(at.condition), _OR)} ? {' : '.join(sides)}", _CHOICE

    def _compared(self, operator: str, left: syntax.Expression, right: syntax.Expression) -> Text:
        assert operator in COMPARED
        met = compared(self.types.of(left), self.types.of(right))
        sides = (_bracket(self._value(side, met), _COMPARISON + 1) for side in (left, right))
        return f" {operator} ".join(sides), _COMPARISON

    def _apply(self, at: syntax.Apply, own: np.dtype) -> Text:
        known = BY_NAME[at.function]
        if known.rule == "convert":
            if own == BOOL:
                return f"{_bracket(self._own(at.arguments[0]), _UNARY)} != 0", _COMPARISON
            return self._value(at.arguments[0], own)
        inner = FLOAT64 if known.rule in ("double", "whole") else own
        parts = [self.value(a, inner) for a in at.arguments]
        suffix = "f" if inner == np.float32 else ""
        match known.runtime:
            case "min" | "max" as extremum:
                text = parts[0]
                for part in parts[1:]:
                    text = f"{extremum}_{SHORT[C_TYPES[inner]]}({text}, {part})"
            case "abs":
                absolute = f"fabs{suffix}" if inner.kind == "f" else "llabs"
                text = f"{absolute}({parts[0]})"
            case "sign":
                return f"({parts[0]} > 0) - ({parts[0]} < 0)", 6
            case function:
                assert function in RESERVED
                text = f"{function}{suffix}({', '.join(parts)})"
        return (f"(int64_t){text}", _UNARY) if known.rule == "whole" else (text, _ATOM)


def _literal(value: int | float | bool, dtype: np.dtype) -> Text:
    if dtype == BOOL:
        return ("true" if value else "false"), _ATOM
    text = repr(int(value)) if is_whole(dtype) else repr(float(value))
    suffix = "f" if dtype == np.float32 else ""
    return text + suffix, _ATOM if value >= 0 else _UNARY


def _bracket(text: Text, least: int) -> str:
    """The text, in brackets unless its operator binds as tightly as is needed."""
    return text[0] if text[1] >= least else f"({text[0]})"
