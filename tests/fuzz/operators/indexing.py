"""Gathers and scatters."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.movement import ANY, axis_of
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOATS, INTEGERS, Rejected, Value

NUMBERS = (*FLOATS, *INTEGERS)


def indices(b: Builder, shape: tuple[int, ...], size: int, **choices: object) -> Value:
    """Indices into a dimension of a size, counted from either end sometimes."""
    if size == 0:
        raise Rejected("nothing to index")
    dtype = np.dtype(b.one_of((np.int64, np.int64, np.int32)))
    known = [
        v for v in b.values if v.dtype == dtype and v.shape == shape and b.traits.symbolic is False
    ]
    for value in known:
        array = value.array
        if array.size and array.min() >= -size and array.max() < size and b.chance(0.5):
            return value
    return b.make(shape, dtype, low=-size if b.chance(0.4) else 0, high=size - 1, **choices)


@operator("Gather", weight=2)
def gather(b: Builder, op: str) -> object:
    """Slices along an axis; with a scalar index sometimes."""
    x = b.pick(ANY, lambda s: len(s) > 0 and 0 not in s)
    axis = axis_of(b, len(x.shape))
    return b.add(
        op, [x, indices(b, b.shape(b.integer(0, 2), 20), _least(x, axis))], Kind.EXACT, axis=axis
    )


def _least(x: Value, axis: int) -> int:
    return min(run.shape[axis] for run in x.runs)


@operator("GatherElements", weight=1)
def gather_elements(b: Builder, op: str) -> object:
    """Along an axis; the reference wants all of the others."""
    x = b.pick(ANY, lambda s: len(s) > 0 and 0 not in s)
    axis = axis_of(b, len(x.shape))
    shape = list(x.shape)
    shape[axis] = b.integer(1, 6)
    return b.add(op, [x, indices(b, tuple(shape), _least(x, axis))], Kind.EXACT, axis=axis)


@operator("GatherND", weight=0.8)
def gather_nd(b: Builder, op: str) -> object:
    """Slices at tuples of indices, with batches."""
    x = b.pick(ANY, lambda s: len(s) > 0 and 0 not in s)
    batch = b.integer(0, min(2, len(x.shape) - 1)) if b.chance(0.4) else 0
    depth = b.integer(1, len(x.shape) - batch)
    shape = (*x.shape[:batch], *b.shape(b.integer(0, 2), 20), depth)
    least = min(min(run.shape[batch : batch + depth]) for run in x.runs)
    return b.add(
        op, [x, b.make(shape, np.int64, low=-least, high=least - 1)], Kind.EXACT, batch_dims=batch
    )


@operator("ScatterElements", weight=1, symbolic=False)
def scatter_elements(b: Builder, op: str) -> object:
    """Along an axis; equal indices only where updates are combined."""
    x = b.pick(NUMBERS, lambda s: len(s) > 0 and 0 not in s)
    how = b.one_of((None, "add", "mul", "max", "min"))
    axis = axis_of(b, len(x.shape))
    shape = [n if b.chance(0.6) else b.integer(1, n) for n in x.shape]
    n = x.shape[axis]
    if how is None:
        shape[axis] = b.integer(1, n)
        rows = np.argsort(b.rng.random((*np.delete(shape, axis), n)), -1)[..., : shape[axis]]
        places = np.moveaxis(rows, -1, axis % len(shape)).astype(np.int64)
        at = b.constant(places) if b.chance(0.5) else b.feed([places])
    else:
        shape[axis] = b.integer(1, 8)
        at = indices(b, tuple(shape), n)
    updates = b.pick((x.dtype,), shape=tuple(shape), low=None if how != "mul" else 1, high=2)
    _want_small(x, updates, how)
    kind = Kind.SUM if how in ("add", "mul") else Kind.EXACT
    return b.add(op, [x, at, updates], kind, axis=axis, reduction=how)


def _want_small(x: Value, updates: Value, how: str | None) -> None:
    """Raise Rejected where combined integers may overflow."""
    if how in ("add", "mul") and x.dtype in INTEGERS:
        if x.dtype.itemsize < 4 or max(np.abs(v.array).max() for v in (x, updates)) > 20:
            raise Rejected("an integer may overflow")
        if how == "mul" and updates.array.size > 20:
            raise Rejected("an integer may overflow")


@operator("ScatterND", weight=1, symbolic=False)
def scatter_nd(b: Builder, op: str) -> object:
    """Slices at tuples of indices; equal tuples only where updates are combined."""
    x = b.pick(NUMBERS, lambda s: len(s) > 0 and 0 not in s)
    how = b.one_of((None, "add", "mul", "max", "min"))
    depth = b.integer(1, len(x.shape))
    spots = int(np.prod(x.shape[:depth]))
    count = b.integer(1, min(spots, 8))
    flat = b.rng.permutation(spots)[:count] if how is None else b.rng.integers(0, spots, count)
    tuples = np.stack(np.unravel_index(flat, x.shape[:depth]), -1).astype(np.int64)
    at = b.constant(tuples) if b.chance(0.5) else b.feed([tuples])
    shape = (count, *x.shape[depth:])
    updates = b.pick((x.dtype,), shape=shape, low=None if how != "mul" else 1, high=2)
    _want_small(x, updates, how)
    kind = Kind.SUM if how in ("add", "mul") else Kind.EXACT
    return b.add(op, [x, at, updates], kind, reduction=how)


@operator("TensorScatter", weight=0.3, symbolic=False)
def tensor_scatter(b: Builder, op: str) -> object:
    """A cache that is written at a position of each batch."""
    if b.traits.opset < 24:
        raise Rejected("newer")
    batch, rows, width = b.integer(1, 3), b.integer(4, 9), b.integer(1, 5)
    new = b.integer(1, 3)
    past = b.pick(FLOATS, lambda s: False, (batch, rows, width))
    update = b.make((batch, new, width), past.dtype)
    inputs = [past, update]
    if b.chance(0.8):
        inputs.append(b.make((batch,), np.int64, low=0, high=rows - new))
    mode = b.one_of(("linear", "circular"))
    return b.add(op, inputs, Kind.EXACT, axis=1, mode=mode)


@operator("NonMaxSuppression", weight=0.2, symbolic=False)
def suppression(b: Builder, op: str) -> object:
    """Boxes that are not much inside better ones."""
    boxes, classes = b.integer(1, 12), b.integer(1, 3)
    corner = b.rng.uniform(0, 5, (1, boxes, 2))
    far = corner + b.rng.uniform(0.5, 3, (1, boxes, 2))
    x = b.feed([np.concatenate([corner, far], -1).astype(np.float32)])
    scores = b.feed([b.rng.random((1, classes, boxes)).astype(np.float32)])
    most = b.integers([b.integer(1, boxes)])
    limits = [b.constant(np.array([t], np.float32)) for t in (0.45, 0.2)]
    return b.add(op, [x, scores, most, *limits], Kind.TYPED, center_point_box=0)
