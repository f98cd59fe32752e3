"""How the tiles of a product's factors come to shared memory.

    split acc_left.mr 32 | split acc_left.ki 16 | split acc_left.ki' 4 | … | thread mr' ki'
    | unroll mr ki | copy ki''           16 bytes a thread, in the background

Threads go along what lies together in memory, each 16 bytes where that can be wide. Threads that
multiply read a tile along its rows or columns, so these lie together in it; the loads of tensor
cores take it as it comes. What warpgroups multiply may come in boxes (`boxes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass

from polyc.loopnest.swizzle import Swizzle
from polyc.mapping.cuda.boxes import comes_in_boxes, copy_boxes
from polyc.mapping.cuda.swizzles import swizzle_chunks, swizzle_words
from polyc.mapping.cuda.tiles import Shape
from polyc.memory.storage import Storage, row_major
from polyc.memory.strides import compute_strides
from polyc.schedule.counting import Collapse
from polyc.schedule.directives import Order, Run, Split
from polyc.schedule.names import inside, short
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Lay, Swizzled, Threads
from polyc.scop.scop import Array, Statement

WIDE = 16
"""Bytes that a thread copies at once where it can."""


@dataclass(frozen=True)
class Factor:
    """The copy of a factor's tile, and how the tile is stored.

    extents: depth, runs, and places in a run. along_k: whether steps of the sum lie together in
    memory, rather than rows or columns. wide: elements that a thread copies at once. by_boxes:
    whether the tensor memory accelerator brings it, and not the threads.
    """

    copy: Statement
    extents: tuple[int, int, int]
    along_k: bool
    wide: int
    order: tuple[int, ...]
    swizzle: Swizzle | None
    by_boxes: bool = False


def choose_factor(
    copy: Statement,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    shape: Shape,
    background: bool,
) -> Factor:
    """How a factor is copied and stored, for products of a shape."""
    array, instruction = arrays[copy.array], shape.instruction
    known = {**storages, array.name: row_major(array)}
    depth, runs, length = array.shape[-3:]
    steps = [a.steps for a in compute_strides(copy, arrays, known)[1:]]
    along_k = bool(steps) and steps[0][4] == 1
    wide = WIDE // array.dtype.itemsize if steps and 1 in (steps[0][4], steps[0][-1]) else 1
    order, swizzle = list(range(len(array.shape))), None
    if instruction and along_k:
        order = [*order[:-3], *order[-2:], order[-3]]  # a row or column after the other
        swizzle = swizzle_chunks(depth, array.dtype)
    elif instruction and instruction.loads_columns:
        order = [*order[:-3], order[-2], order[-3], order[-1]]
        swizzle = swizzle_chunks(length, array.dtype)
    elif instruction:
        swizzle = swizzle_words(runs * length, array.dtype, 1)
    elif along_k:
        swizzle = swizzle_words(runs * length, array.dtype, wide)
    by_boxes = background and shape.by_groups and comes_in_boxes(copy, known, along_k)
    return Factor(copy, (depth, runs, length), along_k, wide, tuple(order), swizzle, by_boxes)


def copy_factor(factor: Factor, shape: Shape, background: bool) -> Iterator[AnyDirective]:
    """The directives of a copy: its loops, and how the tile lies."""
    name = short(factor.copy.name)
    depth, runs, places = (f"{name}.{i}" for i in factor.copy.iterators[-3:])
    if factor.by_boxes:
        yield from copy_boxes(depth, runs, places, factor.extents, factor.along_k)
    else:
        count, run, length = factor.extents
        yield Collapse((runs, places))
        fast, slow = ((depth, count), (runs, run * length))[:: 1 if factor.along_k else -1]
        yield from _share_copy(fast, slow, factor.wide, shape.threads, background)
    if factor.order != tuple(range(len(factor.order))):
        yield Lay(factor.copy.array, factor.order)
    if factor.swizzle:
        yield Swizzled(
            factor.copy.array, factor.swizzle.bits, factor.swizzle.to, factor.swizzle.source
        )


def _share_copy(
    fast: tuple[str, int], slow: tuple[str, int], wide: int, threads: int, background: bool
) -> Iterator[AnyDirective]:
    """Threads along what lies together in memory, with so many elements each at once."""
    across = min(fast[1] // wide, threads)
    down = min(slow[1], threads // across)
    row, place = slow[0], fast[0]
    each = inside(place)
    yield Split((row,), down)
    yield Split((place,), across * wide)
    yield Split((each,), wide)
    yield Order((inside(row), each, row, place, inside(each)))
    yield Threads((inside(row), each))
    yield Run("unroll", (row, place))
    yield Run("copy" if background else "vector", (inside(each),))
