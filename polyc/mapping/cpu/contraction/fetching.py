"""What is fetched ahead: what would be waited for, panel by panel or row by row.

A layer reads each of its weights once from memory, or from a cache that others have filled since;
where few products are made with each, that takes a good part of the time. The same goes for rows
that pass by once: what a tile reads of them lies in as many places as it has rows, which is more
than a core foresees by itself.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import prod

from polyc.mapping.cpu.contraction.loop_order import rate_beyond_l2
from polyc.mapping.reading import Tile
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.costs import FMA_UNITS, WAITED_FOR, memory_bytes
from polyc.target.machine import Target


def choose_fetched(
    cluster: Cluster,
    vector: int,
    tile: Tile,
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: Target,
) -> tuple[str, ...]:
    """The constants of a contraction that several tiles of rows read, and rows from afar."""
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
        if not step:
            # Another kernel has mostly written it.
            wanted, rate = array.bytes > target.l2, rate_beyond_l2(array.bytes, target)
        else:
            panels = cluster.extents[vector] > width and bool(storages[array.name].blocks)
            # Of a smaller one there is one miss after another, at once or later.
            wanted = panels and array.kind == "constant" and array.bytes > target.l1d
            wanted = wanted and instances > prod(array.shape) * height
            rate = memory_bytes(target)
        cycles = instances / (FMA_UNITS * target.lanes(array.dtype))
        if wanted and array.bytes / rate >= WAITED_FOR * cycles:
            found.append(array.name)
    return tuple(dict.fromkeys(found))
