"""Layout choice: the storage map of every array, decided together with the vector loops.

A vector loop wants the dimension that it walks to be stored innermost. Clusters are visited in
execution order; each picks the shared loop that the layouts decided so far suit best, and then
decides how the arrays that it writes first, and the constants that it reads, are stored: channels
innermost after a convolution whose weights are re-arranged at compile time, row-major after a
row-wise softmax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import islpy as isl
import numpy as np

from polyc.codegen.lanes import MASKED_BYTES
from polyc.memory.storage import Storage, permuted, row_major
from polyc.poly.affine import box_extents, coefficients, output, outputs, single_aff
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Index, Load, Within, walk
from polyc.scop.scop import Array, Statement
from polyc.target.machine import Target

UNIT, INVARIANT, SCATTERED = 1.0, 0.25, -1.0
"""Worth of an access in a vector loop: one wide load, one broadcast, a load for every lane."""

ALIASING = 1024
LINE = 64
"""Bytes: rows that are multiples of ALIASING apart are moved by one cache line each."""

TRANSPOSED = 0.5
"""An access that is loaded along another loop of the tile, and transposed in registers."""

PACKED = 0.9
"""An operand that is read often may be copied into the order that the vector loop wants."""

OFTEN = 32
"""Uses of each element that make copying it first cheap: a copy costs about as much as two uses."""

LAST = 0.01
"""Between two equal loops: rows are what softmax and norms, which often come next, work on."""

REARRANGED = 1.1
"""A constant is stored as its reader likes it, which beats a layout shared with others."""


@dataclass(frozen=True)
class Strides:
    """How one access moves through memory: elements per step of each iterator, None if irregular.

    `free` marks an array whose layout is still open: any single dimension may become the unit one.
    dimensions[p] is the one dimension of the array that iterator p walks with unit step, if it is
    one; `reuse` is how many instances read each element.
    """

    array: str
    steps: tuple[int | None, ...]
    dimensions: tuple[int | None, ...]
    reuse: int
    free: bool
    is_write: bool
    itemsize: int

    @property
    def is_packable(self) -> bool:
        """Whether the elements are read often enough that copying them first costs little."""
        return not self.is_write and self.reuse >= OFTEN


def accesses(s: Statement) -> Iterator[tuple[str, isl.PwMultiAff, bool]]:
    """(array, S -> A, is_write) of the write and of every load."""
    yield s.array, s.write, True
    for load in s.loads:
        yield load.array, load.index, False


def compute_strides(
    s: Statement, arrays: Mapping[str, Array], storages: Mapping[str, Storage]
) -> tuple[Strides, ...]:
    """The strides of every access of a statement, the write first."""
    result = []
    sizes = box_extents(s.domain)
    data = {id(load.index): _moving(load) for load in s.loads if load.dynamic}
    for array, index, is_write in accesses(s):
        storage = storages.get(array)
        weights = _dimension_strides(arrays[array], storage)
        columns = _columns(index)
        steps = tuple(
            None
            if p in data.get(id(index), ()) or None in column
            else sum(c * w for c, w in zip(column, weights, strict=True) if c is not None)
            for p, column in enumerate(columns)
        )
        walked = tuple(
            d if d is not None and column[d] == 1 else None
            for column, d in zip(columns, map(_moving_dimension, columns), strict=True)
        )
        reuse = prod(n for n, step in zip(sizes, steps, strict=True) if step == 0)
        itemsize = arrays[array].dtype.itemsize
        result.append(Strides(array, steps, walked, reuse, storage is None, is_write, itemsize))
    return tuple(result)


def _moving(load: Load) -> set[int]:
    """The iterators that the coordinates which are data depend on."""
    found: set[int] = set()
    for _, coordinate in load.dynamic:
        for e in walk(coordinate):
            for function in outputs(e.index) if isinstance(e, Load) else ():
                found |= {p for p, c in enumerate(coefficients(function)) if c != 0}
            if isinstance(e, Index):
                found |= {p for p, c in enumerate(coefficients(e.value)) if c != 0}
            if isinstance(e, Within):
                count = e.domain.dim(isl.dim_type.set)
                found |= {p for p in range(count) if e.domain.involves_dims(isl.dim_type.set, p, 1)}
    return found


Column = tuple[int | None, ...]
"""How far one step of an iterator moves in each dimension of an array; None: not by a constant."""


def _columns(index: isl.PwMultiAff) -> list[Column]:
    """The column of each iterator."""
    rows = [coefficients(function) for function in outputs(index)]
    count = index.dim(isl.dim_type.in_)
    return [tuple(row[p] for row in rows) for p in range(count)]


def _moving_dimension(column: Column) -> int | None:
    """The one dimension in which an iterator moves, if it does so by a constant step."""
    moving = [d for d, c in enumerate(column) if c != 0]
    return moving[0] if len(moving) == 1 and column[moving[0]] is not None else None


def _dimension_strides(array: Array, storage: Storage | None) -> list[int]:
    """Elements between neighbours along each logical dimension; 1 everywhere while undecided."""
    if storage is None:
        return [1] * len(array.shape)
    strides, step = [0] * len(array.shape), 1
    for d, size in reversed(storage.blocks):
        strides[d], step = 1, step * size  # inside a block
    for d, extent in reversed(list(zip(storage.permutation, storage.shape, strict=False))):
        strides[d] = strides[d] or step
        step *= extent
    return strides


def worth(strides: Strides, position: int, may_pack: bool = False) -> float:
    """What making `position` the vector loop is worth to an access."""
    step = strides.steps[position]
    if step == 0:
        return INVARIANT
    if step == 1:
        return REARRANGED if strides.free and not strides.is_write else UNIT
    if may_pack and strides.is_packable and strides.dimensions[position] is not None:
        return PACKED
    return SCATTERED


def choose_vector_loop(
    cluster: Cluster, strides: Mapping[str, tuple[Strides, ...]], target: Target
) -> int | None:
    """The shared loop to run in SIMD lanes, or None if loops of the statements' own are better."""
    if cluster.has_reuse and not all(is_whole(s, cluster) for s in cluster.statements):
        return None
    best, best_worth = None, 0.3
    if not (cluster.has_reuse or cluster.is_group):
        best_worth = max(best_worth, _worth_of_rows(cluster, strides))
    for d, loop in enumerate(cluster.shared):
        extent = cluster.extents[d]
        if extent < 2:
            continue
        total = weight = 0.0
        crossing = find_crossing_loop(cluster, d, strides)
        for s in cluster.statements:
            instances = float(np.prod(box_extents(s.domain), dtype=np.float64))
            pack = cluster.has_reuse and s.reduction is not None
            values = [worth(a, loop[s.name], pack) for a in strides[s.name]]
            if values.count(PACKED) > 1:  # nothing would be used again from one tile to the next
                values = [SCATTERED if value == PACKED else value for value in values]
            if crossing is not None:
                steps = [a.steps[cluster.shared[crossing][s.name]] for a in strides[s.name]]
                values = [
                    TRANSPOSED - 0.1 * a.is_write if value == SCATTERED and step == 1 else value
                    for a, value, step in zip(strides[s.name], values, steps, strict=True)
                ]
            total += instances * sum(values) / len(values)
            weight += instances
        filled = _filled(extent, target)
        value = total / weight * (0.5 + 0.5 * filled) + LAST * _is_last(cluster, d)
        if value > best_worth + 1e-9:
            best, best_worth = d, value
    return best


def _filled(extent: int, target: Target) -> float:
    """The share of full vectors in what a loop takes: without masks, 14 lanes are 8, 4 and 2."""
    lanes = target.lanes(np.dtype(np.float32))
    rest = extent % lanes
    pieces = (rest > 0) if target.simd_bytes == MASKED_BYTES else rest.bit_count()
    return extent / lanes / (extent // lanes + pieces)


def _worth_of_rows(cluster: Cluster, strides: Mapping[str, tuple[Strides, ...]]) -> float:
    """What it is worth that each statement runs a loop of its own in SIMD lanes."""
    total = weight = 0.0
    for s in cluster.statements:
        taken = {loop[s.name] for loop in cluster.shared}
        _, value = choose_inner_loop(s, taken, strides[s.name])
        instances = float(np.prod(box_extents(s.domain), dtype=np.float64))
        total += instances * value
        weight += instances
    return total / weight if weight else 0.0


def choose_inner_loop(
    s: Statement, taken: Collection[int], strides: tuple[Strides, ...]
) -> tuple[int | None, float]:
    """(the loop of a statement's own to run in SIMD lanes, its worth); `taken` ones are shared."""
    best, best_worth = None, 0.3
    for p, extent in enumerate(box_extents(s.domain)):
        if p in taken or extent < 4 or not _may_vectorise(s, p, strides):
            continue
        value = sum(worth(a, p) for a in strides) / len(strides)
        if value > best_worth:
            best, best_worth = p, value
    return best, best_worth


def _may_vectorise(s: Statement, p: int, strides: tuple[Strides, ...]) -> bool:
    """Whether a loop of a statement carries nothing but a declared reduction, and may be innermost.

    A reduction keeps its order but for the lanes of a vector: only its last loop may be one.
    """
    written, extents = strides[0], box_extents(s.domain)
    if written.steps[p] == 0:
        later = range(p + 1, len(extents))
        return s.reduction is not None and all(written.steps[q] or extents[q] == 1 for q in later)
    return all(load.array != s.array for load in s.loads)


def _is_last(cluster: Cluster, d: int) -> bool:
    """Whether a loop walks the last dimension of what the cluster computes."""
    s = cluster.statements[-1]
    column = [coefficients(function)[cluster.shared[d][s.name]] for function in outputs(s.write)]
    return bool(column) and column[-1] == 1


def find_crossing_loop(
    cluster: Cluster, vector: int, strides: Mapping[str, tuple[Strides, ...]]
) -> int | None:
    """The shared loop along which a pointwise cluster reads or writes across its vector loop.

    y[i, j] = x[j, i]  with vector loop j:  i. Most accesses that are not along the vector loop have
    unit step there, so that a tile of both loops is loaded in vectors, and transposed.
    """
    if cluster.is_group or any(s.reduction for s in cluster.statements):
        return None
    counts: dict[int, int] = {}
    for s in cluster.statements:
        for access in strides[s.name]:
            if access.steps[cluster.shared[vector][s.name]] in (0, 1):
                continue
            for d, loop in enumerate(cluster.shared):
                if d != vector and cluster.extents[d] > 1 and access.steps[loop[s.name]] == 1:
                    counts[d] = counts.get(d, 0) + 1
    return max(counts, key=counts.__getitem__, default=None)


def is_whole(s: Statement, cluster: Cluster) -> bool:
    """Whether the shared loops are all that a statement iterates over, reductions aside."""
    if s.reduction:
        return True
    positions = {loop[s.name] for loop in cluster.shared}
    sizes = box_extents(s.domain)
    return all(p in positions or n == 1 for p, n in enumerate(sizes))


def decide_layouts(
    cluster: Cluster,
    vector: int | None,
    tile: int,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    packed: Collection[str] = (),
) -> dict[str, Storage]:
    """Storage for the arrays that this cluster is the first to touch; its constants among them.

    With a vector loop, an array that it indexes by one dimension stores that dimension innermost; a
    constant or a `packed` copy that a contraction streams through is moreover cut into panels of
    `tile` elements.
    """
    rearranged = {n for n, a in arrays.items() if a.kind == "constant"} | set(packed)
    decided: dict[str, Storage] = {}
    for s in (*cluster.statements, *cluster.prelude):
        position = None if vector is None else cluster.shared[vector].get(s.name)
        if vector is None and s.reduction:
            taken = {loop[s.name] for loop in cluster.shared}
            position, _ = choose_inner_loop(s, taken, compute_strides(s, arrays, storages))
        for name, index, _ in accesses(s):
            array = arrays[name]
            if name in storages or name in decided:
                continue
            d = None if position is None else _moving_dimension(_columns(index)[position])
            rest = [k for k in range(len(array.shape)) if k != d]
            if d is None or (vector is None and array.kind != "constant"):
                decided[name] = row_major(array)
            elif vector is not None and (
                s.reduction and name in rearranged and _in_panels(index, d, tile)
            ):
                decided[name] = permuted(array, [d, *rest], [(d, tile)])
            else:
                decided[name] = permuted(array, [*rest, d], gap=_gap(array, d))
    return decided


def _gap(array: Array, d: int) -> int:
    """Elements to leave free after each row along d, so that rows do not share a cache set.

    A first-level cache places addresses that differ by 4096 bytes in the same set of 8 or 12 lines.
    A register tile reads the same place of up to 14 rows; if rows are a large power of two apart,
    these lines drive each other out. Constants are read row by row.
    """
    width = array.shape[d] * array.dtype.itemsize
    together = array.kind == "temporary" and len(array.shape) > 1 and width % ALIASING == 0
    return LINE // array.dtype.itemsize if together else 0


def _in_panels(index: isl.PwMultiAff, d: int, tile: int) -> bool:
    """Whether tiles of the vector loop are whole panels of `tile` elements along dimension d.

    W[o, c] is; so is W[48 g + o, c] for a tile of 16, but not for one of 32.
    """
    function = output(index, d)
    aff = single_aff(function)
    if index.dim(isl.dim_type.out) < 2 or aff is None or aff.dim(isl.dim_type.div):
        return False
    start = int(aff.get_constant_val().to_python())
    others = [c or 0 for c in coefficients(function) if c != 1]
    return all(step % tile == 0 for step in [start, *others])
