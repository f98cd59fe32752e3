"""Clusters as text in which names are positions: equal texts mean equal code, in any model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from polyc.memory.storage import Storage
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import show
from polyc.scop.scop import Array


def spell_cluster(cluster: Cluster, touched: Sequence[str], arrays: Mapping[str, Array]) -> str:
    """Domains, accesses, expressions and arrays; everything but layouts.

    The arrays touched become @0, @1, …, the statements #0, #1, …
    """
    statements = (*cluster.prelude, *cluster.statements)
    names = {name: f"@{k}" for k, name in enumerate(touched)}
    names |= {s.name: f"#{k}" for k, s in enumerate(statements)}
    parts = [f"{len(cluster.prelude)} {cluster.has_reuse} {cluster.is_group}"]
    for loop in cluster.shared:
        parts.append(" ".join(f"{s} {p}" for s, p in loop.items()))
    for s in statements:
        parts += [str(s.domain), f"{s.array} {s.reduction}", str(s.write), show(s.value)]
        parts.append(" ".join(f"{load.index} {load.dtype}" for load in s.loads))
    for name in touched:
        array = arrays[name]
        constant = array.kind if array.kind == "constant" else ""
        parts.append(f"{array.dtype} {array.shape} {constant}")
    return re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), "\n".join(parts))


def spell_layouts(
    touched: Sequence[str], storages: Mapping[str, Storage], private: frozenset[str]
) -> str:
    """How the arrays are stored, "open" for one that is not decided, and which are private."""
    parts = []
    for name in touched:
        storage = storages.get(name)
        layout = "open"
        if storage is not None:
            layout = f"{storage.permutation} {storage.blocks} {storage.shape}"
        parts.append(f"{layout} {name in private}")
    return "\n".join(parts)
