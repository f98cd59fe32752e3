"""What a strategy for a GPU makes of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import islpy as isl

from polyc.loopnest.nodes import Swizzle
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array


@dataclass(frozen=True)
class Mapped:
    """A cluster in the coordinates of its kernel, and the schedule tree that executes it.

    arrays: those that the strategy made; private: arrays that nobody outside of the kernel touches.
    threads: of a block. schedule: one line for a human. storages: of the arrays that it made and
    that are not row-major; swizzles: of those in shared memory; folds: of those whose copies go
    ahead of their use, the dimension that counts them -> how many are there at a time.
    """

    cluster: Cluster
    arrays: Mapping[str, Array]
    private: frozenset[str]
    tree: isl.Schedule
    threads: int
    schedule: str
    storages: Mapping[str, Storage] = field(default_factory=dict)
    swizzles: Mapping[str, Swizzle | None] = field(default_factory=dict)
    folds: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def private_of(cluster: Cluster, private: Collection[str], made: Collection[str]) -> frozenset[str]:
    """The private arrays of a cluster some of whose arrays have been replaced."""
    touched = {name for s in cluster.statements for name, _, _ in accesses(s)}
    return frozenset((*private, *made)) & touched
