"""Layouts for a GPU: arrays are row-major, so that neighbouring threads read neighbours.

The constants of a product are laid out anew, at compile time: the dimensions that its rows or
columns walk come last, so that the threads that copy a tile of filters read them side by side.

    w[o, c, r, s]   ->   c, r, s, o                the sum's dimensions, then those of the result
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from polyc.mapping.cpu.given import NOTHING, Given
from polyc.mapping.cuda.coordinates.gemm_form import GemmForm, find_gemm_form
from polyc.mapping.open_cluster import list_touched
from polyc.mapping.signature import sign_cluster
from polyc.mapping.stored_cluster import Stored, StoredCluster
from polyc.memory.storage import permuted
from polyc.poly.affine import coefficients, outputs
from polyc.schedule.cluster import Cluster, alone
from polyc.schedule.schedule import Schedule
from polyc.scop.expr import loads
from polyc.scop.scop import Array, Scop


def store_for_cuda(clusters: Sequence[Cluster], scop: Scop, given: Given = NOTHING) -> Stored:
    """Each cluster with its arrays as they lie, and the schedule that is given for it, if any."""
    users = Counter(name for cluster in clusters for name in list_touched(cluster))
    private = {n for n, a in scop.arrays.items() if a.kind == "temporary" and users[n] == 1}
    stored = (_store(cluster, scop.arrays, private) for cluster in clusters)
    named = (given.homes.get(k, "") for k in range(len(clusters)))
    return Stored(
        tuple(
            replace(one, schedule=given.schedules[name], given=name) if name else one
            for one, name in zip(stored, named, strict=True)
        ),
        scop,
        (),
    )


def set_preludes_free(clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """The clusters, each behind those that fill frames for it."""
    return tuple(
        part
        for cluster in clusters
        for part in (*map(alone, cluster.prelude), replace(cluster, prelude=()))
    )


def _store(cluster: Cluster, arrays: Mapping[str, Array], private: set[str]) -> StoredCluster:
    touched = list_touched(cluster)
    mine = frozenset(private.intersection(touched))
    form = find_gemm_form(cluster, mine)
    orders = _order_constants(form, cluster, arrays) if form else {}
    return StoredCluster(
        cluster,
        Schedule(),
        touched,
        {n: permuted(arrays[n], orders.get(n, range(len(arrays[n].shape)))) for n in touched},
        mine,
        sign_cluster(cluster, touched, arrays),
    )


def _order_constants(
    form: GemmForm, cluster: Cluster, arrays: Mapping[str, Array]
) -> dict[str, list[int]]:
    """The order of dimensions of each constant that is read by one of the two factors alone."""
    kept = {cluster.shared[d][form.update.name] for d in (*form.rows, *form.columns)}
    orders: dict[str, list[int]] = {}
    reads = [load for s in cluster.statements for load in s.loads]
    for load in (*loads(form.left), *loads(form.right)):
        if arrays[load.array].kind != "constant" or load.dynamic:
            continue
        if sum(other.array == load.array for other in reads) > 1:
            continue
        walked = [
            any(coefficients(function)[p] != 0 for p in kept) for function in outputs(load.index)
        ]
        orders[load.array] = sorted(range(len(walked)), key=lambda d: walked[d])
    return orders
