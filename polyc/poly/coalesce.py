"""Unions with few pieces, and isl's coalescing, which fails on some that have many remainders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import islpy as isl


def coalesce(relation: isl.UnionMap) -> isl.UnionMap:
    """The relation with pieces joined where isl can; as it is where isl stops with an error.

    isl 0.27 says "cannot relax redundant constraint" of some. The pairs are the same either way.
    """
    try:
        return relation.coalesce()
    except isl.Error:
        return relation


def unite(parts: Iterable[isl.Set]) -> isl.Set:
    """The union of some sets, in as few pieces as isl finds."""
    return reduce(isl.Set.union, parts).coalesce()
