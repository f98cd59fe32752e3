"""The vector loop of a cluster: the loop that most accesses walk with unit step.

It is a loop that all statements share, or each statement runs one of its own in SIMD lanes: the
terms of its reduction, the elements of its row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import islpy as isl
import numpy as np

from polyc.memory.strides import Strides
from polyc.schedule.cluster import Cluster
from polyc.scop.accesses import write_map
from polyc.scop.scop import ORDERLESS, Statement
from polyc.target.machine import Target

UNIT, INVARIANT, SCATTERED = 1.0, 0.25, -1.0
"""Worth of an access in a vector loop: one wide load, one broadcast, a load for every lane."""

SECOND = 0.5
"""Every second element: two loads and a shuffle."""

BY_DATA = -3.0
"""A load for every lane from where data says, computed and checked for each: rows do it once."""

SCATTERED_STORE = -8.0
"""A store for every lane, each with the lane's extraction: no instruction does it at once."""

ALONE = -24.0
"""The same of a contraction's results, of which no square is transposed in registers: 16 take as
long as 27 multiply-adds of vectors (Zen 4: 64 terms, 13 rows of 2 vectors), and no idle lane does.
"""

REPEATED = 0.75
"""Each element in several lanes: a part of a load, and a shuffle."""

TRANSPOSED = 0.5
"""An access that is loaded along another loop of the tile, and transposed in registers."""

PACKED = 0.9
"""An operand that is read often may be copied into the order that the vector loop wants."""

LAST = 0.01
"""Between two equal loops: rows are what softmax and norms, which often come next, work on."""

LEAST_WORTH = 0.3
"""Of an access, on average, that it takes to run a loop in lanes at all."""

REARRANGED = 1.1
"""A constant is stored as its reader likes it, which beats a layout shared with others."""


def worth(strides: Strides, position: int, may_pack: bool = False, windows: bool = False) -> float:
    """What making `position` the vector loop is worth to an access.

    windows: they may be packed, too.
    """
    step = strides.steps[position]
    if step == 0:
        return INVARIANT
    if step == 1:
        return REARRANGED if strides.free and not strides.is_write else UNIT
    if position in strides.repeats:
        return REPEATED
    packable = strides.is_packable or (windows and strides.is_window)
    if may_pack and packable and strides.dimensions[position] is not None:
        return PACKED
    if strides.is_write:
        return SCATTERED_STORE
    return SECOND if step == 2 else SCATTERED


def _list_worths(
    strides: tuple[Strides, ...], position: int, may_pack: bool, windows: bool = False
) -> list[float]:
    """What making `position` the vector loop is worth to each access of a statement."""
    values = [worth(a, position, may_pack, windows) for a in strides]
    # Copies pay where what stays in a register meets them again: not if there is a second one, nor
    # if all of it moves, as in a batch of products of which each has its own factors.
    if values.count(PACKED) > 1 or INVARIANT not in values:
        values = [SCATTERED if value == PACKED else value for value in values]
    return values


def choose_vector_loop(
    cluster: Cluster, strides: Mapping[str, tuple[Strides, ...]], target: Target
) -> int | None:
    """The shared loop to run in SIMD lanes, or None if loops of the statements' own are better.

    A contraction that has none otherwise may copy what windows read.
    """
    if cluster.has_reuse and not all(is_whole(s, cluster) for s in cluster.statements):
        return None
    found = _choose_vector_loop(cluster, strides, target, windows=False)
    if found is None and cluster.has_reuse:
        return _choose_vector_loop(cluster, strides, target, windows=True)
    return found


def _choose_vector_loop(
    cluster: Cluster, strides: Mapping[str, tuple[Strides, ...]], target: Target, windows: bool
) -> int | None:
    best, best_worth, most_apart = None, float("-inf"), float("inf")
    if not (cluster.has_reuse or cluster.is_group):
        worth_of_rows, apart = _worth_of_rows(cluster, strides)
        if worth_of_rows > LEAST_WORTH:
            best_worth, most_apart = worth_of_rows, apart
    has_rows = best_worth > LEAST_WORTH
    pointwise = not cluster.is_group and not any(s.reduction for s in cluster.statements)
    for d, loop in enumerate(cluster.shared):
        extent = cluster.extents[d]
        if extent < 2 or (cluster.has_reuse and _is_by_data(cluster, d, strides)):
            continue
        total = weight = apart = 0.0
        crossing = find_crossing_loop(cluster, d, strides)
        first = cluster.statements[0]
        filled = _filled(extent, target, first.exact_extents[loop[first.name]] is not None)
        for s in cluster.statements:
            instances = float(np.prod(s.estimated_extents, dtype=np.float64))
            pack = cluster.has_reuse and s.reduction is not None
            values = _list_worths(strides[s.name], loop[s.name], pack, windows)
            if has_rows:
                values = [
                    BY_DATA if loop[s.name] in a.data else value
                    for a, value in zip(strides[s.name], values, strict=True)
                ]
            if pointwise:  # loaded once, before the loop: no worse than a vector
                values = [UNIT if value == INVARIANT else value for value in values]
            if crossing is not None:  # of rows that data picks one by one no square is transposed
                across = cluster.shared[crossing][s.name]
                values = [
                    TRANSPOSED - 0.1 * a.is_write
                    if value < 0 and a.steps[across] == 1 and loop[s.name] not in a.data
                    else value
                    for a, value in zip(strides[s.name], values, strict=True)
                ]
            total += instances * sum(values) / len(values)
            weight += instances
            apart += instances * sum(value < 0 for value in values)
        if apart > most_apart:
            continue  # a load for every lane: many lines, where rows read few
        value = total / weight * (0.5 + 0.5 * filled) + LAST * _is_last(cluster, d)
        if value <= LEAST_WORTH:
            continue
        if cluster.has_reuse:  # decides between loops, and not whether to take one
            value += filled * _worth_of_alone(cluster, d, strides, target) / weight
        if value > best_worth + 1e-9:
            best, best_worth = d, value
    return best


def _is_by_data(cluster: Cluster, d: int, strides: Mapping[str, tuple[Strides, ...]]) -> bool:
    """Whether a contraction would take an element from wherever data says in each lane."""
    return any(
        cluster.shared[d][s.name] in access.data
        for s in cluster.statements
        for access in strides[s.name]
    )


def _worth_of_alone(
    cluster: Cluster, d: int, strides: Mapping[str, tuple[Strides, ...]], target: Target
) -> float:
    """What results of a contraction are worth less that are stored alone, lane by lane along d."""
    less = 0.0
    for s in cluster.statements:
        written, where = strides[s.name][0], cluster.shared[d][s.name]
        is_scattered = worth(written, where) == SCATTERED_STORE
        if is_scattered and not _can_transpose(cluster, d, s, strides, target):
            instances = float(np.prod(s.estimated_extents, dtype=np.float64))
            less += instances * (ALONE - SCATTERED_STORE) / len(strides[s.name])
    return less


def _can_transpose(
    cluster: Cluster,
    d: int,
    s: Statement,
    strides: Mapping[str, tuple[Strides, ...]],
    target: Target,
) -> bool:
    """Whether a loop can be unrolled in which results lie side by side that are lanes along d.

    y[o, x] = sum of w[o, c] a[x, c]:  vectors along o are used again for each x. So squares of o
    and x are transposed. A pool loads as much whatever is unrolled.
    """
    along = _find_run(cluster, d, s, strides[s.name][0], target.lanes(np.dtype(np.float32)))
    for of in (of for of in cluster.statements if of.reduction):
        read = [a.steps for a in strides[of.name][1:] if a.array != of.array]
        lanes = [steps for steps in read if steps[cluster.shared[d][of.name]] != 0]
        unrolled = [cluster.shared[e][of.name] for e in along]
        is_used_again = any(steps[p] == 0 for steps in lanes for p in unrolled)
        if not (is_used_again or (unrolled and len(read) == 1)):
            return False
    return True


def _find_run(cluster: Cluster, d: int, s: Statement, written: Strides, lanes: int) -> list[int]:
    """The loops besides d that walk what is written side by side, for the lanes of a vector."""
    run: list[int] = []
    length = 1
    while length < lanes:
        others = (e for e in range(len(cluster.shared)) if e != d and cluster.extents[e] > 1)
        found = next(
            (e for e in others if written.steps[cluster.shared[e][s.name]] == length), None
        )
        if found is None:
            break
        run.append(found)
        length *= cluster.extents[found]
    return run


def _filled(extent: int, target: Target, is_known: bool) -> float:
    """The share of full vectors in what a loop takes: without masks, 14 lanes are 8, 4 and 2.

    Calls of other sizes leave half a vector, on average.
    """
    lanes = target.lanes(np.dtype(np.float32))
    if not is_known:
        return extent / (extent + lanes / 2)
    rest = extent % lanes
    pieces = (rest > 0) if target.vectors.masked else rest.bit_count()
    return extent / lanes / (extent // lanes + pieces)


def _worth_of_rows(
    cluster: Cluster, strides: Mapping[str, tuple[Strides, ...]]
) -> tuple[float, float]:
    """What it is worth that each statement runs a loop of its own in SIMD lanes; and how often an
    element is accessed by itself then."""
    total = weight = apart = 0.0
    for s in cluster.statements:
        taken = cluster.shared_positions(s)
        own, value = choose_inner_loop(s, taken, strides[s.name], may_pack=True)
        instances = float(np.prod(s.estimated_extents, dtype=np.float64))
        total += instances * value
        weight += instances
        values = [] if own is None else _list_worths(strides[s.name], own, may_pack=False)
        alone = len(strides[s.name]) if own is None else sum(value < 0 for value in values)
        apart += instances * alone
    return total / weight if weight else 0.0, apart


def choose_inner_loop(
    s: Statement, taken: Collection[int], strides: tuple[Strides, ...], may_pack: bool = False
) -> tuple[int | None, float]:
    """(the loop of a statement's own to run in SIMD lanes, its worth); `taken` ones are shared.

    may_pack: operands of a reduction that are read often may still be copied first.
    """
    pack = may_pack and s.reduction is not None
    best, best_worth = None, LEAST_WORTH
    for p, extent in enumerate(s.estimated_extents):
        if p in taken or extent < 4 or not _may_vectorise(s, p, strides):
            continue
        value = sum(_list_worths(strides, p, pack)) / len(strides)
        if value > best_worth:
            best, best_worth = p, value
    return best, best_worth


def _may_vectorise(s: Statement, p: int, strides: tuple[Strides, ...]) -> bool:
    """Whether a loop of a statement carries nothing but a declared reduction, and may be innermost.

    A sum keeps its order but for the lanes of a vector: only its last loop may be one. A largest
    element is the same in any order.
    """
    written, extents = strides[0], s.exact_extents
    if written.steps[p] == 0 and s.reduction not in ORDERLESS:
        later = range(p + 1, len(extents))
        return s.reduction is not None and all(written.steps[q] or extents[q] == 1 for q in later)
    if all(load.array != s.array for load in s.loads):
        return True
    return p == len(extents) - 1 and not carries(s, p)


def carries(s: Statement, p: int) -> bool:
    """Whether a loop carries what a statement writes to where it reads, the loops around it fixed.

    c[i] = c[i] or (not c[j] and …), for j < i    carries nothing along i: no c[j] is written there
    """
    same = isl.Map.universe(s.domain.space.map_from_set())
    for k in range(len(s.iterators)):
        if k != p:
            same = same.equate(isl.dim_type.in_, k, isl.dim_type.out, k)
    writes = write_map(s)
    for load in (load for load in s.loads if load.array == s.array):
        if load.dynamic:
            return True
        met = writes.apply_range(load.index.as_map().intersect_domain(s.domain).reverse())
        met = met.intersect(same)
        if not met.subtract(isl.Map.identity(met.space)).is_empty():
            return True
    return False


def _is_last(cluster: Cluster, d: int) -> bool:
    """Whether a loop walks the last dimension of what the cluster computes."""
    s = cluster.statements[-1]
    column = s.columns[0][cluster.shared[d][s.name]]
    return bool(column) and column[-1] == 1


def find_crossing_loop(
    cluster: Cluster, vector: int, strides: Mapping[str, tuple[Strides, ...]]
) -> int | None:
    """The shared loop along which a pointwise cluster reads or writes across its vector loop.

    y[i, j] = x[j, i]  with vector loop j:  i. Most accesses that are not along the vector loop have
    unit step there, so that a tile of both loops is loaded in vectors, and transposed. None where
    no access is along the vector loop: there would be nothing that the others disagree with.
    """
    if cluster.is_group or any(s.reduction for s in cluster.statements):
        return None
    counts: dict[int, int] = {}
    is_along = False
    for s in cluster.statements:
        for access in strides[s.name]:
            step = access.steps[cluster.shared[vector][s.name]]
            is_along |= step == 1
            if step in (0, 1):
                continue
            for d, loop in enumerate(cluster.shared):
                if d != vector and cluster.extents[d] > 1 and access.steps[loop[s.name]] == 1:
                    counts[d] = counts.get(d, 0) + 1
    return max(counts, key=counts.__getitem__, default=None) if is_along else None


def is_whole(s: Statement, cluster: Cluster) -> bool:
    """Whether the shared loops are all that a statement iterates over, reductions aside."""
    if s.reduction:
        return True
    positions = cluster.shared_positions(s) | cluster.summed_positions(s)
    return all(p in positions or n == 1 for p, n in enumerate(s.exact_extents))
