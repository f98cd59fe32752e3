"""The constant factor of a sum of products, as a table, and what of it is not zero.

acc[o, y, x] add= x[c, y + r, x + q] * W[o, c, r, q]      rows o, terms (c, r, q)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl
import numpy as np

from polyc.poly.affine import coefficients, outputs
from polyc.scop.expr import Load
from polyc.scop.known_values import evaluate
from polyc.scop.scop import Array, Statement

Steps = list[tuple[int | None, ...]]
"""By dimension of an array, how far each iterator moves."""


@dataclass(frozen=True)
class Weights:
    """The constant factor of a sum, row by row.

    rows: iterators of the statement that it moves with and that are not summed over; summed: those
    that are; table: values[row, term].
    """

    rows: tuple[int, ...]
    summed: tuple[int, ...]
    table: np.ndarray


@dataclass(frozen=True)
class Entries:
    """What is not zero of `Weights`: entry e < counts[row] is term order[row, e]."""

    counts: np.ndarray
    order: np.ndarray

    @property
    def longest(self) -> int:
        return int(self.order.shape[1])


def steps_of(index: isl.PwMultiAff) -> Steps:
    return [coefficients(function) for function in outputs(index)]


def read_weights(
    s: Statement, constant: Load, data: Load, arrays: Mapping[str, Array]
) -> Weights | None:
    """The constant as a table, if the loops of the sum are a box inside of the others."""
    count = len(s.iterators)
    written, moved = steps_of(s.write), steps_of(constant.index)
    if any(None in row for row in (*written, *moved, *steps_of(data.index))):
        return None
    summed = tuple(p for p in range(count) if not any(row[p] for row in written))
    rows = tuple(p for p in range(count) if p not in summed and any(row[p] for row in moved))
    sizes = s.exact_extents
    known = [sizes[p] for p in (*rows, *summed)]
    if not (summed and rows) or None in known or 0 in known:
        return None
    if not _is_box(s.domain, summed, sizes):
        return None
    shape = tuple(size if p in (*rows, *summed) and size else 1 for p, size in enumerate(sizes))
    value = evaluate(constant, shape, arrays)
    if value is None:
        return None
    order = [*rows, *summed, *(p for p in range(count) if p not in (*rows, *summed))]
    table = value.transpose(order).reshape(prod(shape[p] for p in rows), -1)
    return Weights(rows, summed, table)


def _is_box(domain: isl.Set, summed: Sequence[int], sizes: Sequence[int | None]) -> bool:
    """Whether each of these iterators runs from 0 to its size, whatever the others are."""
    kind, whole = isl.dim_type.set, domain
    for p in summed:
        size = sizes[p]
        assert size is not None
        whole = whole.drop_constraints_involving_dims(kind, p, 1)
        whole = whole.lower_bound_val(kind, p, isl.Val(0)).upper_bound_val(
            kind, p, isl.Val(size - 1)
        )
    return bool(whole.is_equal(domain))


def find_entries(table: np.ndarray) -> Entries:
    """The terms of each row that are not zero, in their order; then any, up to the longest row."""
    left = table != 0
    counts = left.sum(axis=1)
    order = np.argsort(~left, axis=1, kind="stable")
    return Entries(counts, order[:, : max(1, int(counts.max(initial=0)))])


def moved_by(data: Load, weights: Weights) -> list[int]:
    """The dimensions in which an array is walked by what is summed over."""
    rows = steps_of(data.index)
    return [d for d, row in enumerate(rows) if any(row[p] for p in weights.summed)]


def places_of(steps: Sequence[int | None], s: Statement, weights: Weights) -> np.ndarray:
    """How far each term of a sum is along a dimension from where it begins."""
    sizes = [s.exact_extents[p] or 0 for p in weights.summed]
    places = np.zeros(sizes, np.int64)
    for k, p in enumerate(weights.summed):
        along = [-1 if k == d else 1 for d in range(len(sizes))]
        places = places + (steps[p] or 0) * np.arange(sizes[k]).reshape(along)
    flat: np.ndarray = places.reshape(-1)
    return flat
