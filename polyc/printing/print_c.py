"""LoopNest -> C: one function a kernel, with shared loops and gcc vector types.

Printing is a plain walk. What a function needs from `runtime/` (functions by type and lanes,
conversions) is gathered in a `Uses` on the way, and becomes the preamble of the translation unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from polyc.loopnest.index import Affine, const, of_extent, variables
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.nodes import (
    Assign,
    Barrier,
    Block,
    Element,
    For,
    If,
    Kernel,
    Local,
    LoopExpr,
    Node,
    TileMove,
    TileProduct,
    TileShapes,
    Transpose,
    Value,
    extent_of,
)
from polyc.loopnest.registers import Register, elements, register_of
from polyc.names import LONGEST, comment
from polyc.printing.c_names import name_for_c
from polyc.printing.near import declare_near
from polyc.printing.print_expr import Printer
from polyc.printing.print_instruction import (
    Shapes,
    declare_shapes,
    number_shapes,
    print_instruction,
    print_tiled,
)
from polyc.printing.runtime_table import preamble
from polyc.printing.scope import LINE, Registers, Scope, Uses
from polyc.scop.expr import Call, Const
from polyc.types.element_types import scalar_type

INDENT = "    "


@dataclass(frozen=True)
class _Place:
    """Where in the loops a node stands: what its text depends on besides itself."""

    depth: int
    scope: Scope
    tiles: Mapping[Shapes, int]

    @property
    def indent(self) -> str:
        return INDENT * self.depth

    def deeper(self, *loops: For) -> _Place:
        """One step further in, inside of these loops."""
        scope = self.scope
        for loop in loops:
            scope = scope.with_loop(loop)
        return replace(self, depth=self.depth + 1, scope=scope)


def print_kernel(kernel: Kernel) -> str:
    """The translation unit of a kernel: comment, preamble, and one external function.

    Its body says what threads of a team do (`share_out`).
    """
    return print_remarks(kernel.comment) + print_unit(name_for_c(kernel))


def print_remarks(lines: Iterable[str]) -> str:
    """The comment that a kernel's text begins with."""
    return "\n".join(["/*", *(" * " + clean_line(line) for line in lines), " */", ""])


def print_unit(kernel: Kernel) -> str:
    """The rest of it: preamble and function, of a kernel whose arrays have their names in C."""
    uses = Uses()
    printer = Printer(uses)
    shapes = {p.name: p.shape for p in kernel.params}
    scope = Scope(shapes, {}, None, types={p.name: p.dtype for p in kernel.params})
    tiles = number_shapes(kernel.body)
    place = _Place(1, scope, tiles)
    body = [
        f"{INDENT}const i64 {size} = {show_index(of_extent(meaning))};"
        for size, meaning in kernel.products
    ]
    body += [f"{INDENT}{line}" for line in declare_shapes(tiles, uses)]
    body += _print_team(kernel.body, place, printer)
    body += [f"{INDENT}PC_TILES_END;"] if tiles else []
    arguments = [
        f"{'' if p.writes else 'const '}{scalar_type(p.dtype)} *restrict {p.name}"
        for p in kernel.params
    ]
    arguments += [f"i64 {size}" for size in kernel.sizes]
    head = f"void {kernel.name}({', '.join([*arguments, 'pc_thread *pc_self', 'int *status'])})"
    unused = f"{INDENT}(void)pc_self, (void)status;"
    return "\n".join([preamble(uses), head, "{", unused, *body, "}", ""])


def _print_team(block: Block, place: _Place, printer: Printer) -> Iterator[str]:
    """What all threads of a team go through, node by node."""
    for node in block.body:
        yield from _print_piece(node, place, printer)


def _print_piece(node: Node, place: _Place, printer: Printer) -> Iterator[str]:
    inside = place.deeper()
    match node:
        case Barrier():
            yield f"{place.indent}pc_barrier(pc_self);"
        case For(kind="parallel"):
            yield from _print_shared(node, place, printer)
        case For(body=Block(team=True)):
            yield f"{place.indent}{_loop_head(node)}"
            yield from _print_team(node.body, place.deeper(node), printer)
            yield f"{place.indent}}}"
        case If(condition, Block(team=True) as then, None | Block(team=True) as otherwise):
            yield f"{place.indent}if ({show_condition(condition)}) {{"
            yield from _print_team(then, inside, printer)
            if otherwise:
                yield f"{place.indent}}} else {{"
                yield from _print_team(otherwise, inside, printer)
            yield f"{place.indent}}}"
        case Block(team=True):
            yield from _print_team(node, place, printer)
        case Block():
            yield f"{place.indent}PC_SHARE(1) {{"
            yield from _print(node, inside, printer)
            yield f"{place.indent}}}"
        case _:
            raise AssertionError("who of a team executes this?")


def _print_shared(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    """Perfectly nested parallel loops as one, whose iterations the team shares.

    for i in 0 .. 6 step 3:  # parallel
      for j in 1 .. 6 step 1:  # parallel
        -> PC_SHARE(10) { const i64 i = 3 * (pc_n / 5); const i64 j = pc_n % 5 + 1; ... }
    """
    loops = _perfect_nest(loop)
    yield f"{place.indent}PC_SHARE({_product(loops)}) {{"
    inside = place.deeper(*loops)
    for k, each in enumerate(loops):
        number = f"pc_n / {_product(loops[k + 1 :])}" if loops[k + 1 :] else "pc_n"
        number += f" % {_product([each])}" if k else ""
        if each.step != 1:
            number = f"{each.step} * ({number})" if " " in number else f"{each.step} * {number}"
        start = "" if each.lower == Affine() else f" + {show_index(each.lower)}"
        yield f"{inside.indent}const i64 {each.var} = {number}{start};"
    yield from _print_block(loops[-1].body, inside, printer)
    yield f"{place.indent}}}"


def _perfect_nest(loop: For) -> list[For]:
    """Parallel loops that stand directly inside one another, with bounds of their own."""
    loops = [loop]
    while not (loop.body.locals or loop.body.near) and len(loop.body.body) == 1:
        inner = loop.body.body[0]
        if not isinstance(inner, For) or inner.kind != "parallel":
            break
        if (variables(inner.lower) | variables(inner.upper)) & {outer.var for outer in loops}:
            break
        loops.append(inner)
        loop = inner
    return loops


def _product(loops: Sequence[For]) -> str:
    """The number of iterations of loops with bounds of their own, all together."""
    known = [extent_of(loop) for loop in loops]
    factors = [
        f"pc_trips({show_index(loop.lower)}, {show_index(loop.upper)}, {loop.step})"
        for loop, extent in zip(loops, known, strict=True)
        if extent is None
    ]
    literal = math.prod(n for n in known if n is not None)
    text = " * ".join([str(literal), *factors] if literal != 1 or not factors else factors)
    return f"({text})" if len(factors) + (literal != 1) > 1 else text


def clean_line(text: str) -> str:
    """A line of a comment; a word with what could end the comment or the line is replaced."""
    return " ".join(word if _is_plain(word) else comment(word) for word in text.split())


def _is_plain(word: str) -> bool:
    """Whether no part of a word could end a comment, or begin an escape or a trigraph."""
    return (
        word.isascii()
        and word.isprintable()
        and len(word) <= LONGEST
        and {"*", "\\", "?"}.isdisjoint(word)
    )


def _print_block(block: Block, place: _Place, printer: Printer) -> Iterator[str]:
    if block.near:
        block, scope, lines = declare_near(block, place.scope)
        yield from (f"{place.indent}{line}" for line in lines)
        place = replace(place, scope=scope)
    if block.locals:
        scope = place.scope
        for local in block.locals:
            scope, lines = _declare(local, block, scope)
            yield from (f"{place.indent}{line}" for line in lines)
        place = replace(place, scope=scope)
    for node in block.body:
        yield from _print(node, place, printer)


def _print(node: Node, place: _Place, printer: Printer) -> Iterator[str]:
    match node:
        case Block(locals=locals_, near=near):
            if not (locals_ or near):
                yield from _print_block(node, place, printer)
                return
            yield f"{place.indent}{{"
            yield from _print_block(node, place.deeper(), printer)
            yield f"{place.indent}}}"
        case For(kind="vector"):
            scope = place.scope.with_lanes(node)
            for child in node.body.body:
                if isinstance(child, For):
                    lines = print_instruction(child, printer, scope)
                else:
                    assert isinstance(child, Assign)
                    lines = printer.vector(child, scope)
                yield from (f"{place.indent}{line}" for line in lines)
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
        case TileShapes() | TileMove() | TileProduct():
            yield f"{place.indent}{print_tiled(node, place.tiles, place.scope)}"


def _print_for(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    if loop.kind == "simd":
        clauses = [f" reduction({SUMS[op]}:{name})" for op, name in loop.reduces]
        yield f"#pragma omp simd{''.join(clauses)}"
    inside = place.deeper(loop)
    first, most = show_index(loop.lower), show_index(loop.upper)
    last = ""
    if loop.end is not None:
        last = f"pc_min({printer.expr(loop.end, place.scope)}, {most})"
        if not (loop.lower.is_constant and loop.upper.is_constant):
            # What says where a loop ends need not exist where no iteration would read it.
            last = f"{first} < {most} ? {last} : {most}"
        if loop.begin is not None:
            begin = f"pc_max({printer.expr(loop.begin, place.scope)}, {first})"
            first = f"{first} < {most} ? {begin} : {most}"
    elif loop.only is not None:
        within = f"{first} <= {loop.var} && {loop.var} < {most}"
        has_any = f"{first} < {most}"
        if loop.left is not None:
            stays = _print_stays(loop.left, printer, place.scope)
            within, has_any = f"{within} && {stays}", f"{has_any} && {stays}"
        first, last = printer.expr(loop.only, place.scope), f"{loop.var} + ({within})"
        if _is_within(loop.only, loop):
            yield f"{place.indent}if ({has_any}) {{"
            yield f"{inside.indent}const i64 {loop.var} = {first};"
            yield from _print_block(loop.body, inside, printer)
            yield f"{place.indent}}}"
            return
    if last:
        end = f"{loop.var}_end"
        yield (
            f"{place.indent}for (i64 {loop.var} = {first}, {end} = {last}; "
            f"{loop.var} < {end}; {loop.var} += {loop.step}) {{"
        )
    else:
        yield f"{place.indent}{_loop_head(loop)}"
    if loop.left is not None and loop.only is None:
        yield f"{inside.indent}if ({printer.expr(loop.left, place.scope)})"
        yield f"{inside.indent}{INDENT}break;"
    if loop.forgets:
        yield f"{inside.indent}PC_FORGET;"
    for element in loop.ahead:
        place_ahead = show_index(inside.scope.address(element))
        yield f"{inside.indent}PC_FETCH(&{element.array}[{place_ahead}]);"
    yield from _print_block(loop.body, inside, printer)
    yield f"{place.indent}}}"


def _print_stays(left: LoopExpr, printer: Printer, scope: Scope) -> str:
    """That a loop is not left."""
    match left:
        case Call("not", (stays,)):
            return printer.expr(stays, scope)
    return f"!{printer.expr(left, scope)}"


def _is_within(only: LoopExpr, loop: For) -> bool:
    """Whether the iteration that data picks is within its loop, if that has any."""
    match only:
        case Call("index", (_, bound)):
            extent = const(int(bound.value)) if isinstance(bound, Const) else None
            extent = bound.index if isinstance(bound, Value) else extent
            return loop.lower == const(0) and loop.upper == extent
    return False


SUMS: Mapping[str, str] = {"add": "+", "mul": "*", "larger": "max", "smaller": "min"}
"""Reductions that `#pragma omp simd` is told of, and how it spells them."""


def _loop_head(loop: For) -> str:
    return (
        f"for (i64 {loop.var} = {show_index(loop.lower)}; "
        f"{loop.var} < {show_index(loop.upper)}; {loop.var} += {loop.step}) {{"
    )


def _declare(local: Local, block: Block, scope: Scope) -> tuple[Scope, list[str]]:
    """Declarations of a local array: named registers, or an aligned array on the stack."""
    if local.in_registers:
        return declare_registers(local, block, scope)
    inside = scope.with_array(local)
    size = prod(inside.shapes[local.name])
    line = f"{scalar_type(local.dtype)} {local.name}[{size}] __attribute__((aligned({LINE})));"
    return inside, [line]


def declare_registers(local: Local, block: Block, scope: Scope) -> tuple[Scope, list[str]]:
    """A variable for each register of a local, by type, and the scope inside."""
    element = scalar_type(local.dtype)
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
