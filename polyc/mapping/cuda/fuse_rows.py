"""Which clusters become one kernel of row tiles: where that is estimated to take less time.

Apart, each cluster has tiles of its own choice and all multiprocessors, but what they hand each
other goes through memory, and each is a launch. Together, blocks are few and their shared memory
full, but nothing of it is written. What is handed over has to fit: with 16 rows a block that is
some 2000 scores a row on sm_80; longer rows stay in kernels of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

from polyc.mapping.cpu.fuse_tiles import common_loops, fuse_readers
from polyc.mapping.cuda.contraction import choose_shape
from polyc.mapping.cuda.coordinates.gemm_form import find_gemm_form, in_stored_types
from polyc.mapping.cuda.overwrite import find_overwritten, overwrite_rows
from polyc.mapping.cuda.row_tiles import ProductPlan, plan_parts
from polyc.mapping.cuda.tiles import estimate
from polyc.mapping.cuda.warp_tiles import choose_instruction
from polyc.mapping.signature import sign_layouts
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.promote.local_arrays import LARGEST_HANDED
from polyc.scop.scop import Array
from polyc.target.cuda import LAUNCH, CudaTarget
from polyc.target.instructions.tiles import Instruction

HEIGHTS = (128, 64, 32, 16)
"""Rows a block."""

ROW_SLOTS = 20
"""Instructions of a thread for an element of a row: several passes, with an exponential in one."""


def fuse_rows(
    stored: Sequence[StoredCluster], arrays: Mapping[str, Array], target: CudaTarget, tf32: bool
) -> tuple[StoredKernel, ...]:
    """The kernels that the clusters become, in an order that respects what they hand over."""

    def fuse(
        kernel: StoredKernel, one: StoredCluster, handed: frozenset[str]
    ) -> StoredKernel | None:
        if any(load.dynamic for s in one.cluster.statements for load in s.loads):
            return None
        loops = common_loops(kernel, one)
        if not loops or _disagree(kernel, one):
            return None
        whole = StoredKernel((*kernel.parts, one), loops, (), kernel.handed | handed)
        apart = sum(_time_alone(k, arrays, target, tf32) for k in (kernel, StoredKernel((one,))))
        through = sum(arrays[name].bytes for name in handed)
        apart += LAUNCH + 2 * through / target.bandwidth
        times = {
            height: _time_together(_tiled(whole, height), arrays, target, tf32)
            for height in HEIGHTS
        }
        best = min(HEIGHTS, key=lambda height: times[height])
        return _tiled(whole, best) if times[best] < apart else None

    return fuse_readers(stored, arrays, fuse)


def _disagree(kernel: StoredKernel, one: StoredCluster) -> bool:
    """Whether a constant lies differently for the two."""
    common = [name for name in one.arrays if name in kernel.arrays]
    layouts = (sign_layouts(common, x.storages, frozenset()) for x in (kernel, one))
    return len(set(layouts)) > 1


def _tiled(kernel: StoredKernel, height: int) -> StoredKernel:
    return replace(kernel, sizes=(*[1] * (len(kernel.loops) - 1), height))


def _time_alone(
    kernel: StoredKernel, arrays: Mapping[str, Array], target: CudaTarget, tf32: bool
) -> float:
    """Seconds of what there is now, without what it reads and writes for others."""
    if kernel.loops:
        return _time_together(kernel, arrays, target, tf32)
    (one,) = kernel.parts
    form = find_gemm_form(one.cluster, one.private)
    if form is None:
        elements = max(prod(s.estimated_extents) for s in one.cluster.statements)
        return elements * ROW_SLOTS * _seconds(None, target) / target.multiprocessors
    instruction = choose_instruction(in_stored_types(form).left.dtype, target, tf32)
    shape = choose_shape(form.extents, target, instruction)
    return estimate(shape, form.extents, target) * _seconds(instruction, target)


def _seconds(instruction: Instruction | None, target: CudaTarget) -> float:
    """Of a slot of a multiprocessor, which is a multiply-add."""
    rate = target.flops
    if instruction is not None:
        rate = target.tensor_flops * 2 / instruction.dtype.itemsize
    return 2 * target.multiprocessors / rate


def _time_together(
    kernel: StoredKernel, arrays: Mapping[str, Array], target: CudaTarget, tf32: bool
) -> float:
    """Seconds of all parts in one kernel; infinite if it cannot be, or does not fit."""
    height = kernel.sizes[-1]
    kernel = overwrite_rows(kernel, find_overwritten(kernel, arrays))
    plans = plan_parts(kernel, height, arrays, target, tf32)
    if plans is None:
        return float("inf")
    products = [plan for plan in plans if isinstance(plan, ProductPlan)]
    *batch, rows = kernel.extents
    blocks = prod(batch) * ceil(rows / height)
    handed = [arrays[n].bytes * height // (prod(batch) * rows) for n in kernel.handed]
    copies = sum(_copies(plan) for plan in products)
    shared = sum(handed) + copies + 1024  # what the system takes
    if not products or max(handed) > LARGEST_HANDED or shared > target.shared_per_block:
        return float("inf")
    threads = max(plan.threads for plan in products)
    each = ceil(blocks / target.multiprocessors)
    at_once = min(
        each,
        target.shared_per_multiprocessor // shared,
        target.threads_per_multiprocessor // threads,
    )
    products_time = sum(
        plan.time(at_once) * _seconds(plan.shape.instruction, target) for plan in products
    )
    elements = sum(height * plan.length for plan in plans if not isinstance(plan, ProductPlan))
    return each * (products_time + elements * ROW_SLOTS * _seconds(None, target))


def _copies(plan: ProductPlan) -> int:
    """Bytes of the tiles of both factors."""
    tile = plan.shape.tile
    places = (tile.rows.count + tile.columns.count) * tile.depth.count
    return places * plan.form.left.dtype.itemsize
