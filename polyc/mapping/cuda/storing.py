"""Layouts for a GPU: arrays are row-major, so that neighbouring threads read neighbours.

The constants of a product are laid out anew, at compile time: the dimensions that its rows or
columns walk come last, so that the threads that copy a tile of filters read them side by side.

    w[o, c, r, s]   ->   c, r, s, o                the sum's dimensions, then those of the result

So are those of a sum whose elements threads share: theirs come last.

    y[j] += x[k] * w[k, j]   ->   w as j, k        as of a dense layer on one image
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from polyc.mapping.cpu.given import NOTHING, Given
from polyc.mapping.cuda.coordinates.gemm_form import GemmForm, find_gemm_form
from polyc.mapping.cuda.rows import suits_rows
from polyc.mapping.cuda.threads import is_joinable
from polyc.mapping.open_cluster import list_touched
from polyc.mapping.signature import sign_cluster
from polyc.mapping.stored_cluster import Stored, StoredCluster
from polyc.memory.storage import Storage, permuted
from polyc.poly.affine import coefficients, outputs
from polyc.schedule.cluster import Cluster, alone
from polyc.schedule.schedule import Schedule
from polyc.scop.expr import Load, loads
from polyc.scop.scop import Array, Scop
from polyc.target.cuda import CudaTarget


def store_for_cuda(
    clusters: Sequence[Cluster], scop: Scop, target: CudaTarget, given: Given = NOTHING
) -> Stored:
    """Each cluster with its arrays as they lie, and the schedule that is given for it, if any."""
    users = Counter(name for cluster in clusters for name in list_touched(cluster))
    private = {n for n, a in scop.arrays.items() if a.kind == "temporary" and users[n] == 1}
    stored = (_store(cluster, scop.arrays, private, target) for cluster in clusters)
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


def _store(
    cluster: Cluster, arrays: Mapping[str, Array], private: set[str], target: CudaTarget
) -> StoredCluster:
    touched = list_touched(cluster)
    mine = frozenset(private.intersection(touched))

    def store(orders: Mapping[str, Sequence[int]]) -> dict[str, Storage]:
        plain = {name: range(len(arrays[name].shape)) for name in touched}
        return {name: permuted(arrays[name], orders.get(name, plain[name])) for name in touched}

    form = find_gemm_form(cluster, mine)
    storages = store(_order_factors(form, cluster, arrays) if form else {})
    if not form and is_joinable(cluster):
        by_rows = store(_order_rows(cluster, arrays))
        if suits_rows(cluster, mine, arrays, by_rows, target):
            storages = by_rows
    return StoredCluster(
        cluster, Schedule(), touched, storages, mine, sign_cluster(cluster, touched, arrays)
    )


def _order_factors(
    form: GemmForm, cluster: Cluster, arrays: Mapping[str, Array]
) -> dict[str, list[int]]:
    """The order of dimensions of each constant that is read by one of the two factors alone."""
    kept = {cluster.shared[d][form.update.name] for d in (*form.rows, *form.columns)}
    factors = (*loads(form.left), *loads(form.right))
    return {x.array: _order(x, kept) for x in factors if _is_free(x, cluster, arrays)}


def _order_rows(cluster: Cluster, arrays: Mapping[str, Array]) -> dict[str, list[int]]:
    """The order of dimensions of each constant that is read along the elements of a row."""
    orders: dict[str, list[int]] = {}
    for s in cluster.statements:
        own = set(range(len(s.iterators))) - cluster.shared_positions(s)
        orders |= {x.array: _order(x, own) for x in s.loads if _is_free(x, cluster, arrays)}
    return orders


def _is_free(load: Load, cluster: Cluster, arrays: Mapping[str, Array]) -> bool:
    """Whether what is read is a constant that nothing else in the cluster reads."""
    reads = [other for s in cluster.statements for other in s.loads]
    once = sum(other.array == load.array for other in reads) == 1
    return once and arrays[load.array].kind == "constant" and not load.dynamic


def _order(load: Load, last: Collection[int]) -> list[int]:
    """The dimensions of what is read, those behind that some iterators walk."""
    walked = [any(coefficients(function)[p] for p in last) for function in outputs(load.index)]
    return sorted(range(len(walked)), key=lambda d: walked[d])
