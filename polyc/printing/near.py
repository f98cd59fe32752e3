"""Arrays that may be near: on the stack where a call makes their tiles small, else in memory.

    near a[c0, c2, 0], 30 rows along dimension 1

        const int a_fits = 30 * size_s <= 131072;
        f32 a_room[1 + (a_fits ? 30 * size_s : 0)] __attribute__((aligned(64)));
        f32 *const a_near = a_fits ? a_room : a_;
        const i64 a_first = a_fits ? size_s * size_s * c0 + size_s * c2 : 0;
        … a_near[size_s * size_s * c0 + size_s * i + j - a_first] …

An element is as far from the first one in either place, so that the text of an access is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyc.loopnest.index import const, times
from polyc.loopnest.index_text import show_index
from polyc.loopnest.instructions import address
from polyc.loopnest.nodes import Assign, Block, Element, For, Near, Node, TileMove, rewrite_nodes
from polyc.loopnest.rewrite import rewrite_elements, rewrite_loop
from polyc.printing.scope import LINE, Scope
from polyc.types.element_types import scalar_type
from polyc.types.sizes import Extent

ROOM = 1024 * 1024
"""Bytes on the stack of what may be near, of all arrays of a block together: an eighth of what a
thread has by default (glibc). A call takes no more of it than its tiles need. Of a block inside of
another one it is an eighth of that."""


def declare_near(block: Block, scope: Scope) -> tuple[Block, Scope, list[str]]:
    """The block with its near arrays called by their places, the scope inside, and declarations."""
    names = {x.first.array: f"{x.first.array}near" for x in block.near}
    lines: list[str] = []
    aligned = f" __attribute__((aligned({LINE})))"
    most = ROOM // 8 if scope.origins else ROOM
    for near in block.near:
        name = near.first.array
        shape, dtype = scope.shapes[name], scope.types[name]
        element = scalar_type(dtype)
        room = most // len(block.near) // LINE * LINE // dtype.itemsize
        first, length = show_index(address(near.first, shape)), _show_length(near, shape)
        lines += [
            f"const int {name}fits = {length} <= {room};",
            f"{element} {name}room[1 + ({name}fits ? {length} : 0)]{aligned};",
            f"{element} *const {name}near = {name}fits ? {name}room : {name};",
            f"const i64 {name}first = {name}fits ? {first} : 0;",
        ]
        scope = scope.with_near(name, names[name], f"{name}first")
    return _renamed(block, names), scope, lines


def _show_length(near: Near, shape: Sequence[Extent]) -> str:
    """How many elements there are from the first one on, at most."""
    after = [const(0)] * len(shape)
    after[near.dimension] = const(1)
    rows = address(Element(near.first.array, tuple(after)), shape)
    return show_index(times(rows, near.rows))


def _renamed(block: Block, names: Mapping[str, str]) -> Block:
    """The block with elements of arrays called otherwise."""

    def element(e: Element) -> Element:
        return replace(e, array=names.get(e.array, e.array))

    def rename(node: Node) -> Node:
        match node:
            case Assign():
                return rewrite_elements(node, element)
            case For():
                return rewrite_loop(node, element)
            case TileMove(first=first, second=second):
                return replace(node, first=element(first), second=element(second))
        return node

    return rewrite_nodes(block, rename)
