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

from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil, prod

from polyc.mapping.cuda.contraction import (
    find_product,
    schedule_product,
    spell_tile,
)
from polyc.mapping.cuda.coordinates.gemm_form import (
    GemmForm,
    find_gemm_form,
    in_stored_types,
    share_out,
)
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.mapping.cuda.overwrite import find_overwritten, overwrite_rows
from polyc.mapping.cuda.rows import Row, can_share_rows, choose_lanes, share_rows, walk_rows
from polyc.mapping.cuda.scheduled import begin
from polyc.mapping.cuda.thread_tiles import ROW_SHAPES, THREAD_SHAPES
from polyc.mapping.cuda.threads import is_joinable, join_by
from polyc.mapping.cuda.tiles import Shape
from polyc.mapping.cuda.warp_tiles import choose_instruction, list_warp_shapes
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import Join
from polyc.schedule.counting import Count
from polyc.schedule.directives import Distribute, Fuse, Run, Split
from polyc.schedule.keeping import Keep, KeepInPlace
from polyc.schedule.names import inside, short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Threads
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import BUSY, CudaTarget


@dataclass(frozen=True)
class ProductPlan:
    """A part that is a product: the common rows by all columns, in tiles of a shape."""

    form: GemmForm
    shape: Shape

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
    plans = [ProductPlan(form, shape) for shape in shapes if shape.tile.rows.count == height]
    return min(plans, key=lambda plan: plan.time(1), default=None)


def _positions(cluster: Cluster, kernel: StoredKernel) -> list[int]:
    """The shared loops of a part that are the kernel's, in its order, after those of no extent."""
    first = cluster.statements[0].name
    position = {loop[first]: d for d, loop in enumerate(cluster.shared)}
    common = [position[loop[first]] for loop in kernel.loops]
    idle = [d for d, n in enumerate(cluster.extents) if n == 1 and d not in common]
    return [*idle, *common]


def _own_extents(s: Statement, cluster: Cluster) -> list[int]:
    shared = cluster.shared_positions(s)
    return [n for p, n in enumerate(s.estimated_extents) if p not in shared]


def schedule_row_tiles(
    kernel: StoredKernel, arrays: Table[str, Array], target: CudaTarget, tf32: bool
) -> Schedule:
    """The schedule of a kernel of several clusters."""
    height = kernel.sizes[-1]
    pairs = find_overwritten(kernel, arrays)
    kept = [KeepInPlace(new, old, "mt") for old, new in pairs]
    kernel = overwrite_rows(kernel, pairs)
    plans = plan_parts(kernel, height, arrays, target, tf32)
    assert plans is not None
    threads = max(plan.threads for plan in plans if isinstance(plan, ProductPlan))
    now = begin(kernel, arrays)
    before: list[AnyDirective] = []
    rows: dict[int, tuple[Row, Join]] = {}
    for k, plan in enumerate(plans):  # each names loops as those before have left them
        if isinstance(plan, ProductPlan):
            said: list[AnyDirective] = [spell_tile(now, k, plan.form, plan.shape)]
        else:
            row, join, cuts = _plan_rows(now, k, plan, kernel, threads, target)
            rows[k] = row, join
            said = [join, *cuts]
        now = rewrite(now, Schedule(tuple(said)))
        before += said
    steps: list[AnyDirective] = [*before, *_fuse_blocks(now, rows, kernel)]
    steps += [Run("block", ("b", "mt")), Keep(None, at="mt"), *kept]
    for k, plan in enumerate(plans):
        if isinstance(plan, ProductPlan):
            steps += schedule_product(now, find_product(now, k), plan.shape, room=0)
        else:
            steps += _walk_tile(now, k, *rows[k])
    return Schedule(tuple(steps))


def _plan_rows(
    start: Rewritten,
    position: int,
    plan: RowsPlan,
    kernel: StoredKernel,
    threads: int,
    target: CudaTarget,
) -> tuple[Row, Join, list[AnyDirective]]:
    """(a warp a row, as many at a time as there are warps; how their coordinates are said)."""
    height, cluster = kernel.sizes[-1], start.clusters[position]
    join = join_by(start, _positions(cluster, kernel), position, height)
    flat = rewrite(start, Schedule((join,)))
    joined = flat.clusters[position]
    lanes = choose_lanes(plan.length, joined.statements, flat.arrays, target)
    row = Row(target.warp, lanes, min(height, threads // target.warp))
    return row, join, [*share_rows(flat, joined, row)]


def _fuse_blocks(
    now: Rewritten, rows: Table[int, tuple[Row, Join]], kernel: StoredKernel
) -> Iterator[AnyDirective]:
    """The batch, and tiles of rows, as loops around all parts; those of products lead."""
    height = kernel.sizes[-1]
    extent = ceil(kernel.extents[-1] / height) * height
    firsts = [short(cluster.statements[0].name) for cluster in now.clusters]
    outer: list[str] = []
    inner: list[str] = []
    for k, first in enumerate(firsts):
        if k not in rows:
            outer.append(f"{first}.b")
            inner.append(f"{first}.mt")
    for k, (_, join) in rows.items():
        batch = f"{firsts[k]}.{join.name}"
        tile = inside(batch)
        yield Split((batch,), extent)
        yield Split((tile,), height)
        yield Count((batch, tile))
        outer.append(batch)
        inner.append(tile)
    yield Fuse(tuple(outer))
    yield Fuse(tuple(inner))


def _walk_tile(now: Rewritten, position: int, row: Row, join: Join) -> Iterator[AnyDirective]:
    """What a block does with rows: a pass for each warp's next row."""
    cluster = now.clusters[position]
    passes = inside(inside(f"{short(cluster.statements[0].name)}.{join.name}"))
    yield Split((passes,), row.rows)
    yield Keep(None, "shared", passes)
    if len(cluster.statements) > 1:
        yield Distribute((inside(passes),))
    if row.rows > 1:
        each = inside(inside(inside(join.name)))
        for s in cluster.statements:
            yield Threads((f"{short(s.name)}.{each}",), warps=True)
    yield from walk_rows(now.named, cluster, row)
