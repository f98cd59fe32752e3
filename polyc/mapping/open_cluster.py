"""A cluster before its layout is decided: what the cost model, and a search, decide about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from polyc.files.digest import digest
from polyc.mapping.signature import sign_cluster, sign_layouts
from polyc.memory.storage import Storage
from polyc.memory.strides import Strides, accesses, compute_strides
from polyc.names import fresh
from polyc.poly.canonical import Canonical
from polyc.schedule.cluster import Cluster
from polyc.schedule.initial import InitialLoops
from polyc.scop.scop import Array


@dataclass(frozen=True)
class OpenCluster:
    """A cluster whose turn has come: what earlier ones have settled, and nothing of its own.

    `arrays` are those of the whole program so far, `storages` the layouts that are settled of those
    that it touches; no other cluster touches a `private` array.
    """

    cluster: Cluster
    arrays: Mapping[str, Array] = field(repr=False)
    storages: Mapping[str, Storage] = field(repr=False)
    private: frozenset[str]

    @cached_property
    def touched(self) -> tuple[str, ...]:
        """The arrays that the cluster touches, in order of appearance."""
        return list_touched(self.cluster)

    @cached_property
    def nameable(self) -> tuple[str, ...]:
        """The arrays that a schedule may name: those, and a copy that packs each of them."""
        return (*self.touched, *(name_copy(name, self.arrays) for name in self.touched))

    @cached_property
    def named(self) -> InitialLoops:
        """The loops of the cluster, and how directives call them."""
        return InitialLoops((self.cluster,))

    @cached_property
    def strides(self) -> Mapping[str, tuple[Strides, ...]]:
        """The accesses of each statement, as the layouts stand."""
        return compute_all_strides(self.cluster, self.arrays, self.storages)

    @cached_property
    def signature(self) -> Canonical:
        """What the cluster computes, whatever its arrays and statements are called."""
        return sign_cluster(self.cluster, self.touched, self.arrays)

    @cached_property
    def key(self) -> str:
        """What tuned schedules are found by: equal for equal clusters between equal layouts."""
        layouts = sign_layouts(self.touched, self.storages, self.private)
        return digest([repr(self.signature), repr(layouts)])[:32]


def name_copy(name: str, arrays: Mapping[str, Array]) -> str:
    """What the copy that packs an array is called."""
    return fresh(f"{name}_packed", arrays)


def list_touched(cluster: Cluster) -> tuple[str, ...]:
    """The arrays that a cluster touches, in order of appearance."""
    statements = (*cluster.statements, *cluster.prelude)
    return tuple(dict.fromkeys(name for s in statements for name, _, _ in accesses(s)))


def compute_all_strides(
    cluster: Cluster, arrays: Mapping[str, Array], storages: Mapping[str, Storage]
) -> dict[str, tuple[Strides, ...]]:
    """The accesses of each statement; arrays without a storage are free."""
    return {s.name: compute_strides(s, arrays, storages) for s in cluster.statements}
