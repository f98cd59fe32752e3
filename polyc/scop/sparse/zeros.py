"""Sums of products by a constant that is mostly zero, over what is left of it.

    S: acc[o, y, x] add= x[c, y + r, x + q] * W[o, c, r, q]
    ->
    S: acc[o, y, x] add= e < n[o] ? x[C[o, e], y + R[o, e], x + Q[o, e]] * V[o, e] : 0

Row o of W has n[o] numbers that are not zero: V[o, e] in their order, at channel C[o, e] and tap
R[o, e], Q[o, e]. All rows have room for as many as the longest, so that the domain stays a box; the
loop over e ends where its row does (`codegen/bound_by_data.py`). Positions and counts are arrays
like any other: one loop runs over them, whatever the weights are.

Weights that are no normal numbers count as zeros (`subnormals.py`), in all sums of products.

A weight of zero is not multiplied any more. For numbers that is the same; an infinity or a NaN is
not carried on through a zero, as 0 * inf is NaN. `Options.sparse` turns it off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from polyc.poly.affine import is_affine
from polyc.scop.expr import Call, Load
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.sparse.entries import Compressed, write_entries
from polyc.scop.sparse.phases import split_phases
from polyc.scop.sparse.subnormals import SubnormalWeights, drop_subnormals
from polyc.scop.sparse.weights import Weights, find_entries, moved_by, read_weights, steps_of
from polyc.scop.uses import drop_dead
from polyc.target.costs import ZEROS, price_entries


@dataclass(frozen=True)
class SparseSum:
    """What is said of a sum over what is not zero.

    left: numbers, of `size`, that are not zero, in `rows`; stored: the bytes of these, their
    positions and counts; dense: those of all numbers.
    """

    origin: str
    left: int
    size: int
    rows: int
    stored: int
    dense: int

    def __str__(self) -> str:
        return (
            f"sparse_sums: '{self.origin}' multiplies by the {self.left:,} of {self.size:,} "
            f"weights that are not zero ({self.left / self.size:.0%}), in {self.rows:,} rows with "
            f"positions and counts: {self.stored:,} bytes in place of {self.dense:,}"
        )


@dataclass(frozen=True)
class Thinned:
    """A scop with sums over what is not zero, and what is said of each."""

    scop: Scop
    notes: tuple[SparseSum | SubnormalWeights, ...] = ()


def compress_zeros(scop: Scop, lanes: int) -> Thinned:
    """The scop with sums over what is not zero, where vectors of so many floats gain by that."""
    if not lanes:
        return Thinned(scop)
    scop, dropped = drop_subnormals(scop)
    arrays, statements = dict(scop.arrays), list[Statement]()
    notes = list[SparseSum]()
    names = {s.name for s in scop.statements}
    for s in scop.statements:
        new = _compress(s, arrays, lanes, names)
        if new is not None:
            notes.append(_describe(s, new))
            s = new.statement
            at = next((k for k, one in enumerate(statements) if one.array == s.array), 0)
            statements[at:at] = new.copies
            names.update(copy.name for copy in new.copies)
            arrays.update({array.name: array for array in new.arrays})
        statements.append(s)
    if not notes:
        return Thinned(scop, dropped)
    thin = replace(scop, statements=tuple(statements), arrays=arrays)
    return Thinned(drop_dead(thin), (*dropped, *notes))


def price_without_zeros(value: np.ndarray, size: int, lanes: int, crosses: bool) -> float:
    """The time of a product by what is not zero of a constant, relative to that by all of it.

    size: of the loop in vectors; infinite if zeros are too few to be left out. See `price_entries`.
    """
    zeros = float(np.mean(value == 0)) if value.size else 0.0
    return price_entries(1 - zeros, fill(size, lanes), crosses) if zeros >= ZEROS else inf


def fill(size: int, lanes: int) -> float:
    """The share of lanes that work in vectors along a loop."""
    return size / (-(-size // lanes) * lanes) if size else 0.0


def _compress(
    s: Statement, arrays: Mapping[str, Array], lanes: int, names: set[str]
) -> Compressed | None:
    """The sum over entries, if it is cheaper so."""
    factors = _find_factors(s, arrays)
    if factors is None:
        return None
    constant, data = factors
    if np.mean(_value(arrays, constant) == 0) < ZEROS:
        return None
    weights = read_weights(s, constant, data, arrays)
    if weights is None:
        return None
    lane, step = _find_lanes(s, data, weights, lanes)
    if lane is None:
        return None
    moves, moved = steps_of(data.index), moved_by(data, weights)
    if all(any(row[p] for row in moves) for p in weights.rows):
        return None  # each row has data of its own
    size = s.estimated_extents[lane]
    crosses = any(moves[d][lane] for d in moved)
    if price_without_zeros(weights.table, size, lanes, crosses) >= 1:
        return None
    entries = find_entries(weights.table)
    if entries.longest * (1 + len(moved)) > weights.table.shape[1]:
        return None  # it would take more memory
    phases = None
    if step > 1:
        phases = split_phases(s, data, lane, step, weights, arrays, names)
        if phases is None:
            return None
    return write_entries(s, factors, weights, entries, phases, arrays)


def _describe(s: Statement, new: Compressed) -> SparseSum:
    known = [array for array in new.arrays if array.value is not None]
    stored = sum(array.value.nbytes for array in known if array.value is not None)
    table = new.weights.table
    rows, left = len(table), int(np.count_nonzero(table))
    return SparseSum(", ".join(s.origin), left, table.size, rows, stored, table.nbytes)


def _value(arrays: Mapping[str, Array], load: Load) -> np.ndarray:
    value = arrays[load.array].value
    assert value is not None
    return value


def _find_factors(s: Statement, arrays: Mapping[str, Array]) -> tuple[Load, Load] | None:
    """(the constant, what it is multiplied with) of a sum of products of floats."""
    plain = s.reduction == "add" and s.time is None and s.group is None
    match s.value:
        case Call("mul", (Load(dynamic=()) as a, Load(dynamic=()) as b), dtype) if plain:
            known = [arrays[load.array].value is not None for load in (a, b)]
            affine = all(is_affine(f) for f in (s.write, a.index, b.index))
            if dtype.kind == "f" and known.count(True) == 1 and affine:
                return (a, b) if known[0] else (b, a)
    return None


def _find_lanes(s: Statement, data: Load, weights: Weights, lanes: int) -> tuple[int | None, int]:
    """(the best loop for vectors, on which no row depends; how far it moves, in one dimension)"""
    found: list[tuple[float, int, int]] = []
    rows = steps_of(data.index)
    for p, size in enumerate(s.estimated_extents):
        steps = [step for row in rows if (step := row[p])]
        if p not in (*weights.rows, *weights.summed) and len(steps) == 1 and steps[0] > 0:
            found.append((fill(size, lanes), p, steps[0]))
    _, lane, step = max(found, default=(0.0, None, 0))
    return lane, step
