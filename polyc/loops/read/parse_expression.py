"""Expressions of a kernel: Python's syntax tree -> `Expression`."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from polyc.loops.read.functions import FUNCTIONS
from polyc.loops.read.syntax import (
    Apply,
    Binary,
    Choice,
    Comparison,
    Element,
    Expression,
    Extent,
    Logic,
    Name,
    Number,
    Place,
    Unary,
)

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_UNARY: Mapping[type[ast.unaryop], str] = {
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
}
_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.While: ("`while` is outside of the subset", "write `for … in range(…)`"),
    ast.Return: ("a kernel gives nothing back", "write results into an array"),
    ast.FunctionDef: ("a function inside of a kernel", "write it outside, as a kernel"),
    ast.With: ("`with` is outside of the subset", "leave it out"),
    ast.Try: ("`try` is outside of the subset", "leave it out"),
    ast.Raise: ("`raise` is outside of the subset", "check arguments before the call"),
    ast.Assert: ("`assert` is outside of the subset", "check arguments before the call"),
    ast.Delete: ("`del` is outside of the subset", "leave it out"),
    ast.Global: ("`global` is outside of the subset", "give it as an argument"),
    ast.Nonlocal: ("`nonlocal` is outside of the subset", "give it as an argument"),
    ast.Import: ("`import` inside of a kernel", "import at the head of the file"),
    ast.ImportFrom: ("`import` inside of a kernel", "import at the head of the file"),
    ast.ListComp: ("a list is outside of the subset", "write a loop"),
    ast.GeneratorExp: ("a generator is outside of the subset", "write a loop"),
    ast.Lambda: ("`lambda` is outside of the subset", "write a kernel"),
    ast.List: ("a list is outside of the subset", "give an array as an argument"),
    ast.Tuple: ("a tuple is outside of the subset", "write one statement for each part"),
    ast.Dict: ("a dictionary is outside of the subset", "give arrays as arguments"),
    ast.Slice: ("a slice is outside of the subset", "write a loop over its elements"),
    ast.Starred: ("`*` is outside of the subset", "write each argument"),
    ast.NamedExpr: ("`:=` is outside of the subset", "write a statement"),
    ast.JoinedStr: ("text is outside of the subset", "leave it out"),
}


@dataclass
class Reader:
    """Reads expressions of one function.

    line, column: what to add to the places of its syntax tree. seen: what it sees from outside.
    assigned: its locals. variables: those of the loops around what is read.
    """

    file: str
    line: int
    column: int
    seen: Mapping[str, Any]
    assigned: frozenset[str]
    arguments: tuple[str, ...]
    variables: list[str] = field(default_factory=list)

    def place(self, node: ast.AST) -> Place:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return Place(self.file, line + self.line, column + self.column + 1)

    def refuse_statement(self, node: ast.AST) -> NoReturn:
        what = f"`{type(node).__name__}` is outside of the subset"
        rule, way_out = _REFUSED.get(type(node), (what, "write loops, conditions and assignments"))
        self.place(node).refuse(rule, way_out)

    def expression(self, node: ast.expr) -> Expression:
        place = self.place(node)
        match node:
            case ast.Constant(bool() | int() | float() as value):
                return Number(value, place)
            case ast.Constant():
                place.refuse(f"{node.value!r} is no number", "use numbers and booleans alone")
            case ast.Name(name):
                return self.name(name, node)
            case ast.Attribute():
                return self.number(self.outside(node), place)
            case ast.Subscript():
                return self.subscript(node)
            case ast.BinOp(left, op, right) if type(op) in BINARY:
                sides = self.expression(left), self.expression(right)
                return Binary(BINARY[type(op)], *sides, place)
            case ast.UnaryOp(op, operand):
                return Unary(_UNARY[type(op)], self.expression(operand), place)
            case ast.BoolOp(op, values):
                word = "and" if isinstance(op, ast.And) else "or"
                return self.joined(word, [self.expression(v) for v in values], place)
            case ast.Compare():
                return self.comparison(node)
            case ast.IfExp(test, body, orelse):
                parts = self.expression(test), self.expression(body), self.expression(orelse)
                return Choice(*parts, place)
            case ast.Call():
                return self.call(node)
            case _:
                self.refuse_statement(node)

    def name(self, name: str, node: ast.AST) -> Expression:
        place = self.place(node)
        if name in self.arguments or name in self.variables:
            return Name(name, place)
        if name in self.assigned:
            return Name(name, place)
        if name not in self.seen:
            place.refuse(f"{name!r} is not known here", "give it as an argument")
        return self.number(self.seen[name], place)

    def number(self, value: Any, place: Place) -> Expression:
        if isinstance(value, np.bool_ | np.integer | np.floating):
            value = value.item()
        if not isinstance(value, bool | int | float):
            place.refuse(
                f"a {type(value).__name__} from outside is no number", "give it as an argument"
            )
        return Number(value, place)

    def outside(self, node: ast.expr) -> Any:
        """What a name, or a name in a module, stands for outside of the function."""
        place = self.place(node)
        match node:
            case ast.Name(name) if name not in self.assigned and name not in self.arguments:
                if name not in self.seen:
                    place.refuse(f"{name!r} is not known here", "import or define it")
                return self.seen[name]
            case ast.Attribute(value, attribute):
                if isinstance(value, ast.Name) and value.id in self.arguments:
                    place.refuse(
                        f"`.{attribute}` of an argument is outside of the subset",
                        "an array has elements and a shape",
                    )
                home = self.outside(value)
                if isinstance(home, types.ModuleType) and hasattr(home, attribute):
                    return getattr(home, attribute)
        place.refuse("this stands for nothing that a kernel may use", "give it as an argument")

    def subscript(self, node: ast.Subscript) -> Expression:
        place = self.place(node)
        match node.value:
            case ast.Attribute(ast.Name(array), "shape") if array in self.arguments:
                axis = self.constant(self.expression(node.slice))
                if isinstance(axis, bool) or not isinstance(axis, int):
                    place.refuse("the axis of a shape is a literal", "write A.shape[0]")
                return Extent(array, axis, place)
            case ast.Name(array) if array in self.arguments:
                inside = node.slice
                parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return Element(array, tuple(map(self.expression, parts)), place)
            case ast.Subscript():
                outer = self.subscript(node.value)  # A[i][j] is A[i, j]
                if isinstance(outer, Element):
                    inner = node.slice
                    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                    subscripts = (*outer.subscripts, *map(self.expression, parts))
                    return Element(outer.array, subscripts, outer.place)
        place.refuse("only arguments are subscripted", "give arrays as arguments")

    def joined(self, word: str, parts: list[Expression], place: Place) -> Expression:
        first, *rest = parts
        for part in rest:
            first = Logic(word, first, part, place)
        return first

    def comparison(self, node: ast.Compare) -> Expression:
        """a < b < c   ->   a < b and b < c"""
        place = self.place(node)
        sides = [self.expression(e) for e in (node.left, *node.comparators)]
        parts: list[Expression] = []
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if type(op) not in _COMPARED:
                place.refuse("`in` and `is` are outside of the subset", "compare numbers")
            parts.append(Comparison(_COMPARED[type(op)], left, right, place))
        return self.joined("and", parts, place)

    def call(self, node: ast.Call) -> Expression:
        place = self.place(node)
        if node.keywords:
            place.refuse("a function is called with arguments by position", "leave names out")
        function = self.outside(node.func)
        if function is len and len(node.args) == 1:
            match node.args[0]:
                case ast.Name(array) if array in self.arguments:
                    return Extent(array, 0, place)
        try:
            known = FUNCTIONS.get(function)
        except TypeError:  # what cannot be hashed is no function of the table
            known = None
        if known is None:
            what = getattr(function, "__name__", type(function).__name__)
            place.refuse(f"`{what}` is no function that a kernel may call", "use those of math")
        least = known.arity or 2
        if len(node.args) < least or (known.arity and len(node.args) > known.arity):
            place.refuse(f"`{known.name}` takes {least} arguments here", "give it as many")
        return Apply(known.name, tuple(map(self.expression, node.args)), place)

    def argument(self, node: ast.expr) -> Expression:
        """What another kernel is given: an array by its name, or an expression."""
        if isinstance(node, ast.Subscript) and any(
            isinstance(part, ast.Slice) for part in ast.walk(node)
        ):
            self.place(node).refuse(
                "a part of an array is given to a kernel", "give the array and where to begin"
            )
        return self.expression(node)

    def constant(self, expression: Expression) -> int | float | None:
        """The value of a literal with its sign, if it is one."""
        match expression:
            case Number(value):
                return value
            case Unary("-", operand):
                inside = self.constant(operand)
                return None if inside is None else -inside
            case _:
                return None
