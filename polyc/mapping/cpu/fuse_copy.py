"""Copies that pack an operand, as parts of the kernel that reads it: as wide as reading them pays.

    Bp = B in panels                  for J step 64:                          # parallel
    C[i, j] += A[i, k] * Bp[k, j]  ->   for K step 1024:
                                          Bp = B[K, J]                        # near, and read there
                                          C[:, J] += A[:, K] * Bp

Rows of B lie far apart, each in another page. Of each a tile takes a run: a core that gets a line
or two waits for these, and reads runs of some lines at the rate of the next cache. If what a tile
copies would then leave the second-level cache, the sum is taken in blocks (`fuse_schedules`).

64 x 4096 x 1024 and 64 x 1024 x 4096 on one core of a Zen 3, beside OpenBLAS, in tiles of 32
columns, and of 64: 0.85 -> 0.92, 0.85 -> 0.89 (in blocks of 1024 terms).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from polyc.mapping.fuse_schedules import find_summed
from polyc.mapping.stored_kernel import StoredKernel
from polyc.promote.local_arrays import LARGEST_HANDED
from polyc.schedule.cluster import MANY_ITERATIONS
from polyc.schedule.initial import InitialLoop
from polyc.scop.scop import Array
from polyc.target.machine import Target

RUNS = (256, 192)
"""Bytes of each row that a tile copies, at least: four lines; three, where tiles would be few."""

COPIED_SHARE, SUMS_SHARE = 0.5, 0.25
"""Of the second-level cache, for what a tile copies, and for results that wait for more terms."""

MOST_COPIED, MOST_SUMS = LARGEST_HANDED * 3 // 4, LARGEST_HANDED // 4
"""Bytes of either, which are local arrays."""

FEWEST_TERMS = 128
"""In a block: each loads and stores all results."""


@dataclass(frozen=True)
class CopiedTile:
    """Sizes of the shared loops for a copy and its reader; terms: as `StoredKernel` has them."""

    sizes: tuple[int, ...]
    terms: int


def tile_copy(
    whole: StoredKernel, room: int, arrays: Mapping[str, Array], target: Target
) -> CopiedTile | None:
    """Tiles in which a copy and its reader share loops; None where others do as well, or better.

    room: bytes that a tile may have otherwise.
    """
    copy, vector = whole.parts[0], whole.parts[0].vector
    if len(whole.parts) != 2 or copy.key or vector is None:
        return None
    (s,) = copy.cluster.statements
    lanes = copy.cluster.shared[vector][s.name]
    itemsize, width = arrays[s.array].dtype.itemsize, copy.tile[2]
    fused = {loop[s.name] for loop in whole.loops}
    rows = prod(n for p, n in enumerate(s.long_extents) if p not in fused)
    for run in RUNS:
        wide = ceil(run / (width * itemsize)) * width
        sizes = tuple(wide if loop[s.name] == lanes else 1 for loop in whole.loops)
        if _count_tiles(whole, sizes) >= MANY_ITERATIONS:
            break
    else:
        return None
    if wide not in sizes or rows * wide * itemsize <= room:
        return None
    copied = min(int(COPIED_SHARE * target.l2), MOST_COPIED)
    if rows * wide * itemsize <= copied:
        return CopiedTile(sizes, 0)
    step = copy.tile[1]
    terms = copied // (wide * itemsize) // step * step
    results = _count_results(whole, arrays)
    most = min(SUMS_SHARE * target.l2, MOST_SUMS)
    few = results is not None and results * wide <= most
    return CopiedTile(sizes, terms) if few and terms >= FEWEST_TERMS else None


def _count_tiles(whole: StoredKernel, sizes: Sequence[int]) -> int:
    return prod(ceil(n / size) for n, size in zip(whole.long_extents, sizes, strict=True))


def _count_results(whole: StoredKernel, arrays: Mapping[str, Array]) -> int | None:
    """Bytes of the results in a column of a tile; None if the sum cannot be taken in blocks."""
    named, clusters = whole.named, [part.cluster for part in whole.parts]
    fused = [
        loop
        for each in whole.loops
        for s in whole.statements
        if (loop := named.own(s, each[s.name]))
    ]
    summed = find_summed(clusters, named, fused)
    product = clusters[-1]
    update = next(s for s in product.statements if s.reduction)
    rest: list[InitialLoop] = [
        loop
        for d in range(len(product.shared))
        if (loop := named.shared(product, d)) and loop not in fused
    ]
    if summed is None or any(loop.extent is None for loop in (*rest, *summed)):
        return None
    return arrays[update.array].dtype.itemsize * prod(loop.extent or 1 for loop in rest)
