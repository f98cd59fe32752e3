"""Products of tiles: a block a tile, factors in shared memory, sums in registers.

    tile i as tm 8 im 4 by j as tn 16 jn 4 over k as ki 16 into tm tn im jn
    | fuse acc_left.kt acc_right.kt product.kt | pipeline acc_left.kt acc_right.kt 3
    | block b mt nt | thread tm tn | keep all at nt | …

block   b, mt, nt
└ keep                           sums: each thread its own
  ├ init
  ├ kt                           a few steps of the sum at a time
  │ └ keep                       tiles of the factors
  │   ├ left, right              copied by all threads, along what lies together in memory
  │   └ update                   by threads (`thread_tiles.py`), or tensor cores (`warp_tiles`)
  └ finish                       bias, activation, residual: on the sums where they are
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import prod

from polyc.mapping.cuda.coordinates.cut_tiles import STEP
from polyc.mapping.cuda.coordinates.gemm_form import GemmForm, in_stored_types
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.mapping.cuda.copies import choose_factor, copy_factor
from polyc.mapping.cuda.thread_tiles import THREAD_SHAPES
from polyc.mapping.cuda.tiles import Shape, estimate
from polyc.mapping.cuda.warp_tiles import choose_instruction, list_warp_shapes
from polyc.mapping.cuda.warpgroup_tiles import WGMMA, list_warpgroup_shapes
from polyc.schedule.coordinates import Side, Tile
from polyc.schedule.directives import Fuse, Order, Run
from polyc.schedule.initial import InitialLoop
from polyc.schedule.keeping import Keep
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Pipeline, Threads, Use
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget
from polyc.target.instructions.tiles import Instruction

MOST_STAGES = 4
"""Tiles of a factor in shared memory; more hide no more of what memory takes to answer."""


def schedule_contraction(
    start: Rewritten, form: GemmForm, target: CudaTarget, tf32: bool
) -> Schedule:
    """The schedule of a contraction; float32 goes by tensor cores only if tf32 is asked for."""
    dtype = in_stored_types(form).left.dtype
    shape = choose_shape(form.extents, target, choose_instruction(dtype, target, tf32))
    tile = spell_tile(start, 0, form, shape)
    tiled = rewrite(start, Schedule((tile,)))
    product = find_product(tiled, 0)
    steps = schedule_product(tiled, product, shape, target.shared_per_block)
    return Schedule((tile, Run("block", ("b", "mt", "nt")), *steps))


def spell_tile(start: Rewritten, position: int, form: GemmForm, shape: Shape) -> Tile:
    """The directive that cuts a product into tiles of a shape."""
    cluster, named = start.clusters[position], start.named

    def spell(loops: Iterator[InitialLoop | None]) -> tuple[str, ...]:
        return tuple(name for loop in loops if loop for name in named.spell([loop]))

    rows, columns, batch = (
        spell(named.shared(cluster, d) for d in loops)
        for loops in (form.rows, form.columns, form.batch)
    )
    sums = spell(named.own(form.update, p) for p in form.sums)
    tile = shape.tile
    sides = [
        Side(loops, tuple(zip(digits.names, digits.extents, strict=True)))
        for loops, digits in ((rows, tile.rows), (columns, tile.columns), (sums, tile.depth))
    ]
    return Tile(sides[0], sides[1], sides[2], tile.results, tile.run, batch)


@dataclass(frozen=True)
class Product:
    """The statements of a product in tiles."""

    init: Statement
    left: Statement
    right: Statement
    update: Statement
    rest: tuple[Statement, ...]

    @property
    def over_results(self) -> tuple[Statement, ...]:
        """Those that walk the results of a tile."""
        return (self.init, self.update, *self.rest)


def find_product(now: Rewritten, position: int) -> Product:
    """The statements of a cluster that a tile directive has rewritten, which has them in order."""
    init, left, right, update, *rest = now.clusters[position].statements
    return Product(init, left, right, update, tuple(rest))


def schedule_product(
    now: Rewritten, product: Product, shape: Shape, room: int
) -> Iterator[AnyDirective]:
    """Copies of the factors, products, and what follows, for a tile at `nt`.

    room: bytes of shared memory for the copies; at least one of each is made.
    """
    stages = choose_stages(product, now.arrays, room)
    copies = (product.left, product.right)
    factors = [choose_factor(s, now.arrays, now.storages, shape, stages > 1) for s in copies]
    walked = [f"{short(s.name)}.kt" for s in (*copies, product.update)]
    yield Fuse(tuple(walked))
    if stages > 1:
        # A warpgroup's product goes on while the next is begun, if a tile is on its way besides.
        yield Pipeline(tuple(walked[:2]), stages, 2 if shape.by_groups and stages > 2 else 1)
    alone = len(now.clusters) == 1
    yield Keep(None, at="nt" if alone else f"{short(product.init.name)}.nt")
    if stages == 1:
        yield Keep(tuple(s.array for s in copies), "shared", "kt" if alone else walked[-1])
    for name in [""] if alone else [short(s.name) for s in product.over_results]:
        yield from _share_results(name and f"{name}.", shape)
    yield from _multiply(product, shape)
    for factor in factors:
        yield from copy_factor(factor, shape, stages > 1)


def _share_results(prefix: str, shape: Shape) -> Iterator[AnyDirective]:
    """Who has which results: for a statement, or for all."""

    def spell(digits: Iterable[str]) -> tuple[str, ...]:
        return tuple(prefix + digit for digit in digits)

    digits = [digit for digit in shape.tile.results if digit in shape.own]
    if digits != [*shape.own]:
        yield Order(spell(shape.own))
    if shape.warps:
        yield Threads(spell(shape.warps), warps=True)
    yield Threads(spell(shape.lanes))
    yield Run("unroll", spell(shape.own))


def _multiply(product: Product, shape: Shape) -> Iterator[AnyDirective]:
    """Who multiplies, and what follows."""
    update = short(product.update.name)
    inner = tuple(f"{update}.{digit}" for digit in shape.inner)
    yield Order((*(f"{update}.{digit}" for digit in shape.steps), *inner))
    if product.rest:
        yield Run("vector", tuple(f"{short(s.name)}.{shape.own[-1]}" for s in product.rest))
    if shape.instruction:
        yield Use(shape.instruction.name, inner)


def choose_stages(product: Product, arrays: Table[str, Array], room: int) -> int:
    """How many tiles of each factor are in shared memory: one in use, the others on their way."""
    tiles = [arrays[s.array] for s in (product.left, product.right)]
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
