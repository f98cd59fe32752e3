"""Nodes in an order in which each stands behind those that it needs."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence


def sort_stably(needed: Sequence[Collection[int]]) -> list[int]:
    """Positions, each behind those that it needs; else as they were.

    Those that go in circles, and all that need them, are left out.

        0 needs 2, 1 needs nothing, 2 needs nothing   ->   1, 2, 0
    """
    readers: list[list[int]] = [[] for _ in needed]
    missing = [len(before) for before in needed]
    for position, before in enumerate(needed):
        for k in before:
            readers[k].append(position)
    ready = [position for position, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for reader in readers[order[-1]]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    return order
