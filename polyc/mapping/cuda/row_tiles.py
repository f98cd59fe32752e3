"""Several clusters in one kernel: a block takes a few rows through all of them.

    block   b, mt                                16 to 128 rows of one of the batch
    └ tile                                       what the clusters hand each other: shared,
                                                 a row where the one was that it is made of
      ├ scores    nt ─ spread ─ …                a product, tile by tile of its columns
      ├ softmax   pass ─ stage ─ …               rows, a warp each
      └ product   nt ─ spread ─ …

So the scores of an attention never leave the multiprocessor. Each part is what it would be alone,
but for its tiles: all of them have the same rows. What shares these rows is found from the accesses
(`common_loops`), and that all is in order is proven on the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil, prod

from polyc.codegen.loopnest import Swizzle
from polyc.coordinates.change import fresh_iterator, join_shared
from polyc.coordinates.gemm_form import GemmForm, find_gemm_form, in_stored_types, share_out
from polyc.mapping.cuda.contraction import place_product, show_extents
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.mapping.cuda.overwrite import overwrite_rows
from polyc.mapping.cuda.row_parts import Row, share_rows
from polyc.mapping.cuda.rows import can_share_rows, choose_lanes
from polyc.mapping.cuda.thread_tiles import ROW_SHAPES, THREAD_SHAPES
from polyc.mapping.cuda.threads import is_joinable
from polyc.mapping.cuda.tiles import BUSY, Shape
from polyc.mapping.cuda.warp_tiles import Instruction, choose_instruction, list_warp_shapes
from polyc.mapping.stored_kernel import StoredKernel
from polyc.mapping.storing import StoredCluster
from polyc.memory.storage import Storage
from polyc.poly.affine import box_extents
from polyc.promote.local_arrays import LARGEST_SHARED
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget


@dataclass(frozen=True)
class ProductPlan:
    """A part that is a product: the common rows by all columns, in tiles of a shape."""

    form: GemmForm
    shape: Shape
    instruction: Instruction | None

    @property
    def threads(self) -> int:
        return self.shape.threads

    def time(self, blocks: int) -> float:
        """Slots of an instruction unit that a block takes, so many of which it works on at once."""
        tile, (_, _, columns, depth) = self.shape.tile, self.form.extents
        across = ceil(columns / tile.columns.count) * tile.columns.count
        down = ceil(depth / tile.depth.count) * tile.depth.count
        work = tile.rows.count * across * down * self.shape.slots
        return work * max(1.0, BUSY / (self.threads * blocks))


@dataclass(frozen=True)
class RowsPlan:
    """A part that works on rows, each of so many elements."""

    length: int


Plan = ProductPlan | RowsPlan


def plan_parts(
    kernel: StoredKernel,
    height: int,
    arrays: Table[str, Array],
    target: CudaTarget,
    tf32: bool,
) -> list[Plan] | None:
    """How each part does its share of a tile of so many rows; None if some part cannot.

    The last loop of the kernel counts rows, the others the batch.
    """
    plans: list[Plan] = []
    for part in kernel.parts:
        plan = _plan_part(part, kernel, height, arrays, target, tf32)
        if plan is None:
            return None
        plans.append(plan)
    return plans


def _plan_part(
    part: StoredCluster,
    kernel: StoredKernel,
    height: int,
    arrays: Table[str, Array],
    target: CudaTarget,
    tf32: bool,
) -> Plan | None:
    cluster = part.cluster
    order = _positions(cluster, kernel)
    if cluster.prelude or cluster.is_group or not is_joinable(cluster):
        return None
    if not cluster.has_reuse:
        if len(order) < len(cluster.shared) or not can_share_rows(cluster, part.private, arrays):
            return None
        return RowsPlan(max(prod(_own_extents(s, cluster)) for s in cluster.statements))
    *batch, row = order
    form = find_gemm_form(cluster, part.private)
    form = share_out(form, cluster, batch, row) if form else None
    if form is None:
        return None
    form = in_stored_types(form)
    instruction = choose_instruction(form.left.dtype, target, tf32)
    shapes = list_warp_shapes(instruction) if instruction else [*THREAD_SHAPES, *ROW_SHAPES]
    plans = [
        ProductPlan(form, shape, instruction) for shape in shapes if shape.tile.rows.count == height
    ]
    return min(plans, key=lambda plan: plan.time(1), default=None)


def _positions(cluster: Cluster, kernel: StoredKernel) -> list[int]:
    """The shared loops of a part that are the kernel's, in its order, after those of no extent."""
    first = cluster.statements[0].name
    position = {loop[first]: d for d, loop in enumerate(cluster.shared)}
    common = [position[loop[first]] for loop in kernel.loops]
    idle = [d for d, n in enumerate(cluster.extents) if n == 1 and d not in common]
    return [*idle, *common]


def _own_extents(s: Statement, cluster: Cluster) -> list[int]:
    shared = {loop[s.name] for loop in cluster.shared}
    return [n for p, n in enumerate(box_extents(s.domain)) if p not in shared]


@dataclass(frozen=True)
class _Placed:
    """A part in the coordinates of the kernel: its blocks, and what a block does."""

    statements: tuple[Statement, ...]
    arrays: Table[str, Array]
    batch: str
    tile: str
    body: Part
    shown: str
    storages: Table[str, Storage]
    swizzles: Table[str, Swizzle | None]


def map_row_tiles(
    kernel: StoredKernel, arrays: Table[str, Array], target: CudaTarget, tf32: bool
) -> Mapped:
    """The tree of a kernel of several clusters."""
    height = kernel.sizes[-1]
    kernel = overwrite_rows(kernel, arrays)
    plans = plan_parts(kernel, height, arrays, target, tf32)
    assert plans is not None
    threads = max(plan.threads for plan in plans if isinstance(plan, ProductPlan))
    placed = []
    for part, plan in zip(kernel.parts, plans, strict=True):
        if isinstance(plan, ProductPlan):
            placed.append(_place_product(part, plan, arrays))
        else:
            placed.append(_place_rows(part, plan, kernel, threads, arrays, target))
    statements = tuple(s for one in placed for s in one.statements)
    grid = [
        Loop("block", {s.name: one.batch for one in placed for s in one.statements}),
        Loop("block", {s.name: one.tile for one in placed for s in one.statements}),
    ]
    made = {name: array for one in placed for name, array in one.arrays.items()}
    whole = Cluster(statements, (), has_reuse=True)
    return Mapped(
        whole,
        made,
        private_of(whole, kernel.private, made),
        build_tree(Part(statements, grid, "tile", [one.body for one in placed])),
        threads,
        f"row tiles: {height} rows a block, each {'; '.join(one.shown for one in placed)}",
        {name: storage for one in placed for name, storage in one.storages.items()},
        {name: swizzle for one in placed for name, swizzle in one.swizzles.items()},
    )


def _place_product(part: StoredCluster, plan: ProductPlan, arrays: Table[str, Array]) -> _Placed:
    product = place_product(
        plan.form, part.cluster, plan.shape, arrays, part.storages, plan.instruction, room=0
    )
    statements = product.tiled.cluster.statements
    body = Part(statements, [Loop("sequential", "nt")], "spread", product.tile)
    shown = f"contraction {show_extents(plan.form)} in tiles of {plan.shape.tile}"
    return _Placed(
        statements,
        product.tiled.arrays,
        "b",
        "mt",
        body,
        f"{shown}, {plan.shape.shown}",
        product.storages,
        product.swizzles,
    )


def _place_rows(
    part: StoredCluster,
    plan: RowsPlan,
    kernel: StoredKernel,
    threads: int,
    arrays: Table[str, Array],
    target: CudaTarget,
) -> _Placed:
    """A warp a row, as many at a time as there are warps."""
    height, order = kernel.sizes[-1], _positions(part.cluster, kernel)
    flat, made = join_shared(
        part.cluster,
        order,
        fresh_iterator(part.cluster.statements, "e"),
        part.private,
        arrays,
        LARGEST_SHARED,
        height,
    )
    made = {array.name: array for array in made.values()}
    known = {**arrays, **made}
    lanes = choose_lanes(plan.length, flat.statements, known, target)
    row = Row(target.warp, lanes, min(height, threads // target.warp))
    parts, more = share_rows(flat.statements, row, known, part.storages)
    statements = tuple(s for one in parts for s in one.statements)
    e = flat.statements[0].iterators[0]
    extent = ceil(kernel.extents[-1] / height) * height
    passes = Loop("sequential", f"floor(({e} mod {height})/{row.rows})")
    return _Placed(
        statements,
        made | more,
        f"floor({e}/{extent})",
        f"floor(({e} mod {extent})/{height})",
        Part(statements, [passes], "stage", parts),
        f"rows of {plan.length}, {row.threads} threads a row, vector {row.lanes}",
        {},
        {},
    )
