"""Nests of kind "box" as copies by the tensor memory accelerator, asked for by one thread.

    for r in 0 .. 128:  # box
      for k in 0 .. 64:  # box                    pc_mbarrier_expect(&arrived[…], 16384);
        tile[r][k] = a[128 i + r][64 j + k]   ->  pc_tensor_load(&tile[…], &map, &arrived[…],
                                                                 64 * j, 128 * i);

The host says by a tensor map what the array is, and how large the boxes are (`TensorMap`). What is
outside of the array comes as zeros: that the text has zeros there is proven on the loops
(`analysis/background.py`). Rows of a box have 128 bytes and are swizzled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from polyc.codegen.cuda.fold import fold
from polyc.codegen.cuda.multiply_add import only_node
from polyc.loopnest.copies import find_source
from polyc.loopnest.index import Affine, const, floordiv, modulo, stride, substitute
from polyc.loopnest.index_text import show_index
from polyc.loopnest.nodes import Assign, Block, Commit, For, Group, If, Node, extent_of, walk_nodes
from polyc.loopnest.prototype import Param
from polyc.printing.print_c import INDENT
from polyc.printing.scope import Scope

ARRIVED = "arrived"
"""The name of the barriers in shared memory that count what has come."""

BARRIER_BYTES = 8

ROW, GROUP = 128, 1024
"""Bytes of a swizzled row, and of eight rows, after which the swizzle repeats."""


@dataclass(frozen=True)
class TensorMap:
    """A parameter of a kernel that says what boxes are copied of an array: outermost first."""

    name: str
    array: str
    dtype: np.dtype
    shape: tuple[int, ...]
    box: tuple[int, ...]

    def print_make(self) -> str:
        """The call that makes it on the host; it gives an error."""
        steps = [prod(self.shape[d + 1 :]) for d in range(len(self.shape))]
        lists = (", ".join(map(str, reversed(x))) for x in (self.shape, steps, self.box))
        shape = ", ".join([str(len(self.shape)), *(f"{{{x}}}" for x in lists)])
        array = f"{self.dtype.itemsize}, {self.array}"
        return f"pc_make_tensor_map(&{self.name}, {array}, {{{shape}}}, {ROW})"


@dataclass(frozen=True)
class BoxCopy:
    """A nest: what it copies, the loops of a row and within it, and where the box begins."""

    assign: Assign
    rows: For
    columns: For
    source: str
    box: tuple[int, ...]
    place: tuple[Affine, ...]

    @property
    def name(self) -> str:
        """Of the tensor map."""
        return f"{self.assign.target.array}_map"


def match_box(nest: For) -> BoxCopy:
    """The copy that a nest is."""
    columns = only_node(nest.body)
    assert isinstance(columns, For)
    assign = only_node(columns.body)
    assert isinstance(assign, Assign)
    read, _ = find_source(assign.value)
    assert read is not None
    assert not read.dynamic
    loops, index = (nest, columns), read.element.index
    assert all(loop.kind == "box" and loop.lower == const(0) for loop in loops)
    steps = [[stride(i, loop.var) for i in index] for loop in loops]
    assert all(sorted(map(str, moves)) == ["0"] * (len(index) - 1) + ["1"] for moves in steps)
    assert steps[1][-1] == 1
    assert steps[0][-1] == 0
    extents = [extent_of(loop) or 1 for loop in loops]
    assert extents[1] * read.dtype.itemsize == ROW
    sizes = tuple(extents[0] if m else extents[1] if n else 1 for m, n in zip(*steps, strict=True))
    zeros = {loop.var: const(0) for loop in loops}
    place = tuple(fold(substitute(i, zeros)) for i in index)
    return BoxCopy(assign, nest, columns, read.element.array, sizes, place)


def find_tensor_maps(block: Block, params: Sequence[Param]) -> tuple[TensorMap, ...]:
    """What the boxes of a kernel are boxes of."""
    by_name = {p.name: p for p in params}
    found: dict[str, TensorMap] = {}
    for copy in _find_copies(block):
        param = by_name[copy.source]
        shape = tuple(int(n) for n in param.shape)
        found[copy.name] = TensorMap(copy.name, param.name, param.dtype, shape, copy.box)
    return tuple(found.values())


def print_box(copy: BoxCopy, scope: Scope, group: Group, indent: str) -> Iterator[str]:
    """The lines by which one thread announces the bytes of a box, and asks for it."""
    target = fold(scope.address(copy.assign.target))
    size, loops = copy.assign.dtype.itemsize, (copy.rows, copy.columns)
    assert [stride(target, loop.var) for loop in loops] == [ROW // size, 1]
    local = scope.locals[copy.assign.target.array]
    assert local.swizzle is not None
    assert local.swizzle.period * size == GROUP
    start = substitute(target, {loop.var: const(0) for loop in loops})
    barrier = f"&{ARRIVED}[{show_index(modulo(group.number, group.places))}]"
    place = ", ".join(map(show_index, reversed(copy.place)))
    tile = f"&{local.name}[{show_index(start)}]"
    yield f"{indent}pc_mbarrier_expect({barrier}, {prod(copy.box) * size});"
    yield f"{indent}pc_tensor_load({tile}, &{copy.name}, {barrier}, {place});"


def print_wait(group: Group) -> str:
    """Until a group has arrived."""
    phase = modulo(floordiv(group.number, group.places), 2)
    barrier = f"&{ARRIVED}[{show_index(modulo(group.number, group.places))}]"
    return f"if ({show_index(group.number)} >= 0) pc_mbarrier_wait({barrier}, {show_index(phase)});"


@dataclass(frozen=True)
class Arrivals:
    """The barriers of a kernel: so many, each for so many copies; where they lie in shared memory.

    arrays: how many the copies go to.
    """

    places: int
    copies: int
    arrays: int
    offset: int

    def print_make(self, indent: str) -> Iterator[str]:
        """Their declaration; one thread makes them, and all wait for that."""
        yield f"{indent}PC_SHARED_AT(pc_mbarrier, {ARRIVED}, {self.places}, {self.offset});"
        yield f"{indent}if (PC_THREAD_X == 0) {{"
        yield f"{indent}{INDENT}for (int k = 0; k < {self.places}; k++)"
        yield f"{indent}{INDENT * 2}pc_mbarrier_init(&{ARRIVED}[k], {self.copies});"
        yield f"{indent}{INDENT}pc_mbarrier_init_fence();"
        yield f"{indent}}}"
        yield f"{indent}PC_SYNC();"


def find_arrivals(block: Block, offset: int) -> Arrivals | None:
    """What the boxes of a kernel need, whose unrolled loops these are; they are all in one loop."""
    groups = [n.group for n in walk_nodes(block) if isinstance(n, Commit) and n.group]
    if not groups:
        return None
    (group,) = groups
    copies = list(_find_copies(block))
    return Arrivals(group.places, len(copies), len({copy.name for copy in copies}), offset)


def _find_copies(node: Node) -> Iterator[BoxCopy]:
    match node:
        case Block(body=body):
            for child in body:
                yield from _find_copies(child)
        case For(kind="box"):
            yield match_box(node)
        case For(body=body):
            yield from _find_copies(body)
        case If(then=then, otherwise=otherwise):
            yield from _find_copies(then)
            if otherwise:
                yield from _find_copies(otherwise)
