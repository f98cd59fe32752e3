"""Vector loops and layouts for all clusters, decided together in execution order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyc.mapping.choose import STREAM_VECTORS
from polyc.mapping.packing import Packing, find_operands, pack
from polyc.mapping.register_tile import choose_register_tile
from polyc.memory.layout import (
    Strides,
    accesses,
    choose_vector_loop,
    compute_strides,
    decide_layouts,
)
from polyc.memory.storage import Storage, row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Scop
from polyc.target.machine import Target

Tile = tuple[int | None, int, int]


@dataclass(frozen=True)
class StoredCluster:
    """A cluster with its layout decided: which loop is the vector loop, and where arrays lie.

    `register_tile` is (loop to unroll, its tile, the vector loop's tile). `arrays` lists what the
    cluster touches in order of appearance; `private` ones are touched by no other cluster.
    """

    cluster: Cluster
    vector: int | None
    register_tile: Tile
    arrays: tuple[str, ...]
    storages: Mapping[str, Storage]
    private: frozenset[str]


def store_clusters(
    clusters: Sequence[Cluster], scop: Scop, target: Target
) -> tuple[tuple[StoredCluster, ...], Scop]:
    """Each cluster with its vector loop, register tile and storage maps, in execution order.

    A contraction that wants an operand packed is preceded by the copy; the scop that is returned
    has the arrays of these copies as well.
    """
    arrays = dict(scop.arrays)
    users: dict[str, int] = {}
    for cluster in clusters:
        for name in _touched(cluster):
            users[name] = users.get(name, 0) + 1
    decided = {
        name: row_major(array)
        for name, array in arrays.items()
        if array.kind in ("input", "output")
    }
    stored: list[StoredCluster] = []

    def store(cluster: Cluster, vector: int | None, tile: Tile, new: dict[str, Storage]) -> None:
        # A constant is stored anew for each reader that wants it otherwise; the rest is shared.
        decided.update({n: s for n, s in new.items() if arrays[n].kind != "constant"})
        names = _touched(cluster)
        storages = {n: new[n] if n in new else decided[n] for n in names}
        private = {n for n in names if arrays[n].kind == "temporary" and users.get(n) == 1}
        stored.append(StoredCluster(cluster, vector, tile, names, storages, frozenset(private)))

    for cluster in clusters:
        strides = _strides(cluster, arrays, decided)
        vector = choose_vector_loop(cluster, strides, target)
        tile = _choose_tile(cluster, vector, strides, arrays, target)
        packings: tuple[Packing, ...] = ()
        if vector is not None and cluster.has_reuse:
            operands = find_operands(cluster, vector, strides, tile[1])
            cluster, packings = pack(cluster, operands, arrays)
            arrays |= {p.array.name: p.array for p in packings}
        copies = [p.array.name for p in packings]
        new = decide_layouts(cluster, vector, tile[2], arrays, decided, copies)
        decided |= {n: new[n] for n in copies}
        for packing in packings:
            moves = _strides(packing.copy, arrays, decided)
            own = choose_vector_loop(packing.copy, moves, target)
            # A vector tile as wide as a panel stays inside one.
            width = 1 if own is None else min(tile[2], packing.copy.extents[own])
            store(packing.copy, own, (None, 1, width), {})
        store(cluster, vector, tile, new)
    return tuple(stored), replace(scop, arrays=arrays)


def _strides(
    cluster: Cluster, arrays: Mapping[str, Array], storages: Mapping[str, Storage]
) -> dict[str, tuple[Strides, ...]]:
    return {s.name: compute_strides(s, arrays, storages) for s in cluster.statements}


def _touched(cluster: Cluster) -> tuple[str, ...]:
    statements = (*cluster.statements, *cluster.prelude)
    return tuple(dict.fromkeys(name for s in statements for name, _, _ in accesses(s)))


def _choose_tile(
    cluster: Cluster,
    vector: int | None,
    strides: Mapping[str, tuple[Strides, ...]],
    arrays: Mapping[str, Array],
    target: Target,
) -> Tile:
    if vector is None:
        return None, 1, 1
    if any(s.reduction for s in cluster.statements):
        return choose_register_tile(cluster, vector, strides, arrays, target)
    widest = max(arrays[a.array].dtype.itemsize for st in strides.values() for a in st)
    lanes = max(1, target.simd_bytes // widest)
    vectors = 1 if cluster.is_group else STREAM_VECTORS  # a transform needs registers for a tile
    return None, 1, min(vectors * lanes, cluster.extents[vector])
