"""The register tile of a contraction: every tile that fits is priced, the cheapest wins."""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import ceil

from polyc.mapping.parameters import Tile
from polyc.memory.layout import Strides
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.machine import Target


def choose_register_tile(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> Tile:
    """The cheapest tile for a contraction."""
    return rank_register_tiles(cluster, vector, strides, arrays, target)[0]


def rank_register_tiles(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    target: Target,
) -> list[Tile]:
    """Every tile that fits the registers, the cheapest by `_tile_cost` first."""
    update = next(s for s in cluster.statements if s.reduction)
    lanes = min(target.lanes(arrays[a.array].dtype) for a in strides[update.name])
    extent = cluster.extents[vector]
    walks = [a for a in strides[update.name][1:] if a.steps[cluster.shared[vector][update.name]]]
    candidates: list[tuple[float, Tile]] = []
    loops = [d for d in range(len(cluster.shared)) if d != vector and cluster.extents[d] > 1]
    for d in [None, *loops]:
        reused = d is None or all(a.steps[cluster.shared[d][update.name]] == 0 for a in walks)
        size = 1 if d is None else cluster.extents[d]
        for vectors in range(1, min(4, ceil(extent / lanes)) + 1):
            for u in range(1, size + 1):
                if u * vectors + vectors + 1 > target.registers:
                    break
                cost = _tile_cost(size, u, ceil(extent / lanes), vectors, reused)
                far = 1e-3 * (d is not None and d != loops[-1])
                candidates.append((cost + far, (d, u, min(vectors * lanes, extent))))
    return [tile for _, tile in sorted(candidates, key=lambda c: c[0])]


def _tile_cost(rows: int, u: int, columns: int, v: int, reused: bool) -> float:
    """Cycles per multiply-add of a `rows` x `columns` (in vectors) problem cut into u x v tiles.

    A tile needs u*v accumulators. Fewer than 8 of them leave the FMA pipe waiting for its own
    result (4 cycles of latency, two pipes). A row costs a broadcast from L1; a column a vector that
    streams from L2, once a tile if the rows use it again (`reused`). Border tiles are smaller.
    """

    def one(height: int, width: int) -> float:
        stalls = max(1.0, 8 / (height * width))
        return stalls * (1 + (1.5 / height if reused else 1.5) + 0.5 / width)

    total = 0.0
    for height, high in ((u, rows - rows % u), (rows % u, rows % u)):
        for width, wide in ((v, columns - columns % v), (columns % v, columns % v)):
            total += high * wide * one(height, width) if high * wide else 0.0
    return total / (rows * columns)
