"""Vector loops and layouts for all clusters, decided together in execution order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyc.mapping.open_cluster import OpenCluster, compute_all_strides, list_touched
from polyc.mapping.packing import find_operands, pack
from polyc.mapping.parameters import Parameters, Tile, Tuned
from polyc.mapping.pointwise import choose_pointwise_tile
from polyc.mapping.register_tile import choose_register_tile
from polyc.mapping.signature import spell_cluster, spell_layouts
from polyc.mapping.space import is_candidate
from polyc.memory.layout import choose_vector_loop, decide_layouts
from polyc.memory.storage import Storage, row_major
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Scop
from polyc.target.machine import Target


@dataclass(frozen=True)
class StoredCluster:
    """A cluster with its layout decided: which loop is the vector loop, and where arrays lie.

    `arrays` lists what the cluster touches in order of appearance; `private` ones are touched by no
    other cluster. `text` spells the cluster with names as positions. `key` is that of the open
    cluster, empty for a copy that packs; `gain` is what measured parameters saved, 0 for those of
    the cost model.
    """

    cluster: Cluster
    parameters: Parameters
    arrays: tuple[str, ...]
    storages: Mapping[str, Storage]
    private: frozenset[str]
    text: str = field(repr=False)
    key: str = ""
    gain: float = 0.0


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
) -> Stored:
    """Each cluster with its vector loop, register tile and storage maps, in execution order.

    A contraction that wants an operand packed is preceded by the copy. `tuned` holds measured
    parameters by `OpenCluster.key`; the cost model chooses the others.
    """
    arrays: Mapping[str, Array] = dict(scop.arrays)
    users: dict[str, int] = {}
    for cluster in clusters:
        for name in list_touched(cluster):
            users[name] = users.get(name, 0) + 1
    alone = frozenset(n for n, a in arrays.items() if a.kind == "temporary" and users.get(n) == 1)
    decided: Mapping[str, Storage] = {
        name: row_major(array)
        for name, array in arrays.items()
        if array.kind in ("input", "output")
    }
    stored: list[StoredCluster] = []
    opened: list[OpenCluster] = []
    for cluster in clusters:
        one = OpenCluster(cluster, arrays, decided, alone.intersection(list_touched(cluster)))
        found = tuned.get(one.key) if tuned else None
        if found and not (found.gain and is_candidate(one, found.parameters, target)):
            found = None
        parameters = found.parameters if found else choose_parameters(one, target)
        parts, arrays = store_cluster(one, parameters, target)
        # A constant is stored anew for each reader that wants it otherwise; the rest is shared.
        for part in parts:
            shared = {n: s for n, s in part.storages.items() if arrays[n].kind != "constant"}
            decided = {**decided, **shared}
        stored += [*parts[:-1], replace(parts[-1], gain=found.gain if found else 0.0)]
        opened.append(one)
    return Stored(tuple(stored), replace(scop, arrays=arrays), tuple(opened))


def choose_parameters(one: OpenCluster, target: Target) -> Parameters:
    """What the cost model takes."""
    vector = choose_vector_loop(one.cluster, one.strides, target)
    tile = _choose_tile(one, vector, target)
    packed: tuple[str, ...] = ()
    if vector is not None and one.cluster.has_reuse:
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
    arrays = {**one.arrays, **{p.array.name: p.array for p in packings}}
    copies = [p.array.name for p in packings]
    new = decide_layouts(cluster, vector, width, arrays, one.storages, copies)
    decided = {**one.storages, **{n: new[n] for n in copies}}
    result: list[StoredCluster] = []
    for packing in packings:
        moves = compute_all_strides(packing.copy, arrays, decided)
        own = choose_vector_loop(packing.copy, moves, target)
        # A vector tile as wide as a panel stays inside one.
        wide = 1 if own is None else min(width, packing.copy.extents[own])
        names = list_touched(packing.copy)
        storages = {n: decided[n] for n in names}
        text = spell_cluster(packing.copy, names, arrays)
        crossing, height = None, 1
        if own is not None:
            crossing, height, _ = choose_pointwise_tile(packing.copy, own, moves, arrays, target)
        copied = Parameters(own, (crossing, height, wide))
        result.append(StoredCluster(packing.copy, copied, names, storages, frozenset(), text))
    names = list_touched(cluster)
    storages = {n: new[n] if n in new else decided[n] for n in names}
    text = spell_cluster(cluster, names, arrays) if packings else one.text
    private = one.private.intersection(names)
    result.append(StoredCluster(cluster, parameters, names, storages, private, text, one.key))
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
    layouts = [spell_layouts(decides, s.storages, one.private) for s in stored]
    return layouts[0] == layouts[1]


def _choose_tile(one: OpenCluster, vector: int | None, target: Target) -> Tile:
    cluster, strides, arrays = one.cluster, one.strides, one.arrays
    if vector is None:
        return None, 1, 1
    if any(s.reduction for s in cluster.statements):
        return choose_register_tile(cluster, vector, strides, arrays, target)
    return choose_pointwise_tile(cluster, vector, strides, arrays, target)
