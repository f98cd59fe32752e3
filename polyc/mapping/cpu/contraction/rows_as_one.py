"""Rows of a tile from several loops: which loops of a contraction run as one, and what it gains.

    y[o, i, j] += w[o, c] * x[c, i, j]       14 rows i of 14 pixels j

    for i: for j in tiles of 5      5 + 5 + 4 pixels, 14 times: every third tile is a smaller one
    for p in tiles of 5             p = 14 i + j: 39 tiles of 5 pixels, and one pixel

A smaller tile reads as many weights as a full one, for fewer products. So where images are small,
their pixels are counted through (`schedule/counting.Collapse`). Where only a call knows how small,
all that are evenly apart are (`mapping/join_rows.py`): they cost nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from math import ceil, prod

from polyc.mapping.join_rows import find_even_rows
from polyc.memory.storage import Storage
from polyc.memory.strides import Strides
from polyc.poly.affine import outputs, plain_iterator
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.costs import DIVIDED

Rows = tuple[int, ...]
"""Shared loops that run as one, outermost first; its rows are those of a tile."""

PAYS = 0.97
"""Of the cost of tiles of one loop, what those of several take at most: they divide for places."""

PAYS_OPEN = 1.02
"""The same where only a call knows the sizes: what is chosen for the hint is called with others."""

POINTERS = 8
"""Rows of a tile whose places are computed so: more pointers do not stay in registers."""


def list_rows_as_one(
    cluster: Cluster,
    vector: int,
    strides: Table[str, tuple[Strides, ...]],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    may_join: bool = True,
) -> list[Rows]:
    """The runs of loops, each ending at the innermost, over the same products of a contraction.

    What is multiplied in lanes stays the same along all of them, and the other operand moves. The
    place of a result is told by them as they are; loops outside of one that is not so run by
    themselves. So do loops outside of one of which only a call knows how often it runs, such as a
    batch of any size, unless all are evenly apart, and may be joined.
    """
    update = next(s for s in cluster.statements if s.reduction)
    loads = strides[update.name][1:]
    lanes = cluster.shared[vector][update.name]
    walked = [a for a in loads if a.steps[lanes] != 0]
    if len(loads) != 2 or len(walked) != 1 or cluster.summed:
        return []
    (other,) = (a for a in loads if a is not walked[0])
    last = cluster.statements[-1]
    written = [plain_iterator(function) for function in outputs(last.write)]
    dimension = {found[0]: k for k, found in enumerate(written) if found is not None}
    placed = strides[last.name][0]

    def outer_first(d: int) -> tuple[int, int]:
        p = cluster.shared[d][last.name]
        return -(0 if placed.free else placed.steps[p] or 0), dimension.get(p, -1)

    loops: list[int] = []
    known = 0  # the first of those behind which all have numbers
    for d in sorted(range(len(cluster.shared)), key=outer_first):
        p = cluster.shared[d][update.name]
        if d == vector or update.exact_extents[p] == 1:
            continue
        if walked[0].steps[p] != 0 or other.steps[p] in (0, None) or p in other.data:
            continue
        loops.append(d)
        if cluster.shared[d][last.name] not in dimension:
            loops.clear()
        if update.exact_extents[p] is None or not loops:
            known = len(loops)
    runs = (tuple(loops[k:]) for k in range(len(loops) - 1))
    return [
        run
        for k, run in enumerate(runs)
        if k >= known or (may_join and find_even_rows(cluster, run, arrays, storages))
    ]


def pays(cost: float, alone: float, cluster: Cluster, rows: Rows) -> bool:
    """Whether tiles of several loops cost less than the best one of one loop, or need not."""
    first = cluster.statements[0]
    sizes = [first.exact_extents[cluster.shared[d][first.name]] for d in rows]
    return cost < (PAYS_OPEN if None in sizes else PAYS) * alone


def count_places(
    cluster: Cluster, rows: Rows, strides: Table[str, tuple[Strides, ...]]
) -> tuple[int, int]:
    """How many accesses have to divide for their places: (in the sum, around it).

    Rows that are evenly apart need no division: 14 i + j pixels of 64 channels each.
    """
    update = next(s for s in cluster.statements if s.reduction)
    inside = sum(
        not _is_even(access, cluster, rows, update.name) for access in strides[update.name][1:]
    )
    around = sum(
        not _is_even(access, cluster, rows, s.name)
        for s in cluster.statements
        if not s.reduction
        for access in strides[s.name]
    )
    return inside, around


def _is_even(access: Strides, cluster: Cluster, rows: Rows, name: str) -> bool:
    """Whether each row is as far from the one before it as any other."""
    steps = [access.steps[cluster.shared[d][name]] for d in rows]
    if access.free or not any(steps):
        return True
    extents = [cluster.extents[d] for d in rows]
    inner = steps[-1]
    return inner is not None and all(
        step == inner * prod(extents[k + 1 :]) for k, step in enumerate(steps)
    )


def price_places(height: int, width: int, taps: int, places: tuple[int, int]) -> float | None:
    """What these divisions add to the price of a product; None for too many pointers."""
    inside, around = places
    if inside and height > POINTERS:
        return None
    return DIVIDED * (inside + around) / (width * taps)


def spread_rows(rows: Rows, height: int, extents: Sequence[int]) -> dict[int, int]:
    """About how much of each loop a tile of so many rows covers: of 7 x 7, 25 are 4 whole rows."""
    sizes = {}
    for d in reversed(rows):
        sizes[d] = min(height, extents[d])
        height = ceil(height / extents[d])
    return sizes


def keeps_together(order: Sequence[int], rows: Rows) -> bool:
    """Whether these loops are directly inside one another."""
    return not rows or max(map(order.index, rows)) - min(map(order.index, rows)) < len(rows)
