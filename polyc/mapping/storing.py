"""Vector loops and layouts for all clusters, decided together in execution order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyc.mapping.cpu import STREAM_VECTORS, choose_register_tile
from polyc.memory.layout import (
    accesses,
    choose_vector_loop,
    compute_strides,
    decide_layouts,
)
from polyc.memory.storage import Storage, row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Scop
from polyc.target.machine import Target


@dataclass(frozen=True)
class StoredCluster:
    """A cluster with its layout decided: which loop is the vector loop, and where arrays lie.

    `register_tile` is (loop to unroll, its tile, the vector loop's tile). `arrays` lists what the
    cluster touches in order of appearance; `private` ones are touched by no other cluster.
    """

    cluster: Cluster
    vector: int | None
    register_tile: tuple[int | None, int, int]
    arrays: tuple[str, ...]
    storages: Mapping[str, Storage]
    private: frozenset[str]


def store_clusters(
    clusters: Sequence[Cluster], scop: Scop, target: Target
) -> Iterator[StoredCluster]:
    """Each cluster with its vector loop, register tile and storage maps."""
    touched = [_touched(cluster) for cluster in clusters]
    users: dict[str, int] = {}
    for names in touched:
        for name in names:
            users[name] = users.get(name, 0) + 1
    decided = {
        name: row_major(array)
        for name, array in scop.arrays.items()
        if array.kind in ("input", "output")
    }
    for cluster, names in zip(clusters, touched, strict=True):
        vector = choose_vector_loop(cluster, scop.arrays, decided, target)
        tile = _choose_tile(cluster, vector, scop.arrays, decided, target)
        new = decide_layouts(cluster, vector, tile[2], scop.arrays, decided)
        # A constant is stored anew for each reader that wants it otherwise; the rest is shared.
        decided |= {n: s for n, s in new.items() if scop.arrays[n].kind != "constant"}
        storages = {n: new[n] if n in new else decided[n] for n in names}
        private = frozenset(
            n for n in names if scop.arrays[n].kind == "temporary" and users[n] == 1
        )
        yield StoredCluster(cluster, vector, tile, names, storages, private)


def _touched(cluster: Cluster) -> tuple[str, ...]:
    statements = (*cluster.statements, *cluster.prelude)
    return tuple(dict.fromkeys(name for s in statements for name, _, _ in accesses(s)))


def _choose_tile(
    cluster: Cluster,
    vector: int | None,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    target: Target,
) -> tuple[int | None, int, int]:
    if vector is None:
        return None, 1, 1
    strides = {s.name: compute_strides(s, arrays, storages) for s in cluster.statements}
    if any(s.reduction for s in cluster.statements):
        return choose_register_tile(cluster, vector, strides, arrays, target)
    widest = max(arrays[a.array].dtype.itemsize for st in strides.values() for a in st)
    lanes = max(1, target.simd_bytes // widest)
    vectors = 1 if cluster.is_group else STREAM_VECTORS  # a transform needs registers for a tile
    return None, 1, min(vectors * lanes, cluster.extents[vector])
