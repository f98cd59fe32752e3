"""Python's text of a kernel -> `Function`; what is outside of the subset is refused by its place.

The function is never run. Its text is read by `ast`; names that it does not assign are looked up
where Python would look for them, and must be numbers, modules, functions of `functions.py`, or
other kernels, whose bodies take the place of their calls (`inline.py`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyc.errors import UnsupportedLoop
from polyc.loops.read.inline import Callee, inline
from polyc.loops.read.leaving import leaves_loop, without_leaves
from polyc.loops.read.parse_expression import BINARY, Reader
from polyc.loops.read.syntax import (
    Assign,
    Branch,
    Command,
    Element,
    Extent,
    Function,
    Loop,
    Name,
    Number,
    Place,
    commands,
    expressions,
    walk,
)


def parse(function: Callable[..., Any]) -> Function:
    """The kernel that a Python function says; UnsupportedLoop where it leaves the subset."""
    tree, file, line, column = _read(function)
    arguments = _arguments(tree.args, Place(file, tree.lineno + line, tree.col_offset + column + 1))
    reader = Reader(file, line, column, _lookup(function), frozenset(_assigned(tree)), arguments)
    body = _Parser(reader).body(tree.body)
    arrays = frozenset(
        part.array
        for command in commands(body)
        for expression in expressions(command)
        for part in walk(expression)
        if isinstance(part, Element | Extent)
    )
    return Function(tree.name, arguments, arrays, body, reader.place(tree))


def _read(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str, int, int]:
    """The syntax tree, its file, and what to add to its lines and columns."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "<unknown>"
    except (OSError, TypeError) as error:
        raise UnsupportedLoop(
            f"kernel {name!r}: its text cannot be read ({error}); write it in a file"
        ) from error
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    module = ast.parse(dedented)
    tree = module.body[0]
    column = len(lines[0]) - len(lines[0].lstrip())
    if not isinstance(tree, ast.FunctionDef):
        place = Place(file, first, column + 1)
        place.refuse("a kernel is a function made by `def`", "write it so")
    return tree, file, first - 1, column


def _arguments(arguments: ast.arguments, place: Place) -> tuple[str, ...]:
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        place.refuse("a kernel takes named arguments alone", "leave `*` and `**` out")
    if arguments.defaults:
        place.refuse("an argument of a kernel has no default", "give it at each call")
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))


def _lookup(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The names that the function sees from outside, as they are now."""
    found = inspect.getclosurevars(function)
    return {**found.builtins, **found.globals, **found.nonlocals}


def _assigned(tree: ast.FunctionDef) -> Iterator[str]:
    """The names that are local to the function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@dataclass
class _Parser:
    """Statements; `loops` are the variables of the loops around, outermost first."""

    reader: Reader
    loops: list[str] = field(default_factory=list)
    calls: int = 0
    pairs: int = 0
    leaves: int = 0

    def body(self, statements: list[ast.stmt]) -> tuple[Command, ...]:
        return tuple(c for s in statements for c in self.statement(s))

    def statement(self, node: ast.stmt) -> Iterator[Command]:
        place = self.reader.place(node)
        match node:
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                return
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                yield from self.unpack(names, value, place)
            case ast.Assign(targets=[target], value=value):
                yield Assign(self.target(target), self.reader.expression(value), None, place)
            case ast.Assign():
                place.refuse("an assignment has one target", "write one statement for each")
            case ast.AnnAssign(target=target, value=value, simple=1) if value is not None:
                yield Assign(self.target(target), self.reader.expression(value), None, place)
            case ast.AugAssign(target=target, op=op, value=value):
                if type(op) not in BINARY:
                    place.refuse("`@=` is no operator of elements", "write its loops")
                read = self.reader.expression(value)
                yield Assign(self.target(target), read, BINARY[type(op)], place)
            case ast.For():
                yield from self.loop(node, place)
            case ast.If(test, then, otherwise):
                condition = self.reader.expression(test)
                yield Branch(condition, self.body(then), self.body(otherwise), place)
            case ast.Expr(ast.Call() as call):
                yield from self.call(call, place)
            case ast.Return(value=None | ast.Constant(None)) if not self.loops:
                place.refuse("`return` ends a kernel early", "leave it out; use `if` around loops")
            case _:
                self.reader.refuse_statement(node)

    def target(self, node: ast.expr) -> Name | Element:
        place = self.reader.place(node)
        match node:
            case ast.Name(name):
                if name in self.reader.arguments:
                    place.refuse(
                        f"argument {name!r} is assigned to",
                        "assign to its elements, or to a local of another name",
                    )
                if name in self.loops:
                    place.refuse(
                        f"{name!r} is the variable of a loop around", "choose another name"
                    )
                return Name(name, place)
            case ast.Subscript():
                read = self.reader.expression(node)
                if isinstance(read, Element):
                    return read
        place.refuse("only elements of arrays, and local scalars, are assigned to", "write A[i, j]")

    def unpack(self, names: list[ast.expr], value: ast.expr, place: Place) -> Iterator[Command]:
        """n, m = A.shape   ->   n = A.shape[0]; m = A.shape[1]

        a, b = b, a     ->   x = b; y = a; a = x; b = y
        """
        match value:
            case ast.Attribute(ast.Name(array), "shape") if array in self.reader.arguments:
                for axis, name in enumerate(names):
                    yield Assign(self.target(name), Extent(array, axis, place), None, place)
            case ast.Tuple(elts=values) | ast.List(elts=values) if len(values) == len(names):
                yield from self.pairwise(names, values, place)
            case _:
                place.refuse(
                    "only the shape of an array, and a value for each name, are unpacked",
                    "write one assignment for each name",
                )

    def pairwise(
        self, names: list[ast.expr], values: list[ast.expr], place: Place
    ) -> Iterator[Command]:
        """All values are read before anything is assigned: if need be, into locals of their own."""
        targets = [self.target(name) for name in names]
        found = [self.reader.expression(value) for value in values]
        written = {t.name if isinstance(t, Name) else t.array for t in targets}
        parts = [part for value in found for part in walk(value)]
        read = {p.name for p in parts if isinstance(p, Name)}
        read |= {p.array for p in parts if isinstance(p, Element)}
        if written & read:
            self.pairs += 1
            between = [Name(f"pair {self.pairs}.{k}", place) for k in range(len(found))]
            for name, value in zip(between, found, strict=True):
                yield Assign(name, value, None, place)
            found = [*between]
        for target, value in zip(targets, found, strict=True):
            yield Assign(target, value, None, place)

    def loop(self, node: ast.For, place: Place) -> Iterator[Command]:
        """A loop; behind a local that says whether it was left, if it breaks off."""
        if node.orelse:
            place.refuse("`else` of a loop is outside of the subset", "write it behind the loop")
        if not isinstance(node.target, ast.Name):
            place.refuse("a loop has one variable", "write `for i in range(…)`")
        variable = node.target.id
        if variable in self.loops or variable in self.reader.arguments:
            place.refuse(f"{variable!r} is the name of something else", "choose another name")
        start, stop, step = self.range(node.iter, place)
        self.loops.append(variable)
        self.reader.variables.append(variable)
        self.leaves += 1
        left, skipped = f"left {self.leaves}", f"skipped {self.leaves}"
        self.reader.assigned |= {left, skipped}
        leaves = leaves_loop(node.body)
        if leaves:
            yield Assign(Name(left, place), Number(False, place), None, place)
        body = self.body(without_leaves(node.body, left, skipped))
        self.reader.variables.pop()
        self.loops.pop()
        yield Loop(variable, start, stop, step, body, place, left if leaves else "")

    def range(self, node: ast.expr, place: Place) -> tuple[Any, Any, int]:
        """The bounds and the step of range(…)."""
        match node:
            case ast.Call(ast.Name("range"), arguments, []) if 1 <= len(arguments) <= 3:
                bounds = [self.reader.expression(a) for a in arguments]
            case _:
                place.refuse("a loop runs over `range(…)`", "write `for i in range(n)`")
        if len(bounds) == 1:
            return Number(0, place), bounds[0], 1
        step = self.reader.constant(bounds[2]) if len(bounds) == 3 else 1
        if step is None or isinstance(step, float) or step == 0:
            place.refuse("the step of a loop is a whole number other than 0", "write a literal")
        return bounds[0], bounds[1], int(step)

    def call(self, node: ast.Call, place: Place) -> Iterator[Command]:
        """Another kernel's body, on what it is given."""
        callee = self.reader.outside(node.func)
        if not isinstance(callee, Callee):
            place.refuse(
                "only other kernels are called as statements", "decorate it with @polyc.kernel"
            )
        if node.keywords:
            place.refuse("a kernel is called with arguments by position", "leave names out")
        self.calls += 1
        given = [self.reader.argument(a) for a in node.args]
        yield from inline(callee.function, given, f"{self.calls}", place)
