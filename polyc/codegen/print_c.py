"""LoopNest -> C: one function a kernel, with OpenMP pragmas and gcc vector types.

Printing is a plain walk. What a function needs from `runtime/` (functions by type and lanes,
conversions) is gathered in a `Uses` on the way, and becomes the preamble of the translation unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyc.codegen.driver import clean, scalar_type
from polyc.codegen.index import show_condition, show_index, variables
from polyc.codegen.loopnest import (
    Assign,
    Block,
    Element,
    For,
    If,
    Kernel,
    Local,
    Node,
    Transpose,
    walk_nodes,
)
from polyc.codegen.print_expr import Printer
from polyc.codegen.registers import Register, elements, register_of
from polyc.codegen.runtime_table import preamble
from polyc.codegen.scope import Registers, Scope, Uses

INDENT = "    "


@dataclass(frozen=True)
class _Place:
    """Where in the loops a node stands: what its text depends on besides itself."""

    depth: int
    scope: Scope

    @property
    def indent(self) -> str:
        return INDENT * self.depth

    def deeper(self) -> _Place:
        return _Place(self.depth + 1, self.scope)


def print_kernel(kernel: Kernel) -> str:
    """The translation unit of a kernel: comment, preamble, and one external function."""
    uses = Uses()
    printer = Printer(uses)
    shapes = {p.name: p.shape for p in kernel.params}
    scope = Scope(shapes, {}, None)
    body = list(_print_team(kernel.body, _Place(1, scope), printer))
    arguments = [
        f"{'' if p.writes else 'const '}{scalar_type(p.dtype)} *restrict {p.name}"
        for p in kernel.params
    ]
    head = f"void {kernel.name}({', '.join([*arguments, 'pc_team *team', 'int *status'])})"
    unused = f"{INDENT}(void)team, (void)status;"
    comment = [" * " + clean_line(line) for line in kernel.comment]
    return "\n".join(["/*", *comment, " */", preamble(uses), head, "{", unused, *body, "}", ""])


def _print_team(node: Node, place: _Place, printer: Printer) -> Iterator[str]:
    """A node that every thread of the team enters: parallel loops are shared, the rest runs once.

    Both forms end with a barrier, so that what follows, here or in another kernel, sees all of it.
    """
    if not any(isinstance(n, For) and n.kind == "parallel" for n in walk_nodes(node)):
        yield f"{place.indent}#pragma omp master"
        yield f"{place.indent}{{"
        yield from _print(node, place.deeper(), printer)
        yield f"{place.indent}}}"
        yield f"{place.indent}pc_barrier(team);"
        return
    match node:
        case Block(body=body):
            assert not node.locals, "a local array is shared by the iterations of a parallel loop"
            for several in _runs(body):
                yield from _print_team(several, place, printer)
        case For(kind="parallel"):
            collapse = _perfect_depth(node)
            clause = f" collapse({collapse})" if collapse > 1 else ""
            yield f"{place.indent}#pragma omp for{clause} schedule(static) nowait"
            yield from _print_for(node, place, printer)
            yield f"{place.indent}pc_barrier(team);"
        case For():
            yield f"{place.indent}{_loop_head(node)}"
            yield from _print_team(node.body, place.deeper(), printer)
            yield f"{place.indent}}}"
        case If(condition, then, otherwise):
            yield f"{place.indent}if ({show_condition(condition)}) {{"
            yield from _print_team(then, place.deeper(), printer)
            if otherwise:
                yield f"{place.indent}}} else {{"
                yield from _print_team(otherwise, place.deeper(), printer)
            yield f"{place.indent}}}"


def _runs(body: tuple[Node, ...]) -> Iterator[Node]:
    """The nodes of a block, those next to each other without a parallel loop taken together."""
    alone: list[Node] = []
    for node in body:
        if any(isinstance(n, For) and n.kind == "parallel" for n in walk_nodes(node)):
            if alone:
                yield Block(tuple(alone))
            alone = []
            yield node
        else:
            alone.append(node)
    if alone:
        yield Block(tuple(alone))


def clean_line(text: str) -> str:
    """A line of a comment; whatever could end the comment or the line is replaced."""
    return " ".join(clean(word) if "*" in word or "\\" in word else word for word in text.split())


def _print_block(block: Block, place: _Place, printer: Printer) -> Iterator[str]:
    if block.locals:
        scope = place.scope
        for local in block.locals:
            scope, lines = _declare(local, block, scope)
            yield from (f"{place.indent}{line}" for line in lines)
        place = _Place(place.depth, scope)
    for node in block.body:
        yield from _print(node, place, printer)


def _print(node: Node, place: _Place, printer: Printer) -> Iterator[str]:
    match node:
        case Block(locals=locals_):
            if not locals_:
                yield from _print_block(node, place, printer)
                return
            yield f"{place.indent}{{"
            yield from _print_block(node, place.deeper(), printer)
            yield f"{place.indent}}}"
        case For(kind="vector"):
            scope = place.scope.with_lanes(node)
            for child in node.body.body:
                assert isinstance(child, Assign)
                yield from (f"{place.indent}{line}" for line in printer.vector(child, scope))
        case For():
            yield from _print_for(node, place, printer)
        case If(condition, then, otherwise):
            yield f"{place.indent}if ({show_condition(condition)}) {{"
            yield from _print_block(then, place.deeper(), printer)
            if otherwise:
                yield f"{place.indent}}} else {{"
                yield from _print_block(otherwise, place.deeper(), printer)
            yield f"{place.indent}}}"
        case Assign():
            yield f"{place.indent}{printer.scalar(node, place.scope)}"
        case Transpose():
            yield f"{place.indent}{printer.transpose(node)}"


def _print_for(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    yield f"{place.indent}{_loop_head(loop)}"
    yield from _print_block(loop.body, place.deeper(), printer)
    yield f"{place.indent}}}"


def _loop_head(loop: For) -> str:
    return (
        f"for (i64 {loop.var} = {show_index(loop.lower)}; "
        f"{loop.var} < {show_index(loop.upper)}; {loop.var} += {loop.step}) {{"
    )


def _perfect_depth(loop: For) -> int:
    """How many parallel loops stand directly inside one another, with bounds of their own."""
    depth, outer = 1, {loop.var}
    while True:
        body = loop.body
        if body.locals or len(body.body) != 1:
            return depth
        inner = body.body[0]
        if not isinstance(inner, For) or inner.kind != "parallel":
            return depth
        if (variables(inner.lower) | variables(inner.upper)) & outer:
            return depth
        loop, depth = inner, depth + 1
        outer.add(loop.var)


def _declare(local: Local, block: Block, scope: Scope) -> tuple[Scope, list[str]]:
    """Declarations of a local array: named registers, or an aligned array on the stack."""
    element = scalar_type(local.dtype)
    if not local.in_registers:
        size = 1
        for n in local.shape:
            size *= n
        line = f"{element} {local.name}[{size}] __attribute__((aligned(64)));"
        return scope.with_array(local), [line]
    found: dict[str, Register] = {}
    for place, loop in _accesses(local.name, block):
        register = register_of(place, loop)
        assert register is not None, f"{local.name} is not in registers"
        found[register.name(local)] = register
    by_type: dict[str, list[str]] = {}
    for name, register in found.items():
        kind = element if register.lanes == 1 else f"{element}x{register.lanes}"
        by_type.setdefault(kind, []).append(name)
    lines = [f"{kind} {', '.join(names)};" for kind, names in by_type.items()]
    holder = {cell: register for register in found.values() for cell in register.cells}
    return scope.with_registers(Registers(local, holder)), lines


def _accesses(array: str, block: Block) -> Iterator[tuple[Element, For | None]]:
    return ((e, loop) for e, loop in elements(block, None) if e.array == array)
