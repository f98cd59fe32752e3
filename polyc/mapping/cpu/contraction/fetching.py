"""What is fetched ahead: what would be waited for, panel by panel or row by row.

A layer reads each of its weights once from memory, or from a cache that others have filled since;
where few products are made with each, that takes a good part of the time. The same goes for rows
that pass by once: what a tile reads of them lies in as many places as it has rows, which is more
than a core foresees by itself.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from math import ceil, prod

from polyc.mapping.cpu.contraction.loop_order import rate_beyond_l2
from polyc.mapping.reading import Tile
from polyc.memory.storage import Storage
from polyc.memory.strides import Strides, compute_strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.costs import FMA_UNITS, WAITED_FOR, WAITED_FOR_AGAIN, memory_bytes
from polyc.target.machine import Target
from polyc.types.estimate import estimate


def choose_fetched(
    cluster: Cluster,
    vector: int,
    tile: Tile,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
    order: Sequence[int],
    blocks: Table[int, int],
) -> tuple[str, ...]:
    """The panels of a contraction that several tiles of rows read, and rows from afar.

    order: of the shared loops; blocks: of those that run in blocks.
    """
    update = next(s for s in cluster.statements if s.reduction)
    lanes = cluster.shared[vector][update.name]
    instances = prod(update.estimated_extents)
    _, height, width = tile
    if not cluster.has_reuse:
        return ()
    found = []
    for access in compute_strides(update, arrays, storages)[1:]:
        array, step = arrays[access.array], access.steps[lanes]
        if step is None:
            continue
        # Rows, and what is packed, another kernel has mostly written.
        wanted, rate = array.bytes > target.l2, rate_beyond_l2(array.bytes, target)
        passes, least = 1, WAITED_FOR
        if step:
            wanted = cluster.extents[vector] > width and bool(storages[array.name].blocks)
            wanted = wanted and instances > prod(map(estimate, array.shape)) * height
            if array.kind == "constant":
                # Of a smaller one there is one miss after another, at once or later.
                wanted, rate = wanted and array.bytes > target.l1d, memory_bytes(target)
            else:
                wanted, least = wanted and array.bytes > target.l2, WAITED_FOR_AGAIN
                passes = _count_passes(
                    cluster, access, update, order[: order.index(vector)], blocks
                )
        cycles = instances / (FMA_UNITS * target.lanes(array.dtype))
        if wanted and passes * array.bytes / rate >= least * cycles:
            found.append(array.name)
    return tuple(dict.fromkeys(found))


def _count_passes(
    cluster: Cluster,
    access: Strides,
    update: Statement,
    around: Sequence[int],
    blocks: Table[int, int],
) -> int:
    """How often all panels are gone through: for each iteration of loops that read the same."""
    return prod(
        ceil(cluster.extents[d] / blocks.get(d, 1))
        for d in around
        if access.steps[cluster.shared[d][update.name]] == 0
    )
