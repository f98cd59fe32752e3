"""Things in groups that have nothing in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def group_by_shared(items: Iterable[tuple[T, frozenset[K]]]) -> list[tuple[list[T], frozenset[K]]]:
    """Items with what each depends on, in groups of which no two depend on the same.

    a: {h}, b: {w}, c: {h, n}   ->   [b]: {w} and [a, c]: {h, n}
    """
    groups: dict[int, tuple[list[T], frozenset[K]]] = {}
    group_of: dict[K, int] = {}
    for number, (item, own) in enumerate(items):
        met = [groups.pop(k) for k in sorted({group_of[key] for key in own if key in group_of})]
        members = [member for some, _ in met for member in some]
        shared = own.union(*(keys for _, keys in met))
        groups[number] = [*members, item], shared
        group_of.update(dict.fromkeys(shared, number))
    return list(groups.values())
