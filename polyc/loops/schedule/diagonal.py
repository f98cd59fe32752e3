"""Diagonals: where each iteration waits for the one before, those of a diagonal do not.

    for i: for j:                                      for d = i + j: for i:
      A[i, j] = f(A[i - 1, j], A[i, j - 1])     ->       A[i, d - i] = …

This is the wavefront method within a tile (Lamport 1974, "The parallel execution of DO loops"). It
pays where f takes longer than diagonals cost: not for a minimum of whole numbers, which goes from
iteration to iteration in a register (`codegen/carry.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import islpy as isl
import numpy as np

from polyc.analysis.dependences import maps
from polyc.loops.schedule.band import Band, as_map, joined
from polyc.loops.schedule.direction import equal_values, is_carried
from polyc.loops.schedule.inner import Inner
from polyc.scop.expr import Call, Cast, Expr, Load
from polyc.scop.scop import Statement

LATENCIES = {
    **dict.fromkeys(("add", "sub", "mul", "min", "max", "larger", "smaller"), 4),
    "div": 13,
    "sqrt": 18,
    "neg": 1,
}
"""Cycles from an operand of a float operation to its result, on x86-64 cores of 2017 to 2025."""

OTHER_FLOAT, WHOLE = 20, {"mul": 3, "div": 20, "mod": 20, "min": 2, "max": 2}
"""Of other functions of floats; and of operations on whole numbers, which else take one cycle."""

WAITING = 8
"""Cycles that iterations must wait for each other for diagonals to pay: about what an iteration
takes that walks from row to row, in loops of a length of their own.
"""


def skew_inner(
    node: isl.ScheduleNode,
    band: Band,
    inner: Inner,
    validity: isl.UnionMap,
    statements: Mapping[str, Statement],
) -> tuple[isl.ScheduleNode, Band, Inner]:
    """The band with the diagonals of its last two members in place of the first of them.

    band i, j  ->  band i + j, i        iterations of the last member no longer wait for each other

    A core works on several of them at a time. Only where iterations wait for the ones before, and
    nothing is carried within a diagonal, as in a permutable band of which both carry something.
    """
    if len(band.order) < 2 or not band.is_permutable or band.coincident[inner.order[-1]]:
        return node, band, inner
    own = [statements[name] for name in band.names]
    written = {s.array for s in own}
    if max(_wait(s, written) for s in own) < WAITING:
        return node, band, inner
    *around, first, last = inner.order
    diagonal = band.functions[first].add(band.functions[last])
    functions = [*(band.functions[k] for k in around), diagonal, band.functions[first]]
    held = node.get_prefix_schedule_union_map().flat_range_product(as_map(functions[:-1]))
    domain = node.get_domain()
    inside = validity.intersect_domain(domain).intersect_range(domain)
    if is_carried(inside, held, band.member(first)) or not _is_chain(node, inside, band, inner):
        return node, band, inner
    skewed = node.delete().insert_partial_schedule(joined(functions)).band_set_permutable(1)
    made = Band.of(skewed, validity)
    return skewed, made, Inner(made.order, inner.groups)


def _wait(statement: Statement, written: Collection[str]) -> int:
    """Cycles from what a statement reads of some arrays to what it writes, at the longest."""
    update = _cycles(statement.reduction, statement.value.dtype) if statement.reduction else 0
    return (_latency(statement.value, written) or 0) + update


def _latency(expr: Expr, written: Collection[str]) -> int | None:
    """Cycles from a load of some arrays to the value of an expression; None if it has none."""
    match expr:
        case Load(array):
            return 0 if array in written else None
        case Cast(argument):
            inside = _latency(argument, written)
            return None if inside is None else inside + 4
        case Call(function, arguments, dtype):
            paths = [p for a in arguments if (p := _latency(a, written)) is not None]
            return max(paths) + _cycles(function, dtype) if paths else None
    return None


def _cycles(function: str, dtype: np.dtype) -> int:
    if dtype.kind == "f":
        return LATENCIES.get(function, OTHER_FLOAT)
    return WHOLE.get(function, 1)


def _is_chain(node: isl.ScheduleNode, validity: isl.UnionMap, band: Band, inner: Inner) -> bool:
    """Whether iterations of the innermost loop wait for the one before, and not only for some."""
    *around, last = inner.order
    held = node.get_prefix_schedule_union_map()
    if around:
        held = held.flat_range_product(as_map([band.functions[k] for k in around]))
    value = band.member(last)
    next_ = value.apply_range(isl.UnionMap("{ [v] -> [v + 1] }")).apply_range(value.reverse())
    steps = validity.intersect(equal_values(held)).intersect(next_)
    sets = node.get_domain().get_set_list()
    free = {s.get_tuple_name(): _freedom(s) for s in map(sets.get_at, range(sets.n_set()))}
    return any(_freedom(pairs.domain()) == free[source] for source, _, pairs in maps(steps))


def _freedom(points: isl.Set) -> int:
    """The dimensions of the largest piece of a set: iterators, less the equations they keep to."""
    pieces = points.get_basic_set_list()
    hulls = (pieces.get_at(k).affine_hull().get_constraints() for k in range(points.n_basic_set()))
    equations = (sum(c.is_equality() for c in constraints) for constraints in hulls)
    return points.dim(isl.dim_type.set) - min(equations)
