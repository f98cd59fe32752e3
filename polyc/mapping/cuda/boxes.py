"""Tiles that the tensor memory accelerator of Hopper can copy: boxes of an array, zero outside.

    left[b, mt, nt, kt, ki, mr, mi]  =  a[128 mt + 64 mr + mi, 64 kt + ki], zero outside of a

One thread asks for such a box, and no thread computes an address or a condition of an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import islpy as isl
import numpy as np

from polyc.mapping.cuda.coordinates.cut_tiles import OUTER
from polyc.memory.storage import Storage
from polyc.poly.affine import columns_of, outputs, single_aff, unit_dimension
from polyc.schedule.counting import Collapse
from polyc.schedule.directives import Order, Run, Split
from polyc.schedule.names import inside
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Threads
from polyc.scop.expr import Call, Const, Expr, Load, Within
from polyc.scop.scop import Statement

CHUNK = 16
"""Bytes that the steps between rows, and of all other dimensions, are multiples of."""

LARGEST_BOX = 256
"""Elements along each dimension of a box."""

RANKS = (2, 5)
"""Dimensions of an array."""


def comes_in_boxes(copy: Statement, storages: Mapping[str, Storage], along_k: bool) -> bool:
    """Whether a factor's tile is boxes of an array as it is stored, and zero just outside of it.

    copy: from [b, mt, nt, kt, ki, mr, mi], as `cut_tiles` makes it; along_k: whether the steps of
    the sum lie together in memory, rather than the rows or columns.
    """
    load = _find_load(copy.value)
    if load is None or load.dynamic or not _is_described(storages[load.array], load.dtype):
        return False
    storage = storages[load.array]
    index = storage.map.to_pw_multi_aff().pullback_pw_multi_aff(load.index)
    depth, run, place = columns_of(index)[len(OUTER) + 1 :]
    fast, slow = (depth, place) if along_k else (place, depth)
    last = len(storage.shape) - 1
    if unit_dimension(fast) != last or unit_dimension(slow) in (None, last) or None in run:
        return False
    runs, size = copy.estimated_extents[-2:]
    in_line = runs == 1 or run == tuple(size * (c or 0) for c in place)
    if along_k and not (in_line and runs * size <= LARGEST_BOX):
        return False
    inside = copy.domain
    for function, extent in zip(outputs(index), storage.shape, strict=True):
        aff = single_aff(function)
        if aff is None:
            return False
        value = isl.PwAff.from_aff(aff)
        below = value.neg().add_constant_val(isl.Val(extent - 1))
        inside = inside.intersect(value.nonneg_set()).intersect(below.nonneg_set())
    return inside.is_equal(copy.domain.intersect(load.index.domain()))


def copy_boxes(
    depth: str, runs: str, places: str, extents: tuple[int, int, int], along_k: bool
) -> Iterator[AnyDirective]:
    """The directives of a copy by boxes: one thread asks for them, the rest is done at once."""
    _, count, length = extents
    if along_k:  # runs of rows lie behind one another, so all of them are one box
        yield Collapse((runs, places))
        count *= length
    yield Split((runs,), count)
    yield Order((runs, inside(runs), depth))
    yield Threads((runs,))
    yield Run("box", (inside(runs), depth) if along_k else (depth, places))
    if not along_k:
        yield Run("unroll", (inside(runs),))


def _find_load(value: Expr) -> Load | None:
    """The element that a copy brings, where it is not zero."""
    match value:
        case Load():
            return value
        case Call("select", (Within(), inner, Const(zero))) if zero == 0:
            return _find_load(inner)
    return None


def _is_described(storage: Storage, dtype: np.dtype) -> bool:
    """Whether a tensor map can say how the array is stored."""
    least, most = RANKS
    shape = storage.shape
    if not least <= len(shape) <= most or not all(isinstance(n, int) for n in shape):
        return False
    steps = [prod(shape[d:]) * dtype.itemsize for d in range(1, len(shape))]
    return all(step % CHUNK == 0 for step in steps)
