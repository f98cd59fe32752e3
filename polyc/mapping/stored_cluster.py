"""Clusters of which everything is decided: their schedules, and how arrays lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.reading import Tile, read_rows, read_tile, read_vector
from polyc.memory.storage import Storage
from polyc.poly.canonical import Canonical
from polyc.schedule.cluster import Cluster
from polyc.schedule.initial import InitialLoops
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Scop
from polyc.types.branches import Branches
from polyc.types.ranges import Step


@dataclass(frozen=True)
class StoredCluster:
    """A cluster with its schedule and its layout: how its loops run, and where arrays lie.

    `arrays` lists what the cluster touches in order of appearance; `private` ones are touched by no
    other cluster. `signature` says what the cluster computes. `key` is that of the open cluster,
    empty for a copy that packs; `gain` is what a measured schedule saved, 0 for that of
    the cost model. `given` is the kernel that the schedule was given for, all of which it says.
    """

    cluster: Cluster
    schedule: Schedule
    arrays: tuple[str, ...]
    storages: Mapping[str, Storage]
    private: frozenset[str]
    signature: Canonical = field(repr=False)
    key: str = ""
    gain: float = 0.0
    given: str = ""

    @property
    def step(self) -> Step | None:
        """The loop over steps that the cluster is in."""
        return self.cluster.step

    @property
    def branches(self) -> Branches:
        """Where the cluster is executed, if not in every call."""
        return self.cluster.branches

    @property
    def last(self) -> str:
        """The name of its last statement, which it keeps when its fills become parts themselves."""
        return self.cluster.statements[-1].name

    @cached_property
    def named(self) -> InitialLoops:
        """The loops that the schedule starts from."""
        return InitialLoops((self.cluster,))

    @cached_property
    def vector(self) -> int | None:
        """The shared loop in SIMD lanes."""
        return read_vector(self.schedule, self.named)[0]

    @cached_property
    def tile(self) -> Tile:
        """The register tile."""
        return read_tile(self.schedule, self.named)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The shared loops that run as one for its rows; () if each runs by itself."""
        return read_rows(self.schedule, self.named)


@dataclass(frozen=True)
class Stored:
    """All clusters stored, the scop with the arrays of packed copies, and what was open before."""

    clusters: tuple[StoredCluster, ...]
    scop: Scop
    opened: tuple[OpenCluster, ...]
