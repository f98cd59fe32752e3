"""Products of tiles: a block a tile, factors in shared memory, sums in registers.

block   b, mt, nt
└ spread                         sums: each thread its own
  ├ init
  ├ kt                           a few steps of the sum at a time
  │ └ stage                      tiles of the factors
  │   ├ left, right              copied by all threads, along what lies together in memory
  │   └ update                   by threads (`thread_tiles.py`), or tensor cores (`warp_tiles`)
  └ finish                       bias, activation, residual: on the sums where they are
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import prod

from polyc.codegen.loopnest import LoopKind, Swizzle
from polyc.coordinates.cut_tiles import STEP, Tiled, cut_tiles
from polyc.coordinates.gemm_form import GemmForm, in_stored_types
from polyc.mapping.cuda.boxes import comes_in_boxes, list_box_loops
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.mapping.cuda.swizzles import swizzle_chunks, swizzle_words
from polyc.mapping.cuda.thread_tiles import THREAD_SHAPES
from polyc.mapping.cuda.tiles import Shape, estimate
from polyc.mapping.cuda.warp_tiles import Instruction, choose_instruction, list_warp_shapes
from polyc.mapping.cuda.warpgroup_tiles import WGMMA, list_warpgroup_shapes
from polyc.memory.layout import compute_strides
from polyc.memory.storage import Storage, permuted, row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget

MOST_STAGES = 4
"""Tiles of a factor in shared memory; more hide no more of what memory takes to answer."""

WIDE = 16
"""Bytes that a thread copies at once where it can."""


def map_contraction(
    form: GemmForm,
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
    tf32: bool,
) -> Mapped:
    """The tree of a contraction; products of float32 by tensor cores only if tf32 is asked for."""
    form = in_stored_types(form)
    instruction = choose_instruction(form.left.dtype, target, tf32)
    shape = choose_shape(form.extents, target, instruction)
    room = target.shared_per_block
    product = place_product(form, cluster, shape, arrays, storages, instruction, room)
    new = product.tiled.cluster
    counts = {n for fold in product.folds.values() for n in fold.values()}
    stages = "".join(f", {n} stages" for n in counts) + product.shown
    grid = [Loop("block", i) for i in ("b", "mt", "nt")]
    return Mapped(
        new,
        product.tiled.arrays,
        private_of(new, private, product.tiled.arrays),
        build_tree(Part(new.statements, grid, "spread", product.tile)),
        shape.threads,
        f"contraction: {show_extents(form)} in tiles of {shape.tile}, {shape.shown}{stages}",
        product.storages,
        product.swizzles,
        product.folds,
    )


def show_extents(form: GemmForm) -> str:
    """12 x 128x64x128: batch, rows, columns, depth."""
    batch, rows, columns, depth = form.extents
    return f"{f'{batch} x ' if batch > 1 else ''}{rows}x{columns}x{depth}"


@dataclass(frozen=True)
class Product:
    """A product in tiles, and what a block does for each of them, inside a scope `spread`.

    storages, swizzles: of the arrays that are not row-major. folds: of the copies of the factors,
    if more than one of each is in shared memory, one in use and the others on their way. shown: how
    they come, for a human, unless threads copy both.
    """

    tiled: Tiled
    tile: tuple[Part, ...]
    storages: Table[str, Storage]
    swizzles: Table[str, Swizzle | None]
    folds: Table[str, Table[int, int]]
    shown: str = ""


def place_product(
    form: GemmForm,
    cluster: Cluster,
    shape: Shape,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    instruction: Instruction | None,
    room: int,
) -> Product:
    """The product in tiles of a shape: copies of the factors, products, and what follows.

    room: bytes of shared memory for the copies; at least one of each is made.
    """
    tiled = cut_tiles(form, cluster, shape.tile, arrays)
    known = {**arrays, **tiled.arrays}
    made = {n: row_major(a) for n, a in tiled.arrays.items()}
    stages = choose_stages(tiled, room)
    factors = [
        _stage(s, known, {**storages, **made}, shape, instruction, stages > 1)
        for s in (tiled.left, tiled.right)
    ]
    made |= {factor.storage.array: factor.storage for factor in factors}
    product = [
        *(Part([factor.copy], factor.loops) for factor in factors),
        Part([tiled.update], shape.over_products),
    ]
    ahead = {s.name: f"kt - {stages - 1}" for s in (tiled.left, tiled.right)}
    scope = "" if stages > 1 else "stage"
    steps = [tiled.left, tiled.right, tiled.update]
    body = [
        Part([tiled.init], shape.over_results("unroll")),
        Part(steps, [Loop("sequential", {**ahead, tiled.update.name: "kt"})], scope, product),
        *(Part([s], shape.over_results("vector")) for s in tiled.rest),
    ]
    return Product(
        tiled,
        tuple(body),
        made,
        {factor.storage.array: factor.swizzle for factor in factors},
        {factor.storage.array: {STEP: stages} for factor in factors if stages > 1},
        _show_boxes(*(factor.by_boxes for factor in factors)),
    )


def _show_boxes(left: bool, right: bool) -> str:
    """Which factors come by the tensor memory accelerator."""
    if left and right:
        return ", TMA"
    return f", TMA for the {'left' if left else 'right'} factor" if left or right else ""


def choose_stages(tiled: Tiled, room: int) -> int:
    """How many tiles of each factor are in shared memory: one in use, the others on their way."""
    tiles = [tiled.arrays[s.array] for s in (tiled.left, tiled.right)]
    stage = sum(prod(a.shape[STEP + 1 :]) * a.dtype.itemsize for a in tiles)
    steps = tiles[0].shape[STEP]
    return max(1, min(MOST_STAGES, steps, room // stage))


def choose_shape(
    extents: tuple[int, int, int, int], target: CudaTarget, instruction: Instruction | None
) -> Shape:
    """The shape that takes the least time."""
    shapes = list_warp_shapes(instruction) if instruction else [*THREAD_SHAPES]
    if instruction and target.has_wgmma and instruction.dtype in WGMMA:
        shapes += list_warpgroup_shapes(WGMMA[instruction.dtype])
    return min(shapes, key=lambda shape: estimate(shape, extents, target))


@dataclass(frozen=True)
class _Factor:
    """The copy of a factor's tile: its loops, how the tile is stored, and how it is swizzled.

    by_boxes: whether the tensor memory accelerator brings it, and not the threads.
    """

    copy: Statement
    loops: list[Loop]
    storage: Storage
    swizzle: Swizzle | None
    by_boxes: bool = False


def _stage(
    copy: Statement,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    shape: Shape,
    instruction: Instruction | None,
    background: bool,
) -> _Factor:
    """Threads along what lies together in memory, each 16 bytes where that can be wide.

    Threads that multiply read a tile along its rows or columns, so these lie together in it. The
    loads of tensor cores take it as it comes. What warpgroups multiply may come in boxes.
    """
    array = arrays[copy.array]
    *_, run, iterator = copy.iterators
    *_, depth, runs, length = array.shape
    extent, place = runs * length, f"({length}*{run} + {iterator})"
    steps = [a.steps for a in compute_strides(copy, arrays, storages)[1:]]
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
        swizzle = swizzle_words(extent, array.dtype, 1)
    elif along_k:
        swizzle = swizzle_words(extent, array.dtype, wide)
    by_boxes = background and shape.by_groups and comes_in_boxes(copy, storages, along_k)
    if by_boxes:
        loops = list_box_loops(copy, along_k)
    else:
        kind: LoopKind = "copy" if background else "vector"
        fast, slow = (("ki", depth), (place, extent))[:: 1 if along_k else -1]
        loops = _share_copy(fast, slow, wide, shape.threads, kind)
    return _Factor(copy, loops, permuted(array, order), swizzle, by_boxes)


def _share_copy(
    fast: tuple[str, int], slow: tuple[str, int], wide: int, threads: int, kind: LoopKind
) -> list[Loop]:
    """Threads along what lies together in memory, with so many elements each at once."""
    across = min(fast[1] // wide, threads)
    down = min(slow[1], threads // across)
    return [
        Loop("thread", f"{slow[0]} mod {down}", down, across),
        Loop("thread", f"floor(({fast[0]} mod {across * wide})/{wide})", across),
        Loop("unroll", f"floor({slow[0]}/{down})"),
        Loop("unroll", f"floor({fast[0]}/{across * wide})"),
        Loop(kind, f"{fast[0]} mod {wide}"),
    ]
