"""Layout choice: the storage map of every array, decided together with the vector loops.

A vector loop wants the dimension that it walks to be stored innermost. Clusters are visited in
execution order; each picks the shared loop that the layouts decided so far suit best, and then
decides how the arrays that it writes first, and the constants that it reads, are stored: channels
innermost after a convolution whose weights are re-arranged at compile time, row-major after a
row-wise softmax.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import islpy as isl

from polyc.mapping.cpu.vector_loop import choose_inner_loop
from polyc.mapping.reading import Grouped
from polyc.memory.storage import Storage, permuted, row_major
from polyc.memory.strides import accesses, compute_strides
from polyc.poly.affine import coefficients, columns_of, moving_dimension, output, single_aff
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.types.estimate import estimate
from polyc.types.sizes import Size

ALIASING = 1024
LINE = 64
"""Bytes: rows that are multiples of ALIASING apart are moved by one cache line each."""

MANY_ROWS = 8
"""Lines that a set of a first-level cache has room for: that many rows drive each other out."""


def decide_layouts(
    cluster: Cluster,
    vector: int | None,
    tile: int,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    packed: Collection[str] = (),
    grouped: Grouped | None = None,
) -> dict[str, Storage]:
    """Storage for the arrays that this cluster is the first to touch; its constants among them.

    With a vector loop, an array that it indexes by one dimension stores that dimension innermost,
    and so does a result that rows are written across to, as by a norm between transpositions; a
    constant or a `packed` copy that a contraction streams through is moreover cut into panels of
    `tile` elements. What an instruction takes together in a lane lies together there:
    W[k, j]  ->  place j / tile, k / 4, j mod tile, k mod 4.
    """
    decided: dict[str, Storage] = {}
    for s in (*cluster.statements, *cluster.prelude):
        position = None if vector is None else cluster.shared[vector].get(s.name)
        across = vector is None and _is_across(cluster, s, arrays)
        if vector is None and (s.reduction or across):
            taken = cluster.shared_positions(s)
            position, _ = choose_inner_loop(s, taken, compute_strides(s, arrays, storages))
        for name, index, is_write in accesses(s):
            array = arrays[name]
            if name in storages or name in decided:
                continue
            rearranged = array.kind == "constant" or name in packed
            d = None if position is None else moving_dimension(columns_of(index)[position])
            rest = [k for k in range(len(array.shape)) if k != d]
            inner = _group(s, index, d, grouped)
            if d is None and inner:
                ((g, _),) = inner
                others = [k for k in rest if k != g]
                decided[name] = permuted(array, [*others, g], gap=_gap(array, g))
            elif d is None or (vector is None and not rearranged and not (across and is_write)):
                decided[name] = row_major(array)
            elif vector is not None and (
                s.reduction
                and rearranged
                and not isinstance(array.shape[d], Size)
                and _in_panels(s, index, d, position, tile)
            ):
                summed = _summed_last(s, cluster, index, rest)
                decided[name] = permuted(array, [d, *summed], [(d, tile), *inner])
            else:
                is_walked = s.reduction is not None and _is_summed(s, cluster, index, rest)
                decided[name] = permuted(array, [*rest, d], gap=_gap(array, d, is_walked))
    return decided


def follow_order(
    cluster: Cluster,
    order: Sequence[int],
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> dict[str, Storage]:
    """The storages with panels of constants in the order in which the shared loops go through them.

        U[a, b, o, c], loops a, b, o, o in panels    ->   places a, b, o / tile, c, o mod tile
                       loops a, o, b                 ->   a, o / tile, b, c, o mod tile

    What is read once then lies in one run, and is there before it is asked for: 256 x 256 weights
    at 30 points, for 6 rows, take 320 us instead of 381 from memory (Zen 4).
    """
    found = dict(storages)
    for s in cluster.statements:
        if not s.reduction:
            continue
        walked = {cluster.shared[d][s.name]: k for k, d in enumerate(order)}
        for name, index, _ in accesses(s):
            storage = storages[name]
            if arrays[name].kind != "constant" or not storage.blocks:
                continue
            columns = columns_of(index)
            depth = {
                d: min((k for p, k in walked.items() if columns[p][d] != 0), default=len(order))
                for d in storage.permutation
            }
            walk = sorted(storage.permutation, key=depth.__getitem__)
            found[name] = permuted(arrays[name], walk, storage.blocks)
    return found


def _is_across(cluster: Cluster, s: Statement, arrays: Mapping[str, Array]) -> bool:
    """Whether a statement writes rows, and what lies together in a row-major result are others."""
    rank = len(arrays[s.array].shape)
    if s.reduction or arrays[s.array].kind != "temporary" or rank < 2:
        return False
    shared = cluster.shared_positions(s)
    return all(p in shared for p, column in enumerate(s.columns[0]) if column[-1] != 0)


def _summed_last(
    s: Statement, cluster: Cluster, index: isl.PwMultiAff, dimensions: Sequence[int]
) -> list[int]:
    """The dimensions that the sum of a tile walks behind the others, in the order in which it does:
    it then reads one long run.

    W[c, o, a, b] of a transposed convolution, o in panels: places o / tile, a, b, c, o mod tile.
    W[o, c, r, q] whose sum has c innermost, for an instruction: o / tile, r, q, c / 2, o mod tile,
    c mod 2.
    """
    shared = cluster.shared_positions(s)
    columns = columns_of(index)
    innermost = {-1: -1}  # by dimension: the loop of the sum that walks it; -1: only others do
    for before, k in pairwise((-1, *dimensions)):
        moving = [p for p, column in enumerate(columns) if column[k] != 0]
        summed = max((p for p in moving if p not in shared), default=-1)
        innermost[k] = summed if moving else innermost[before]  # of one element: where it stands
    return sorted(dimensions, key=lambda k: innermost[k])


def _group(
    s: Statement, index: isl.PwMultiAff, panel: int | None, grouped: Grouped | None
) -> list[tuple[int, int]]:
    """The dimension, besides that of the panels, that the grouped loop of a statement walks."""
    if grouped is None or grouped.statement != s.name:
        return []
    d = moving_dimension(columns_of(index)[grouped.position])
    return [] if d is None or d == panel else [(d, grouped.size)]


def _is_summed(
    s: Statement, cluster: Cluster, index: isl.PwMultiAff, dimensions: Sequence[int]
) -> bool:
    """Whether a sum goes through many rows: along the last of some dimensions, one by one."""
    if not dimensions:
        return False
    shared, sizes = cluster.shared_positions(s), s.estimated_extents
    steps = [column[dimensions[-1]] for column in columns_of(index)]
    return any(
        step == 1 and n >= MANY_ROWS and p not in shared
        for p, (step, n) in enumerate(zip(steps, sizes, strict=True))
    )


def _gap(array: Array, d: int, is_walked: bool = False) -> int:
    """Elements to leave free after each row along d, so that rows do not share a cache set.

    A first-level cache places addresses that differ by 4096 bytes in the same set of 8 or 12 lines.
    A register tile reads the same place of up to 14 rows; if rows are a large power of two apart,
    these lines drive each other out. Constants are read row by row. So far apart rows are in some
    calls where a call says how long they are: attention of 1024 tokens takes 0.7 of the time with
    gaps (Zen 3).
    is_walked: a sum goes through many of the rows.
    """
    width = estimate(array.shape[d]) * array.dtype.itemsize
    far = width % ALIASING == 0 or (is_walked and isinstance(array.shape[d], Size))
    together = array.kind == "temporary" and len(array.shape) > 1 and far
    return LINE // array.dtype.itemsize if together else 0


def _in_panels(
    s: Statement, index: isl.PwMultiAff, d: int, position: int | None, tile: int
) -> bool:
    """Whether tiles of the vector loop are whole panels of `tile` elements along dimension d.

    W[o, c] is; so is W[48 g + o, c] for a tile of 16, but not for one of 32. x[x + q] is none.
    """
    function = output(index, d)
    aff = single_aff(function)
    if index.dim(isl.dim_type.out) < 2 or aff is None or aff.dim(isl.dim_type.div):
        return False
    start = int(aff.get_constant_val().to_python())
    steps, sizes = coefficients(function), s.estimated_extents
    others = [c or 0 for p, c in enumerate(steps) if p != position and sizes[p] > 1]
    own = position is None or steps[position] == 1
    return own and all(step % tile == 0 for step in [start, *others])
