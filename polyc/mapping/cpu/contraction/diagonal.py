"""Diagonals: a window's tile reads each row of its input once, for all outputs that need it.

    y[u, x] += p[u + r, x + q] * w[r, q]        u: 3 rows in registers, x: lanes

    for r: for q: for u: …p[u + r]…   ->   for i = u + r: for q: for u in i - 2 .. i + 1: …p[i]…
    a window of 3 loads 9 rows             5 rows

A load that moves along its row with a tap (x + q) meets two cache lines as often as not, and costs
two. So the loop over taps runs along the diagonal i = u + r, and both it and u are written out: a
vector that is loaded there is multiplied for every u. The terms of each sum stay in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyc.poly.affine import Column
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Statement

MOST_WRITTEN = 256
"""Operations that are written out: copies of a body, for all rows, vectors and taps."""


@dataclass(frozen=True)
class Diagonal:
    """A loop of taps moved by the rows of a tile: r -> r + factor*u.

    statement, position: the iterator r; taps: its extent; factor: the stride of the window.
    """

    statement: str
    position: int
    taps: int
    factor: int

    def loads(self, rows: int) -> float:
        """Vectors loaded for each that is used, in a tile of so many rows."""
        return (self.factor * (rows - 1) + self.taps) / (rows * self.taps)

    def fits(self, rows: int, vectors: int) -> bool:
        """Whether a tile may be written out: it is small, and some of its loads serve several."""
        return self.loads(rows) < 1 and rows * vectors * self.taps <= MOST_WRITTEN


def find_diagonal(cluster: Cluster, vector: int, unroll: int | None) -> Diagonal | None:
    """The taps that may run along a diagonal with an unrolled loop; None if there are none.

    One operand moves in lanes and with taps along one dimension, and with the rows of the tile and
    other taps along another; no other operand moves with the rows.
    """
    update = next((s for s in cluster.statements if s.reduction), None)
    if update is None or unroll is None:
        return None
    lanes, rows = _at(cluster, vector, update), _at(cluster, unroll, update)
    moving = [columns for columns in update.columns[1:] if any(columns[rows])]
    if len(moving) != 1:
        return None
    columns = moving[0]
    shared = cluster.shared_positions(update)
    own = [p for p, n in enumerate(update.exact_extents) if p not in shared and n != 1]
    along, across = _only(columns[lanes]), _only(columns[rows])
    if along is None or across is None or along == across:
        return None
    windows = [p for p in own if columns[p][along]]
    taps = [p for p in own if columns[p][across]]
    if not windows or len(taps) != 1:
        return None
    (tap,) = taps
    count, step, stride = update.exact_extents[tap], columns[tap][across], columns[rows][across]
    if count is None or _only(columns[tap]) is None or not step or not stride or stride % step:
        return None
    return Diagonal(update.name, tap, count, stride // step)


def _at(cluster: Cluster, d: int, s: Statement) -> int:
    return cluster.shared[d][s.name]


def _only(column: Column) -> int | None:
    """The one dimension that an iterator moves along."""
    moved: Sequence[int] = [d for d, c in enumerate(column) if c != 0]
    return moved[0] if len(moved) == 1 and column[moved[0]] is not None else None
