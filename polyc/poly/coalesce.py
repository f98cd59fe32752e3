"""isl's coalescing, which fails on a few unions that have many equations with remainders."""

from __future__ import annotations

import islpy as isl


def coalesce(relation: isl.UnionMap) -> isl.UnionMap:
    """The relation with pieces joined where isl can; as it is where isl stops with an error.

    isl 0.27 says "cannot relax redundant constraint" of some. The pairs are the same either way.
    """
    try:
        return relation.coalesce()
    except isl.Error:
        return relation
