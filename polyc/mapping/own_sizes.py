"""A kernel in terms of the sizes that it depends on, out of all that a model has.

    sizes of the model   h >= 3, r = floor(h/2), q = floor(r/2), a = q*w, …: dozens of a network
    two statements       S[i] : 0 <= i < r and r >= 1     T[i] : 0 <= i < q and q >= 0
    one kernel of both   S[i] : 0 <= i < r and r >= 1 and 2q <= r <= 2q + 1, and the same of T

Each step behind this one, from dependences to the proof, then works with sets of a few parameters,
and knows how they are related. What is left of the conditions follows from them, so that a kernel
is made for more sizes than a model may have; that it does the same for those that it has,
`analysis/same_values.check_own_sizes` proves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from polyc.mapping.stored_kernel import StoredKernel
from polyc.poly.parameters import assumed_of
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.scop.sizes import bare_of, list_sizes
from polyc.types.ranges import assumed_ranges
from polyc.types.sizes import names_in


def by_own_sizes(stored: StoredKernel, arrays: Mapping[str, Array]) -> tuple[StoredKernel, isl.Set]:
    """The kernel, and what it takes for granted of its sizes: a set of parameters."""
    if not assumed_ranges():
        return stored, isl.Set("{ : }")
    bare = {s.name: bare_of(s) for s in stored.statements}
    shapes = [storage.shape for storage in stored.storages.values()]
    shapes += [arrays[name].shape for name in stored.arrays]
    names = {name for s in bare.values() for name in list_sizes(s)}.union(*map(names_in, shapes))
    known = assumed_of(frozenset(names))
    own = {
        name: replace(s, domain=s.domain.intersect_params(known).coalesce())
        for name, s in bare.items()
    }

    def change(cluster: Cluster) -> Cluster:
        prelude = tuple(own[s.name] for s in cluster.prelude)
        return replace(
            cluster, prelude=prelude, statements=tuple(own[s.name] for s in cluster.statements)
        )

    parts = (replace(one, cluster=change(one.cluster)) for one in stored.parts)
    return replace(stored, parts=tuple(parts)), known
