"""Which strategy a kernel is mapped to a GPU by; by what the iterators index, never by name.

* *contraction*, for sums of products: tiles of both factors in shared memory;
* *rows*, for what all of a row is needed for, such as softmax: threads share its elements;
* *transpose*, for what is read along one loop and written along another: tiles in shared memory;
* *threads*, for all others, and where an index is made of pieces: a thread for each iteration of
  the shared loops;
* *row tiles*, for several clusters that have been fused (`fuse_rows.py`).
"""

from __future__ import annotations

from collections.abc import Mapping as Table

from polyc.mapping.cuda.contraction import schedule_contraction
from polyc.mapping.cuda.coordinates.gemm_form import find_gemm_form
from polyc.mapping.cuda.coordinates.rewrite import Rewritten
from polyc.mapping.cuda.row_tiles import schedule_row_tiles
from polyc.mapping.cuda.rows import schedule_rows, suits_rows
from polyc.mapping.cuda.threads import is_joinable, schedule_threads
from polyc.mapping.cuda.transposes import find_transpose, schedule_transpose
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array
from polyc.target.cuda import CudaTarget


def schedule_for_cuda(
    kernel: StoredKernel, arrays: Table[str, Array], target: CudaTarget, options: Options
) -> Schedule:
    """The schedule by the strategy that fits the kernel."""
    if kernel.loops:
        return schedule_row_tiles(kernel, arrays, target, options.tf32)
    (stored,) = kernel.parts
    cluster, private, storages = stored.cluster, stored.private, stored.storages
    start = Rewritten((cluster,), arrays, storages, private)
    if is_joinable(cluster):
        form = find_gemm_form(cluster, private)
        if form is not None:
            return schedule_contraction(start, form, target, options.tf32)
        if suits_rows(cluster, private, arrays, storages, target):
            return schedule_rows(start, target)
        transpose = find_transpose(cluster, arrays, storages)
        if transpose is not None:
            return schedule_transpose(start, transpose)
    return schedule_threads(start, target)
