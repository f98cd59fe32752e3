"""Layouts for a GPU: arrays are row-major, so that neighbouring threads read neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyc.mapping.open_cluster import list_touched
from polyc.mapping.parameters import Parameters
from polyc.mapping.signature import spell_cluster
from polyc.mapping.storing import Stored, StoredCluster
from polyc.memory.storage import row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Scop, Statement


def store_for_cuda(clusters: Sequence[Cluster], scop: Scop) -> Stored:
    """Each cluster with its arrays as they lie, after those that fill frames for it."""
    alone = [part for cluster in clusters for part in _set_prelude_free(cluster)]
    users = Counter(name for cluster in alone for name in list_touched(cluster))
    private = {n for n, a in scop.arrays.items() if a.kind == "temporary" and users[n] == 1}
    stored = tuple(_store(cluster, scop.arrays, private) for cluster in alone)
    return Stored(stored, scop, ())


def _set_prelude_free(cluster: Cluster) -> list[Cluster]:
    fills = [_alone(s) for s in cluster.prelude]
    return [*fills, replace(cluster, prelude=())]


def _alone(s: Statement) -> Cluster:
    shared = tuple({s.name: p} for p in range(len(s.iterators)))
    return Cluster((s,), shared, has_reuse=False)


def _store(cluster: Cluster, arrays: Mapping[str, Array], private: set[str]) -> StoredCluster:
    touched = list_touched(cluster)
    return StoredCluster(
        cluster,
        Parameters(None),
        touched,
        {name: row_major(arrays[name]) for name in touched},
        frozenset(private.intersection(touched)),
        spell_cluster(cluster, touched, arrays),
    )
