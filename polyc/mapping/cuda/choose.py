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

from polyc.mapping.cuda.contraction import map_contraction
from polyc.mapping.cuda.gemm_form import find_gemm_form
from polyc.mapping.cuda.mapped import Mapped
from polyc.mapping.cuda.row_tiles import map_row_tiles
from polyc.mapping.cuda.rows import map_rows, suits_rows
from polyc.mapping.cuda.threads import is_joinable, map_threads
from polyc.mapping.cuda.transposes import find_transpose, map_transpose
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.scop.scop import Array
from polyc.target.cuda import CudaTarget


def map_to_cuda(
    kernel: StoredKernel, arrays: Table[str, Array], target: CudaTarget, options: Options
) -> Mapped:
    """The strategy that fits the kernel, applied."""
    if kernel.loops:
        return map_row_tiles(kernel, arrays, target, options.tf32)
    (stored,) = kernel.parts
    cluster, private, storages = stored.cluster, stored.private, stored.storages
    if is_joinable(cluster):
        form = find_gemm_form(cluster, private)
        if form is not None:
            return map_contraction(form, cluster, private, arrays, storages, target, options.tf32)
        if suits_rows(cluster, private, arrays, storages, target):
            return map_rows(cluster, private, arrays, storages, target)
        transpose = find_transpose(cluster, arrays, storages)
        if transpose is not None:
            return map_transpose(transpose, cluster, private, arrays)
    return map_threads(cluster, private, arrays, storages, target)
