"""Products of tiles: a block a tile, factors in shared memory, sums in registers.

    block   b, mt, nt
    └ shared                         sums: 8 x 8 a thread
      ├ init
      ├ kt                           16 at a time
      │ └ stage                      tiles of the factors
      │   ├ left, right              copied by all threads, along what lies together in memory
      │   └ update   thread ─ ki ─ 8 x 8
      └ finish

A thread's rows are two runs of four, half a tile apart, and so are its columns: it reads shared
memory in vectors of four, of which those of neighbouring threads are neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil

from polyc.mapping.cuda.gemm_form import GemmForm, Tile, cut_tiles
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.memory.layout import compute_strides
from polyc.memory.storage import Storage, row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget

RUN = 4
"""Rows, and columns, of a thread that are neighbours: one access of 128 bits to shared memory."""

BUSY = 256
"""Threads that keep a multiprocessor busy, given some work of their own: two warps a scheduler."""


@dataclass(frozen=True)
class Shape:
    """A block's tile, and the rows and columns of it that each thread computes."""

    tile: Tile
    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return self.threads_down * self.threads_across

    @property
    def threads_down(self) -> int:
        return self.tile.rows // self.rows

    @property
    def threads_across(self) -> int:
        return self.tile.columns // self.columns


SHAPES = (
    Shape(Tile(128, 128, 16), 8, 8),
    Shape(Tile(128, 64, 16), 8, 8),
    Shape(Tile(64, 128, 16), 8, 8),
    Shape(Tile(64, 64, 16), 8, 4),
    Shape(Tile(32, 128, 16), 4, 8),
    Shape(Tile(128, 32, 16), 8, 4),
    Shape(Tile(32, 64, 16), 4, 4),
    Shape(Tile(64, 32, 16), 4, 4),
    Shape(Tile(32, 32, 16), 4, 4),
)


def map_contraction(
    form: GemmForm,
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
) -> Mapped:
    """The tree of a contraction."""
    shape = choose_shape(form.extents, target)
    tiled = cut_tiles(form, cluster, shape.tile, arrays)
    made = {**storages, **{n: row_major(a) for n, a in tiled.arrays.items()}}
    known = {**arrays, **tiled.arrays}
    copies = [
        Part([s], _copy_loops(s, i, n, shape, known, made))
        for s, i, n in (
            (tiled.left, "mi", shape.tile.rows),
            (tiled.right, "ni", shape.tile.columns),
        )
    ]
    product = [*copies, Part([tiled.update], _product_loops(shape))]
    steps = [tiled.left, tiled.right, tiled.update]
    body = [
        Part([tiled.init], _result_loops(shape, "unroll")),
        Part(steps, [Loop("sequential", "kt")], "stage", product),
        *(Part([s], _result_loops(shape, "vector")) for s in tiled.rest),
    ]
    new = tiled.cluster
    grid = [Loop("block", i) for i in ("b", "mt", "nt")]
    tree = build_tree(Part(new.statements, grid, "shared", body))
    batch, rows, columns, depth = form.extents
    shown = (
        f"contraction: {f'{batch} x ' if batch > 1 else ''}{rows}x{columns}x{depth} in tiles of "
        f"{shape.tile.rows}x{shape.tile.columns}x{shape.tile.depth}, "
        f"{shape.rows}x{shape.columns} a thread"
    )
    return Mapped(
        new,
        tiled.arrays,
        private_of(new, private, tiled.arrays),
        tree,
        shape.threads,
        shown,
    )


def choose_shape(extents: tuple[int, int, int, int], target: CudaTarget) -> Shape:
    """The shape that takes the least time by a model of waves."""
    return min(SHAPES, key=lambda shape: _estimate(shape, extents, target))


def _estimate(shape: Shape, extents: tuple[int, int, int, int], target: CudaTarget) -> float:
    """Relative time: what a multiprocessor gets of the blocks, by the rate at which it multiplies.

    For each of the sum, a thread issues a multiply-add for each of its results, loads its rows and
    columns from shared memory in fours (which takes two slots), and copies its part of the tiles.
    Fewer than BUSY threads leave the multiprocessor waiting.
    """
    batch, rows, columns, depth = extents
    tile, threads = shape.tile, shape.threads
    blocks = batch * ceil(rows / tile.rows) * ceil(columns / tile.columns)
    each = ceil(blocks / target.multiprocessors)
    results = shape.rows * shape.columns
    slots = results + (shape.rows + shape.columns) / 2 + 3 * (tile.rows + tile.columns) / threads
    work = tile.rows * tile.columns * ceil(depth / tile.depth) * slots / results
    waiting = max(1.0, BUSY / (threads * min(each, target.blocks_per_multiprocessor)))
    return each * work * waiting


def _runs(iterator: str, tile: int, each: int) -> tuple[str, str, str]:
    """(which run, which thread, where in the run) of a place in a tile."""
    apart = tile * RUN // each
    return (
        f"floor({iterator}/{apart})",
        f"floor(({iterator} mod {apart})/{RUN})",
        f"{iterator} mod {RUN}",
    )


def _result_loops(shape: Shape, last: str) -> list[Loop]:
    """Loops over a thread's own results."""
    run_m, down, in_m = _runs("mi", shape.tile.rows, shape.rows)
    run_n, across, in_n = _runs("ni", shape.tile.columns, shape.columns)
    return [
        Loop("thread", down, shape.threads_down, shape.threads_across),
        Loop("thread", across, shape.threads_across),
        Loop("unroll", run_m),
        Loop("unroll", in_m),
        Loop("unroll", run_n),
        Loop("vector" if last == "vector" else "unroll", in_n),
    ]


def _product_loops(shape: Shape) -> list[Loop]:
    down, across, *own = _result_loops(shape, "unroll")
    return [down, across, Loop("sequential", "ki"), *own]


def _copy_loops(
    copy: Statement,
    iterator: str,
    extent: int,
    shape: Shape,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
) -> list[Loop]:
    """Threads along what lies together in memory, four elements each where that can be wide."""
    depth, threads = shape.tile.depth, shape.threads
    steps = [a.steps for a in compute_strides(copy, arrays, storages)[1:]]
    along_k = bool(steps) and steps[0][4] == 1
    wide = RUN if steps and (steps[0][4] == 1 or steps[0][5] == 1) else 1
    fast, slow = ("ki", iterator) if along_k else (iterator, "ki")
    fast_extent, slow_extent = (depth, extent) if along_k else (extent, depth)
    across = min(fast_extent // wide, threads)
    down = min(slow_extent, threads // across)
    return [
        Loop("thread", f"{slow} mod {down}", down, across),
        Loop("thread", f"floor(({fast} mod {across * wide})/{wide})", across),
        Loop("unroll", f"floor({slow}/{down})"),
        Loop("unroll", f"floor({fast}/{across * wide})"),
        *([Loop("vector", f"{fast} mod {wide}")] if wide > 1 else []),
    ]
