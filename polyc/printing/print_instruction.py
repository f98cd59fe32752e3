"""Instructions in C: their operands are filled from memory, and the table spells the rest.

y_l_0 = pc_dot4_u8i8_i32x16(y_l_0, pc_repeat_u8x64(&A[k], 4), pc_load_i8x64(&B[64 * k]));
PC_TILE_LOAD(4, &A[k], 256); PC_TILE_LOAD(6, &B[32 * k], 128); PC_TILE_PRODUCT(u8i8, 0, 4, 6);
"""

from __future__ import annotations

from collections.abc import Mapping

from polyc.loopnest.index import Affine, stride
from polyc.loopnest.index_text import show_index
from polyc.loopnest.instructions import Match, match_nest
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    LoopExpr,
    Read,
    Tiled,
    TileMove,
    TileProduct,
    TileShapes,
    walk_nodes,
)
from polyc.loopnest.registers import register_of
from polyc.loopnest.substitute import substitute_element
from polyc.printing.literals import bare
from polyc.printing.print_expr import Printer
from polyc.printing.scope import Scope, Uses
from polyc.scop.expr import Call
from polyc.target.instructions.matrices import HEADER, MATRICES, REGISTERS
from polyc.target.instructions.rows import Operand, Spelled
from polyc.types.element_types import scalar_type


def print_instruction(loop: For, printer: Printer, scope: Scope) -> list[str]:
    """A loop that an instruction runs in each lane of scope.lanes."""
    assert scope.lanes is not None
    assert isinstance(loop.instruction, Spelled)
    (assign,) = loop.body.body
    assert isinstance(assign, Assign)
    row, spelling = loop.instruction.row, loop.instruction.spelling
    found = match_nest(row, (scope.lanes, loop), assign, scope.address)
    assert isinstance(found, Match), found.reason
    fields = {
        operand.name: _fill(operand, found.values[operand.name], loop, printer, scope)
        for operand in row.nest.operands
    }
    printer.uses.functions.add(("splat", scalar_type(assign.dtype), scope.count))
    if spelling.header:
        printer.uses.instructions.add((spelling.header, scope.count))
    result = row.nest.result.name

    def spelled(target: str) -> str:
        return spelling.text.format(lanes=scope.count, **{**fields, result: target})

    if assign.target.array in scope.registers:
        register = register_of(assign.target, scope.lanes)
        assert register is not None
        return [spelled(register.name(scope.registers[assign.target.array].local))]
    place = printer.place_of(assign.target, scope)
    partial = scope.is_partial(assign.target)
    old = printer.move(assign.dtype, scope, place, 1, partial)
    kind = f"{scalar_type(assign.dtype)}x{scope.count}"
    stored = printer.move(assign.dtype, scope, place, 1, partial, "pc_lanes")
    lines = (f"{kind} pc_lanes = {old};", spelled("pc_lanes"), stored)
    return ["{", *(f"    {line}" for line in lines), "}"]


def _fill(operand: Operand, value: LoopExpr, loop: For, printer: Printer, scope: Scope) -> str:
    """The register of an operand: a load, or functions of loads and of what is the same in all."""
    assert scope.lanes is not None
    group = operand.steps[0]
    assert isinstance(group, int)
    kind, count = scalar_type(value.dtype), scope.count * group
    match value:
        case Read():
            return _load(value, group, loop, printer, scope)
        case Call(function, arguments):
            parts = [bare(_fill(operand, a, loop, printer, scope)) for a in arguments]
        case _:
            function, parts = "splat", [bare(printer.expr(value, scope.alone))]
    printer.uses.functions.add((function, kind, count))
    return f"pc_{function}_{kind}x{count}({', '.join(parts)})"


def _load(read: Read, group: int, loop: For, printer: Printer, scope: Scope) -> str:
    """A register from memory, or an element of `group` numbers over and over."""
    assert scope.lanes is not None
    # A register of bytes is a vector like any other, with `group` elements in place of a lane.
    first = substitute_element(read.element, {loop.var: loop.lower})
    place = printer.place_of(first, scope)
    kind, count = scalar_type(read.dtype), scope.count * group
    name = f"pc_{{}}_{kind}x{count}"
    if stride(scope.address(read.element), scope.lanes.var) == 0:
        printer.uses.functions.add(("repeat", kind, count))
        return f"{name.format('repeat')}({place}, {group})"
    if not scope.is_partial(read.element):
        printer.uses.functions.add(("load", kind, count))
        return f"{name.format('load')}({place})"
    printer.uses.functions.add(("loadn", kind, count))
    filled: Affine = scope.filled * group
    return f"{name.format('loadn')}({place}, {show_index(filled)})"


Shapes = tuple[tuple[int, int], ...]
"""Of the registers for matrices: (rows, bytes of a row) of each."""


def number_shapes(body: Block) -> dict[Shapes, int]:
    """The shapes that registers for matrices take in a function, numbered as they are met."""
    found = (node.shapes for node in walk_nodes(body) if isinstance(node, TileShapes))
    return {shapes: k for k, shapes in enumerate(dict.fromkeys(found))}


def declare_shapes(numbers: Mapping[Shapes, int], uses: Uses) -> list[str]:
    """What stands at the beginning of a function that uses such registers."""
    if not numbers:
        return []
    uses.headers.add(HEADER)
    rest = [0] * REGISTERS  # the format has room for as many registers again
    lines = []
    for shapes, k in numbers.items():
        sizes = ", ".join(map(str, [*(size for _, size in shapes), *rest]))
        rows = ", ".join(map(str, [*(count for count, _ in shapes), *rest]))
        value = f"{{1, 0, {{0}}, {{{sizes}}}, {{{rows}}}}}"
        lines.append(f"static const pc_shapes pc_shapes_{k} = {value};")
    return [*lines, "PC_TILES;"]


def print_tiled(node: Tiled, numbers: Mapping[Shapes, int], scope: Scope) -> str:
    """What is done with a register for matrices."""
    match node:
        case TileShapes(shapes):
            return f"PC_TILES_AS(pc_shapes_{numbers[shapes]});"
        case TileProduct(instruction, result, a, b):
            kinds = next(row.kinds for row in MATRICES if row.name == instruction)
            return f"PC_TILE_PRODUCT({kinds}, {result}, {a}, {b});"
        case TileMove("zero", register):
            return f"PC_TILE_ZERO({register});"
        case TileMove(kind, register, first, second):
            start = scope.address(first)
            apart = show_index(scope.address(second) - start)
            place = f"&{first.array}[{show_index(start)}]"
            return f"PC_TILE_{kind.upper()}({register}, {place}, {apart});"
