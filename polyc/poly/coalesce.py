"""Unions with few pieces, and isl's coalescing, which fails on some that have many remainders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import islpy as isl

from polyc.poly.remember import Plain


def coalesce(relation: isl.UnionMap) -> isl.UnionMap:
    """The relation with pieces joined where isl can; as it is where isl stops with an error.

    isl 0.27 says "cannot relax redundant constraint" of some. The pairs are the same either way.
    """
    try:
        return relation.coalesce()
    except isl.Error:
        return relation


def unite(parts: Iterable[isl.Set]) -> isl.Set:
    """The union of some sets, in as few pieces as isl finds.

    What several accesses touch alike is one piece from the start, and pieces are joined once.
    """
    return reduce(isl.Set.union, (key.value for key in dict.fromkeys(map(Plain, parts)))).coalesce()
