"""Along which loop of a band memory is walked best, and which loops may run in vector lanes.

Moving along one member of a band, all other dimensions of the schedule held, moves a statement's
iterators in one direction d: the solution of  M d = e,  where M holds the coefficients of the
schedule's dimensions, and e is 1 for the member and 0 for the others.

    S[t, i, j] -> [t, t + i, t + j]      the last member: d = (0, 0, 1), so A[i, j - 1] has stride 1
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

import islpy as isl

from polyc.analysis.dependences import maps
from polyc.poly.affine import coefficients, outputs
from polyc.scop.expr import Index, Load, Within, walk
from polyc.scop.scop import Statement

IN, OUT = isl.dim_type.in_, isl.dim_type.out

Row = tuple[int | None, ...]


def rows_of(schedule: isl.UnionMap, statement: Statement) -> list[Row]:
    """The coefficients of a statement's iterators in each dimension of a schedule."""
    for name, _, each in maps(schedule):
        if name == statement.name:
            return [coefficients(f) for f in outputs(isl.PwMultiAff.from_map(each))]
    return []


def direction(rows: Sequence[Row], member: int) -> tuple[int, ...] | None:
    """How iterators move along one dimension, the others held; None if they do not."""
    if any(None in row for row in rows) or not rows:
        return None
    matrix = [
        [Fraction(c or 0) for c in row] + [Fraction(int(k == member))] for k, row in enumerate(rows)
    ]
    width = len(rows[0])
    pivots: list[int] = []
    for column in range(width):
        rank = len(pivots)
        found = next((r for r in range(rank, len(matrix)) if matrix[r][column]), None)
        if found is None:
            continue
        matrix[rank], matrix[found] = matrix[found], matrix[rank]
        matrix[rank] = [x / matrix[rank][column] for x in matrix[rank]]
        for r in range(len(matrix)):
            if r != rank and matrix[r][column]:
                factor = matrix[r][column]
                pairs = zip(matrix[r], matrix[rank], strict=True)
                matrix[r] = [x - factor * y for x, y in pairs]
        pivots.append(column)
    if any(row[-1] for row in matrix[len(pivots) :]):
        return None
    solution = [Fraction(0)] * width
    for row, column in enumerate(pivots):
        solution[column] = matrix[row][-1]
    if any(x.denominator != 1 for x in solution):
        return None
    return tuple(int(x) for x in solution)


def steps_along(index: isl.PwMultiAff, moves: Sequence[int]) -> tuple[int, ...] | None:
    """By how much an access moves in each dimension; None if that is not constant."""
    steps = []
    for function in outputs(index):
        row = coefficients(function)
        if any(c is None and m for c, m in zip(row, moves, strict=True)):
            return None
        steps.append(sum((c or 0) * m for c, m in zip(row, moves, strict=True)))
    return tuple(steps)


def stride_along(index: isl.PwMultiAff, moves: Sequence[int]) -> int | None:
    """By how many elements of its innermost dimension an access moves; None if by whole rows."""
    steps = steps_along(index, moves)
    if steps is None or any(steps[:-1]):
        return None
    return steps[-1] if steps else 0


SCORES: dict[int | None, int] = {0: 1, 1: 3, -1: 0, 2: 0, -2: 0}
"""Stride -> what an access is worth in lanes; others, which are gathered, cost. Every other element
is two vectors of which half is kept."""
GATHERED = -4


def score(
    statement: Statement, moves: Sequence[int] | None, kept: Collection[str] = frozenset()
) -> int:
    """How well a statement's accesses run along a direction, in the interior of its domain.

    kept: arrays that do not count, as they are not in memory.
    """
    if moves is None or not any(moves):
        return 0
    return sum(SCORES.get(s, GATHERED) for s in strides(statement, moves, kept))


def strides(
    statement: Statement, moves: Sequence[int], kept: Collection[str] = frozenset()
) -> list[int | None]:
    """By how many elements each access moves along a direction; None if by rows, or by data."""
    loads = [load for load in statement.loads if load.array not in kept]
    indices = [load.index for load in loads if stays(load, moves)]
    indices += [statement.write] if statement.array not in kept else []
    found = [stride_along(_in_interior(index, statement.domain), moves) for index in indices]
    return [*found, *(None for load in loads if not stays(load, moves))]


def stays(load: Load, moves: Sequence[int]) -> bool:
    """Whether the coordinates of a load that are data, if there are any, rest along a direction.

    table[ids[i, j], d] has stride 1 along d.
    """
    return not any(
        isinstance(e, Load | Index | Within) and not _rests(e, moves)
        for _, coordinate in load.dynamic
        for e in walk(coordinate)
    )


def _rests(leaf: Load | Index | Within, moves: Sequence[int]) -> bool:
    """Whether a leaf of an expression has one value along a direction."""
    match leaf:
        case Load():
            return stride_along(leaf.index, moves) == 0
        case Index(value):
            row = coefficients(value)
            return all(c == 0 or not m for c, m in zip(row, moves, strict=True))
        case Within():
            return False


NARROW = 8
"""Iterations across a border, at most."""


def _in_interior(index: isl.PwMultiAff, domain: isl.Set) -> isl.PwMultiAff:
    """An access without the pieces that are for borders: planes, and strips of constant width.

    A[max(i - 1, 0)] is A[i - 1] for i >= 1. `codegen/split.py` makes loops of the interior.
    """
    if index.n_piece() == 1:
        return index
    inside = isl.MultiAff.zero(index.get_space())
    for k, function in enumerate(outputs(index)):
        pieces = [(_breadth(points.intersect(domain)), f) for points, f in function.get_pieces()]
        widest = max(breadth for breadth, _ in pieces)
        first, *others = (part for breadth, part in pieces if breadth == widest)
        if others:
            return index
        inside = inside.set_aff(k, first)
    return isl.PwMultiAff.from_multi_aff(inside)


def _breadth(points: isl.Set) -> int:
    """The number of iterators that have more than a few values in a set; -1 if it is empty."""
    if points.is_empty():
        return -1
    return sum(not _is_narrow(points, k) for k in range(points.dim(isl.dim_type.set)))


def _is_narrow(points: isl.Set, k: int) -> bool:
    """Whether an iterator has few values in a set, whatever the sizes are."""
    width = points.dim_max(k).sub(points.dim_min(k)).max_val()
    return bool(width.is_int()) and width.to_python() < NARROW


def is_carried(relation: isl.UnionMap, held: isl.UnionMap, member: isl.UnionMap) -> bool:
    """Whether some pair of a relation has equal `held` dimensions, but a different `member`."""
    return not relation.intersect(equal_values(held)).subtract(equal_values(member)).is_empty()


def equal_values(function: isl.UnionMap) -> isl.UnionMap:
    """# S -> T: pairs for which a function has the same value."""
    return function.apply_range(function.reverse())
