"""LoopNest -> CUDA: one `__global__` function a kernel.

    for b in 0 .. 64:  # block             const int b = PC_BLOCK_X;
      shared float32 tile[1024]            PC_SHARED(f32, tile, 1024);
      for t in 0 .. 256:  # thread    ->   {
        tile[t] = …                            const int t = PC_THREAD_X;
      barrier                                  tile[t] = …
      for t in 0 .. 256:  # thread         }
        … tile[255 - t] …                  PC_SYNC();

The loops over blocks are numbered as one, as are the threads of a block; a loop over threads says
which of them runs what. What stands outside of such loops is done by all threads alike, and written
to memory by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from polyc.codegen.cuda.fold import fold_address, fold_condition
from polyc.codegen.cuda.grid import DeviceText, Grid, number_blocks, split_blocks
from polyc.codegen.cuda.shared_memory import Shared, place_shared
from polyc.codegen.cuda.tensor_copies import find_tensor_maps, match_box, print_box, print_wait
from polyc.codegen.cuda.tensor_cores import match_product, print_product
from polyc.codegen.cuda.warpgroups import match_group_product, print_group_product
from polyc.codegen.cuda.widen import widen
from polyc.codegen.vectorise import unroll
from polyc.loopnest.copies import find_source
from polyc.loopnest.index import const
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.nodes import (
    Assign,
    Await,
    Barrier,
    Block,
    Commit,
    Element,
    For,
    Group,
    If,
    Kernel,
    Local,
    Node,
    extent_of,
    rewrite_nodes,
    walk_nodes,
)
from polyc.loopnest.registers import Register, find_registers
from polyc.loopnest.rewrite import rewrite_elements, rewrite_tests
from polyc.loopnest.substitute import depends_on
from polyc.printing.c_names import name_for_c
from polyc.printing.print_c import INDENT, clean_line, declare_registers
from polyc.printing.print_expr import Printer
from polyc.printing.scope import Registers, Scope, Uses
from polyc.types.element_types import scalar_type

WARP = 32

UNROLLED = 32
"""Iterations up to which the compiler is told to write a loop out."""


def print_device(kernel: Kernel, threads: int, counters: Sequence[str] = ()) -> DeviceText:
    """The text of a kernel whose blocks have so many threads.

    counters: of the loops around a launch, whose values it is given.
    """
    kernel = name_for_c(kernel)
    shapes = {p.name: p.shape for p in kernel.params}
    nest = find_registers(rewrite_nodes(widen(kernel.body, shapes), _unroll))
    loops, inside = split_blocks(_fold_block(nest, shapes))
    printer = Printer(Uses())
    shared = place_shared(inside)
    place = _Place(1, Scope(shapes, {}, None), threads, shared=shared)
    body = list(_print_block(inside, place, printer))
    lines = list(_declare_numbers(number_blocks(loops), inside, INDENT))
    if shared.arrivals:
        lines += shared.arrivals.print_make(INDENT)
    lines += body
    maps = find_tensor_maps(inside, kernel.params)
    arguments = [
        f"{'' if p.writes else 'const '}{scalar_type(p.dtype)} *__restrict__ {p.name}"
        for p in kernel.params
    ]
    arguments += [f"PC_TENSOR_MAP {m.name}" for m in maps] + [f"int {c}" for c in counters]
    head = f"PC_KERNEL({threads}, 1) void {kernel.name}({', '.join([*arguments, 'int *status'])})"
    remarks = [" * " + clean_line(line) for line in kernel.comment]
    unused = INDENT + " ".join(
        f"(void){name};" for name in [*(m.array for m in maps), *counters, "status"]
    )
    text = ["/*", *remarks, " */", head, "{", unused, *lines, "}", ""]
    blocks = prod(extent_of(loop) or 1 for loop in loops)
    headers = {"polyc_cuda_hopper.cuh"} if shared.by_groups else set()
    uses = Uses({u for u in printer.uses.functions if u[2] == 1}, printer.uses.casts, headers)
    grid = Grid(kernel.name, (blocks, 1, 1), (threads, 1, 1), shared.reserved, maps, (*counters,))
    return DeviceText("\n".join(text), uses, (grid,))


def _unroll(node: Node) -> Node:
    return unroll(node) if isinstance(node, For) and node.kind == "unroll" else node


# -- addresses ------------------------------------------------------------------------------------


def _fold_block(block: Block, shapes: dict[str, tuple[int, ...]]) -> Block:
    """The nest with each index of an array in memory as one number, folded."""
    held = {x.name: x.shape for x in block.locals if not x.in_registers}
    shapes = {**shapes, **held}

    def visit(node: Node) -> Node:
        match node:
            case Block():
                return _fold_block(node, shapes)
            case For(kind="box"):
                return node  # of which the place in each dimension is asked for
            case For(body=body):
                return replace(node, body=_fold_block(body, shapes))
            case If(condition, then, other):
                other = _fold_block(other, shapes) if other else None
                return If(fold_condition(condition), _fold_block(then, shapes), other)
            case Assign(value=value):
                tested = replace(node, value=rewrite_tests(value, fold_condition))
                return rewrite_elements(tested, element)
        return node

    def element(e: Element) -> Element:
        if e.array not in shapes or not e.index:
            return e
        first = (const(0),) * (len(e.index) - 1)
        return replace(e, index=(*first, fold_address(e, shapes[e.array])))

    return replace(block, body=tuple(map(visit, block.body)))


# -- loops over blocks and threads ----------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where a node stands: `apart` is that of the innermost loop over threads around it.

    repeats: whether the block comes by here several times; over: the loops over threads around;
    group: that of the boxes here.
    """

    depth: int
    scope: Scope
    threads: int
    apart: int = 0
    repeats: bool = False
    shared: Shared = field(default_factory=Shared)
    over: tuple[For, ...] = ()
    group: Group | None = None

    @property
    def indent(self) -> str:
        return INDENT * self.depth

    def deeper(self) -> _Place:
        return replace(self, depth=self.depth + 1)

    @property
    def writer(self) -> str:
        """Which of the threads that do the same writes to memory; empty if each does its own."""
        if self.apart == 0:
            return "PC_THREAD_X == 0" if self.threads > 1 else ""
        return f"PC_THREAD_X % {self.apart} == 0" if self.apart > 1 else ""


def _print_threads(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    """Loops over threads directly inside one another, as numbers of this thread."""
    guard, numbers = "", []
    while True:
        width, apart = extent_of(loop) or 1, loop.apart
        number = "PC_THREAD_X" if apart == 1 else f"PC_THREAD_X / {apart}"
        if width * apart < place.threads:
            if place.apart:
                number += f" % {width}"
            else:
                guard = f"PC_THREAD_X < {width * apart}"
        numbers.append((loop.var, number if width > 1 else "0"))
        scope = place.scope.with_loop(loop)
        place = replace(place, scope=scope, apart=apart, over=(*place.over, loop))
        inner = loop.body.body[0] if len(loop.body.body) == 1 else None
        if loop.body.locals or not isinstance(inner, For) or inner.kind != "thread":
            break
        loop = inner
    inside = place.deeper()
    body = list(_print_block(loop.body, inside, printer))
    yield f"{place.indent}if ({guard}) {{" if guard else f"{place.indent}{{"
    yield from _declare_numbers(numbers, loop.body, inside.indent)
    yield from body
    yield f"{place.indent}}}"


def _declare_numbers(numbers: Iterable[tuple[str, str]], body: Block, indent: str) -> Iterator[str]:
    """The numbers of this block or thread that the body depends on.

    An instruction of a whole warp knows its lanes by itself, so a number may go unmentioned.
    """
    kinds = {node.kind for node in walk_nodes(body) if isinstance(node, For)}
    unused = "[[maybe_unused]] " if kinds & {"mma", "wgmma", "box"} else ""
    for name, number in numbers:
        if depends_on(body, name):
            yield f"{indent}{unused}const int {name} = {number};"


def _print_combine(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    """What threads have each becomes one value, which all of them get.

    total += parts  ->  value = parts;  value += that of the thread 16 lanes apart; … 1 lane apart;
                        where warps combine: all values of the warps, by way of shared memory
    """
    (assign,) = (n for n in walk_nodes(loop.body) if isinstance(n, Assign))
    assert assign.reduction is not None
    kind, warps = scalar_type(assign.dtype), (extent_of(loop) or 1) // WARP
    own = printer.expr(assign.value, place.scope)
    both = printer.apply(assign.reduction, ["value", "other"], assign.dtype, 1)
    inside = place.deeper().indent
    yield f"{place.indent}{{"
    yield f"{inside}{kind} value = {own};"
    yield f"{inside}PC_UNROLL"
    yield f"{inside}for (int apart = {WARP // 2}; apart; apart /= 2) {{"
    yield f"{inside}{INDENT}const {kind} other = pc_shuffle_xor(value, apart);"
    yield f"{inside}{INDENT}value = {both};"
    yield f"{inside}}}"
    if warps > 1:
        yield f"{inside}PC_SHARED({kind}, values, {warps});"
        yield f"{inside}if (PC_LANE == 0) values[PC_WARP] = value;"
        yield f"{inside}PC_SYNC();"
        yield f"{inside}value = values[0];"
        yield f"{inside}PC_UNROLL"
        yield f"{inside}for (int warp = 1; warp < {warps}; warp++) {{"
        yield f"{inside}{INDENT}const {kind} other = values[warp];"
        yield f"{inside}{INDENT}value = {both};"
        yield f"{inside}}}"
        if place.repeats:
            yield f"{inside}PC_SYNC();"
    yield f"{inside}{printer.scalar_of(assign, 'value', place.scope)}"
    yield f"{place.indent}}}"


# -- nodes ----------------------------------------------------------------------------------------


def _print_block(block: Block, place: _Place, printer: Printer) -> Iterator[str]:
    scope = place.scope
    for local in block.locals:
        scope, lines = _declare(local, block, scope, place.shared.offsets)
        yield from (f"{place.indent}{line}" for line in lines)
    place = replace(place, scope=scope)
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
        case For(kind="thread"):
            yield from _print_threads(node, place, printer)
        case For(kind="combine"):
            yield from _print_combine(node, place, printer)
        case For(kind="mma"):
            product = match_product(node, *place.over[-2:])
            yield f"{place.indent}{{"
            yield from print_product(product, place.scope, place.deeper().indent)
            yield f"{place.indent}}}"
        case For(kind="wgmma"):
            groups = match_group_product(node, place.over)
            yield from print_group_product(groups, place.scope, place.indent)
        case For(kind="box"):
            assert place.group is not None
            assert [extent_of(loop) for loop in place.over] == [1], "each comes once"
            yield from print_box(match_box(node), place.scope, place.group, place.indent)
        case For(kind="copy", body=Block(body=(Assign() as assign,))):
            yield f"{place.indent}{_show_copy(assign, place.scope.with_lanes(node))}"
        case For(kind="vector", body=Block(body=(Assign() as assign,))):
            lines = printer.vector(assign, place.scope.with_lanes(node))
            yield from (f"{place.indent}{line}" for line in lines)
        case For():
            yield from _print_loop(node, place, printer)
        case If(condition, then, otherwise):
            yield f"{place.indent}if ({show_condition(condition)}) {{"
            yield from _print_block(then, place.deeper(), printer)
            if otherwise:
                yield f"{place.indent}}} else {{"
                yield from _print_block(otherwise, place.deeper(), printer)
            yield f"{place.indent}}}"
        case Assign(target=target):
            text = printer.scalar(node, place.scope)
            alone = "" if _is_own(target.array, place.scope) else place.writer
            yield f"{place.indent}if ({alone}) {text}" if alone else f"{place.indent}{text}"
        case Await(pending):
            yield f"{place.indent}pc_wgmma_wait({pending});"
        case Commit(group):
            if group is None:
                yield f"{place.indent}pc_copy_async_commit();"
        case Barrier(pending, group):
            if pending is not None:
                yield f"{place.indent}pc_copy_async_wait({pending});"
            if group is not None:
                yield f"{place.indent}{print_wait(group)}"
            if place.shared.needs_fences:
                yield f"{place.indent}pc_fence_async();"
            yield f"{place.indent}PC_SYNC();"


def _print_loop(loop: For, place: _Place, printer: Printer) -> Iterator[str]:
    """A loop that each thread runs, or all of them in step."""
    extent = extent_of(loop)
    if place.apart and extent is not None and extent <= UNROLLED:
        yield f"{place.indent}PC_UNROLL"
    yield (
        f"{place.indent}for (int {loop.var} = {show_index(loop.lower)}; "
        f"{loop.var} < {show_index(loop.upper)}; {loop.var} += {loop.step}) {{"
    )
    boxes = [n.group for n in loop.body.body if isinstance(n, Commit) and n.group]
    assert not (boxes and place.repeats), "phases of barriers are counted from 0 on"
    inside = place.deeper()
    inside = replace(
        inside,
        scope=inside.scope.with_loop(loop),
        repeats=True,
        group=next(iter(boxes), place.group),
    )
    yield from _print_block(loop.body, inside, printer)
    yield f"{place.indent}}}"


def _show_copy(assign: Assign, scope: Scope) -> str:
    """A copy to shared memory in the background, of 4, 8 or 16 bytes; zeros if conditions fail."""
    read, conditions = find_source(assign.value)
    assert read is not None
    (target, place), (source, where) = (
        (e.array, scope.show_offset(e.array, scope.first(scope.address(e))))
        for e in (assign.target, read.element)
    )
    size = scope.count * assign.dtype.itemsize
    if not conditions:
        return f"pc_copy_async_{size}(&{target}[{place}], &{source}[{where}]);"
    test = " && ".join(f"({show_condition(c)})" for c in conditions)
    there = f"&{source}[{test} ? {where} : 0], {test} ? {size} : 0"
    return f"pc_copy_async_{size}_of(&{target}[{place}], {there});"


def _is_own(array: str, scope: Scope) -> bool:
    """Whether each thread has such an array of its own."""
    held = scope.locals.get(array)
    return array in scope.registers or (held is not None and held.space != "shared")


def _declare(
    local: Local, block: Block, scope: Scope, offsets: Mapping[str, int]
) -> tuple[Scope, list[str]]:
    """Declarations of a local array: named registers, shared, or on the stack of a thread."""
    if local.is_tile:
        return _declare_vector(local, scope)
    if local.in_registers:
        return declare_registers(local, block, scope)
    element, size = scalar_type(local.dtype), prod(local.shape)
    shapes, locals_ = {**scope.shapes, local.name: local.shape}, {**scope.locals, local.name: local}
    inside = replace(scope, shapes=shapes, locals=locals_)
    if local.name in offsets:
        at = offsets[local.name]
        return inside, [f"PC_SHARED_AT({element}, {local.name}, {size}, {at});"]
    if local.space == "shared":
        return inside, [f"PC_SHARED({element}, {local.name}, {size});"]
    return inside, [f"{element} {local.name}[{size}];"]


def _declare_vector(local: Local, scope: Scope) -> tuple[Scope, list[str]]:
    """One variable of a vector type."""
    (lanes,) = local.shape
    register = Register((0,), 0, lanes)
    holder = dict.fromkeys(register.cells, register)
    line = f"{scalar_type(local.dtype)}x{lanes} {register.name(local)};"
    return scope.with_registers(Registers(local, holder)), [line]
