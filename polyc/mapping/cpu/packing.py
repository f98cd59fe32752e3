"""Packing: operands of a contraction copied once into the order in which its tiles read them.

    C[i, j] += A[i, k] * B[k, j]         B row-major, j in vectors of a tile of 48
    ->
    Bp[k, j] = B[k, j]                   stored [j/48][k][j mod 48]
    C[i, j] += A[i, k] * Bp[k, j]

The copy is a statement like any other; that it is stored in panels is its storage map. It pays
where an operand is read many times over (each panel once for each tile of rows), and is either
scattered along the vector loop, or so far apart from row to row that every row is another page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.steps import in_any_step
from polyc.mapping.cpu.vector_loop import choose_inner_loop
from polyc.mapping.open_cluster import name_copy
from polyc.memory.strides import Strides
from polyc.poly.affine import moves
from polyc.schedule.cluster import Cluster
from polyc.scop.accesses import read_map
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Statement

FAR = 1024
"""Bytes between consecutive rows of a panel from which on it is packed: a quarter of a page."""

ROWS = 64
"""Rows of a panel below which it stays in the first-level cache wherever it lies."""


@dataclass(frozen=True)
class Packing:
    """The array that a cluster reads instead of another, and the cluster that copies to it.

    starts: the first index that is copied along each dimension.
    """

    array: Array
    copy: Cluster
    starts: tuple[int, ...]

    def place(self, space: str) -> isl.PwMultiAff:
        """Where an element, by what it is called in `space`, lies in the copy."""
        return _shift(space, self.array.name, self.starts)


def _shift(space: str, array: str, starts: Sequence[int]) -> isl.PwMultiAff:
    """{ space[i0, i1] -> array[i0 - start, i1 - start] }"""
    indices = ", ".join(f"i{k}" for k in range(len(starts)))
    moved = ", ".join(f"i{k} - {start}" for k, start in enumerate(starts))
    return isl.PwMultiAff(f"{{ {space}[{indices}] -> {array}[{moved}] }}")


def find_operands(
    cluster: Cluster, vector: int | None, strides: Mapping[str, tuple[Strides, ...]], height: int
) -> tuple[str, ...]:
    """The arrays that reductions should read through a packed copy.

    Without a shared vector loop each reduction runs a loop of its own in SIMD lanes: what it reads
    across that loop, a row of a matrix with few columns say, is packed.

    A copy has panels along the dimension in which the lanes move. Data adds to a coordinate that is
    stored by itself, so that what it says in that dimension is read where it is.
    """
    if cluster.is_group or (vector is not None and not cluster.has_reuse):
        return ()
    written = {s.array for s in (*cluster.prelude, *cluster.statements)}
    found = []
    for update in (s for s in cluster.statements if s.reduction):
        parallel = cluster.shared_positions(update)
        if vector is not None:
            position: int | None = cluster.shared[vector][update.name]
        else:
            own = strides[update.name]
            position, _ = choose_inner_loop(update, parallel, own, may_pack=True)
        if position is None:
            continue
        by_data = {(load.array, d) for load in update.loads for d, _ in load.dynamic}
        for access in strides[update.name][1:]:
            along = access.dimensions[position]
            if access.free or access.array in written or along is None:
                continue
            if (access.array, along) in by_data:
                continue
            alone = access.is_window and access.steps[position] not in (0, 1, 2)
            if not access.is_packable and (vector is None or not alone):
                continue
            far = vector is not None and _is_far(access, update, parallel, height)
            if access.steps[position] != 1 or far:
                found.append(access.array)
    return tuple(dict.fromkeys(found))


def _is_far(access: Strides, update: Statement, parallel: Collection[int], height: int) -> bool:
    """Whether rows of a panel lie far apart, and the panel is read for many tiles of `height`."""
    sizes = update.estimated_extents
    far = any(
        sizes[p] >= ROWS and (step is None or abs(step) * access.itemsize >= FAR)
        for p, step in enumerate(access.steps)
        if p not in parallel and step != 0
    )
    return far and access.reuse >= 4 * height


def pack(
    cluster: Cluster, names: tuple[str, ...], arrays: Mapping[str, Array], vector: int | None = None
) -> tuple[Cluster, tuple[Packing, ...]]:
    """The cluster reading packed copies of some arrays, and the copies.

    vector: the shared loop in SIMD lanes. Of an array that a sum reads in several ways, what moves
    with the lanes is copied, and the rest is read where it is: one layout does not suit both.

        C[i, j] += A[i, k] * A[j, n + k]   ->   C[i, j] += A[i, k] * Ap[j, n + k]   lanes along j
    """
    read = {name: _find_loads(cluster, name, vector) for name in names}
    packings = tuple(_make_copy(cluster, name, read[name], arrays) for name in names)
    table = {
        id(load.index): p for name, p in zip(names, packings, strict=True) for _, load in read[name]
    }

    def leaf(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or id(expr.index) not in table:
            return expr
        name = table[id(expr.index)].array.name
        moved = table[id(expr.index)].place(expr.array)
        return replace(expr, array=name, index=moved.pullback_pw_multi_aff(expr.index))

    statements = tuple(
        replace(s, value=rebuild(s.value, leaf)) if s.reduction else s for s in cluster.statements
    )
    return replace(cluster, statements=statements), packings


def _find_loads(cluster: Cluster, name: str, vector: int | None) -> list[tuple[Statement, Load]]:
    """What sums read of an array: in lanes, if any of it is."""
    found = [
        (s, load, columns)
        for s in cluster.statements
        if s.reduction
        for load, columns in zip(s.loads, s.columns[1:], strict=True)
        if load.array == name
    ]
    moving = [
        (s, load)
        for s, load, columns in found
        if vector is not None and moves(columns[cluster.shared[vector][s.name]])
    ]
    return moving or [(s, load) for s, load, _ in found]


def _make_copy(
    cluster: Cluster,
    name: str,
    loads: Sequence[tuple[Statement, Load]],
    arrays: Mapping[str, Array],
) -> Packing:
    """Copy what these loads read of an array, element by element."""
    array = arrays[name]
    packed = name_copy(name, arrays)
    iterators = tuple(f"i{k}" for k in range(len(array.shape)))
    read: isl.Set | None = None
    for s, load in loads:
        touched = read_map(s, load, array).range()
        read = touched if read is None else read.union(touched).coalesce()
    assert read is not None, f"{name} is not read by a reduction"
    title = f"S_{packed}"
    step = cluster.step
    if step and array.kind == "input":  # the same in all steps
        read, step = in_any_step(read, step), None
    starts, shape = _find_box(read, array.shape)
    copy = Statement(
        name=title,
        domain=read.set_tuple_name(title),
        iterators=iterators,
        array=packed,
        write=_shift(title, packed, starts),
        value=Load(name, _shift(title, name, [0] * len(starts)), array.dtype),
        origin=tuple(dict.fromkeys(o for s in cluster.statements for o in s.origin)),
        step=step,
        branches=cluster.branches,
    )
    shared = tuple({title: k} for k in range(len(iterators)))
    return Packing(
        replace(array, name=packed, shape=shape, kind="temporary", value=None, memory=""),
        Cluster((copy,), shared, False),
        starts,
    )


def _find_box(read: isl.Set, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the first index that is read along each dimension, how many there are).

    Whole dimensions where what is read depends on sizes: keys that follow queries in a row of one
    array take a third of the room otherwise.
    """
    if read.dim(isl.dim_type.param) or read.is_empty():
        return (0,) * len(shape), tuple(shape)
    ends = [(read.dim_min_val(k), read.dim_max_val(k)) for k in range(len(shape))]
    first = tuple(low.to_python() for low, _ in ends)
    return first, tuple(
        high.to_python() + 1 - low for (_, high), low in zip(ends, first, strict=True)
    )
