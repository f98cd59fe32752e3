"""Vector loops and layouts for all clusters, decided together in execution order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyc.budget import UNLIMITED, Budget
from polyc.mapping.columns import choose_strip, is_by_columns
from polyc.mapping.open_cluster import OpenCluster, compute_all_strides, list_touched
from polyc.mapping.packing import find_operands, pack
from polyc.mapping.parameters import Parameters, Tile, Tuned
from polyc.mapping.pointwise import choose_pointwise_tile
from polyc.mapping.register_tile import choose_register_tile
from polyc.mapping.signature import sign_cluster, sign_layouts
from polyc.mapping.space import is_candidate
from polyc.memory.layout import decide_layouts
from polyc.memory.storage import Storage, row_major
from polyc.memory.vector_loop import choose_vector_loop
from polyc.poly.canonical import Canonical
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Load
from polyc.scop.scop import Array, Scop, gather_steps
from polyc.sizes import Step
from polyc.target.machine import Target


@dataclass(frozen=True)
class StoredCluster:
    """A cluster with its layout decided: which loop is the vector loop, and where arrays lie.

    `arrays` lists what the cluster touches in order of appearance; `private` ones are touched by no
    other cluster. `signature` says what the cluster computes. `key` is that of the open cluster,
    empty for a copy that packs; `gain` is what measured parameters saved, 0 for those of
    the cost model.
    """

    cluster: Cluster
    parameters: Parameters
    arrays: tuple[str, ...]
    storages: Mapping[str, Storage]
    private: frozenset[str]
    signature: Canonical = field(repr=False)
    key: str = ""
    gain: float = 0.0

    @property
    def step(self) -> Step | None:
        """The loop over steps that the cluster is in."""
        return self.cluster.step


@dataclass(frozen=True)
class Stored:
    """All clusters stored, the scop with the arrays of packed copies, and what was open before."""

    clusters: tuple[StoredCluster, ...]
    scop: Scop
    opened: tuple[OpenCluster, ...]


def store_clusters(
    clusters: Sequence[Cluster],
    scop: Scop,
    target: Target,
    tuned: Mapping[str, Tuned] | None = None,
    budget: Budget = UNLIMITED,
) -> Stored:
    """Each cluster with its vector loop, register tile and storage maps, in execution order.

    Layouts are settled in that order, but for those of arrays that are only copied to, such as the
    model's input inside a frame: they are left to their readers. A contraction that wants an
    operand packed is preceded by the copy. `tuned` holds measured parameters by `OpenCluster.key`;
    the cost model chooses the others.
    """
    store = _Store(clusters, scop, target, tuned or {})
    for position, cluster in budget.over(enumerate(clusters), "cluster"):
        copy = _copied_to(cluster)
        if copy and store.arrays[copy].kind == "temporary" and copy not in store.decided:
            store.waiting.setdefault(copy, []).append(position)
        else:
            store.settle(position)
    store.settle_copies(list(store.waiting))
    positions = range(len(clusters))
    return Stored(
        gather_steps(part for position in positions for part in store.stored[position]),
        replace(scop, arrays=store.arrays),
        tuple(store.opened[position] for position in positions),
    )


class _Store:
    """Layouts as far as they are settled, and the copies whose layouts wait for a reader."""

    def __init__(
        self, clusters: Sequence[Cluster], scop: Scop, target: Target, tuned: Mapping[str, Tuned]
    ) -> None:
        self.clusters, self.target, self.tuned = clusters, target, tuned
        self.arrays: Mapping[str, Array] = dict(scop.arrays)
        users = Counter(name for cluster in clusters for name in list_touched(cluster))
        self.alone = frozenset(
            n for n, a in self.arrays.items() if a.kind == "temporary" and users[n] == 1
        )
        self.decided: dict[str, Storage] = {
            n: row_major(a)
            for n, a in self.arrays.items()
            if a.kind in ("input", "output", "state")
        }
        self.waiting: dict[str, list[int]] = {}
        self.stored: dict[int, list[StoredCluster]] = {}
        self.opened: dict[int, OpenCluster] = {}

    def settle(self, position: int) -> None:
        """Choose for one cluster, and for the waiting copies that it reads."""
        one = self._open(position)
        copies = [name for name in one.touched if name in self.waiting]
        if copies and self._suits(position, copies):
            self.settle_copies(copies)
            one = self._open(position)
        found = self.tuned.get(one.key)
        if found and not (found.gain and is_candidate(one, found.parameters, self.target)):
            found = None
        parameters = found.parameters if found else choose_parameters(one, self.target)
        parts, self.arrays = store_cluster(one, parameters, self.target)
        for part in parts:
            # A constant is stored anew for each reader that wants it otherwise; the rest is shared.
            kept = {n: s for n, s in part.storages.items() if self.arrays[n].kind != "constant"}
            self.decided.update(kept)
        gain = found.gain if found else 0.0
        self.stored[position] = [*parts[:-1], replace(parts[-1], gain=gain)]
        self.opened[position] = one
        self.settle_copies(copies)

    def _open(self, position: int, assumed: Mapping[str, Storage] | None = None) -> OpenCluster:
        cluster = self.clusters[position]
        touched = list_touched(cluster)
        storages = {n: self.decided[n] for n in touched if n in self.decided}
        private = self.alone.intersection(touched)
        return OpenCluster(cluster, self.arrays, {**storages, **(assumed or {})}, private)

    def settle_copies(self, names: Sequence[str]) -> None:
        """Choose for the copies that fill these arrays, as far as they still wait."""
        for name in names:
            for position in self.waiting.pop(name, ()):
                self.settle(position)

    def _suits(self, position: int, copies: Sequence[str]) -> bool:
        """Whether a cluster reads copies in vectors that lie as what they are copied from."""
        assumed = {}
        for name in copies:
            copy = self._open(self.waiting[name][0])
            parts, _ = store_cluster(copy, choose_parameters(copy, self.target), self.target)
            assumed[name] = parts[-1].storages[name]
        one = self._open(position, assumed)
        vector = choose_parameters(one, self.target).vector
        if vector is None:
            return choose_parameters(self._open(position), self.target).vector is None
        return all(
            access.steps[one.cluster.shared[vector][s.name]] in (0, 1)
            for s in one.cluster.statements
            for access in one.strides[s.name]
            if access.array in copies
        )


def _copied_to(cluster: Cluster) -> str | None:
    """The array that a cluster only copies to: its readers know better how it should lie."""
    if len(cluster.statements) > 1:
        return None
    (s,) = cluster.statements
    return s.array if isinstance(s.value, Load) and not (s.reduction or s.value.dynamic) else None


def choose_parameters(one: OpenCluster, target: Target) -> Parameters:
    """What the cost model takes."""
    vector = choose_vector_loop(one.cluster, one.strides, target)
    tile = _choose_tile(one, vector, target)
    packed = find_operands(one.cluster, vector, one.strides, tile[1])
    return Parameters(vector, tile, tuple(map(one.touched.index, packed)))


def store_cluster(
    one: OpenCluster, parameters: Parameters, target: Target
) -> tuple[tuple[StoredCluster, ...], Mapping[str, Array]]:
    """The cluster stored as the parameters say, after the copies that pack its operands.

    The arrays that are returned hold those of the copies as well.
    """
    vector, (_, _, width) = parameters.vector, parameters.tile
    operands = tuple(one.touched[k] for k in parameters.packed)
    cluster, packings = pack(one.cluster, operands, one.arrays)
    packed = {p.array.name: p.array for p in packings}
    arrays = {**one.arrays, **packed} if packed else one.arrays
    copies = [p.array.name for p in packings]
    new = decide_layouts(cluster, vector, width, arrays, one.storages, copies)
    decided = {**one.storages, **{n: new[n] for n in copies}}
    result: list[StoredCluster] = []
    for packing in packings:
        moves = compute_all_strides(packing.copy, arrays, decided)
        own = choose_vector_loop(packing.copy, moves, target)
        names = list_touched(packing.copy)
        storages = {n: decided[n] for n in names}
        signature = sign_cluster(packing.copy, names, arrays)
        crossing, height, wide = None, 1, 1
        if own is not None:
            tile = choose_pointwise_tile(packing.copy, own, moves, arrays, target)
            crossing, height, wide = tile
            if vector is not None:  # as wide as a panel, to stay inside one
                wide = min(width, packing.copy.extents[own])
        copied = Parameters(own, (crossing, height, wide))
        result.append(StoredCluster(packing.copy, copied, names, storages, frozenset(), signature))
    names = list_touched(cluster)
    storages = {n: new[n] if n in new else decided[n] for n in names}
    signature = sign_cluster(cluster, names, arrays) if packings else one.signature
    private = one.private.intersection(names)
    result.append(StoredCluster(cluster, parameters, names, storages, private, signature, one.key))
    return tuple(result), arrays


def keeps_layouts(
    one: OpenCluster, parameters: Parameters, others: Parameters, target: Target
) -> bool:
    """Whether other parameters leave everything as it is stored that other clusters see."""
    if parameters.vector == others.vector:
        return True
    decides = [
        name
        for name in one.touched
        if name not in one.storages
        and name not in one.private
        and one.arrays[name].kind != "constant"
    ]
    stored = [store_cluster(one, p, target)[0][-1] for p in (parameters, others)]
    layouts = [sign_layouts(decides, s.storages, one.private) for s in stored]
    return layouts[0] == layouts[1]


def _choose_tile(one: OpenCluster, vector: int | None, target: Target) -> Tile:
    cluster, strides, arrays = one.cluster, one.strides, one.arrays
    if vector is None:
        return None, 1, 1
    if is_by_columns(cluster):
        return choose_strip(cluster, vector, strides, arrays, one.private, target)
    if any(s.reduction for s in cluster.statements):
        return choose_register_tile(cluster, vector, strides, arrays, target)
    return choose_pointwise_tile(cluster, vector, strides, arrays, target)
