"""Weights that are fetched ahead: those that would be waited for, panel by panel.

A layer reads each of its weights once from memory, or from a cache that others have filled since;
where few products are made with each, that takes a good part of the time.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import prod

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
    """The constants of a contraction that are read in panels, each by several tiles of rows."""
    update = next(s for s in cluster.statements if s.reduction)
    lanes = cluster.shared[vector][update.name]
    instances = prod(update.estimated_extents)
    _, height, width = tile
    if not cluster.has_reuse or cluster.extents[vector] <= width:
        return ()
    found = []
    for access in compute_strides(update, arrays, storages)[1:]:
        array = arrays[access.array]
        if array.kind != "constant" or not access.steps[lanes] or not storages[array.name].blocks:
            continue
        if array.bytes <= target.l1d:
            continue  # one miss after another, at once or later
        elements = prod(array.shape)
        cycles = instances / (FMA_UNITS * target.lanes(array.dtype))
        waits = array.bytes / memory_bytes(target) >= WAITED_FOR * cycles
        if waits and instances > elements * height:
            found.append(array.name)
    return tuple(dict.fromkeys(found))
