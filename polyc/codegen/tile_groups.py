"""Which parts of a result stay together in registers for matrices, and what multiplies them.

    28 rows by 32 columns, 64 bytes deep:   parts of 14 by 16, in tiles 0 to 3; factors in 4 to 7

Of all ways to group the parts that leave registers for factors, that is taken for which least of
these is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import ceil

from polyc.loopnest.index import Affine
from polyc.loopnest.matrices import MatrixNest
from polyc.loopnest.nodes import Element, For, Node, TileMove, TileProduct
from polyc.loopnest.substitute import substitute_element
from polyc.target.instructions.matrices import MOST, REGISTERS, WORD

MOST_SUMS = 6
"""Registers that hold parts of the result: its factors take at least two of them."""

Part = tuple[int, int]
"""(first, how many) of rows, columns or words."""


@dataclass(frozen=True)
class Group:
    """Parts of a result that stay in registers together: all of some rows and of some columns.

    words: the parts of a sum's depth.
    """

    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    words: tuple[Part, ...]

    @property
    def sums(self) -> list[tuple[Part, Part]]:
        """The parts, by register."""
        return [*product(self.rows, self.columns)]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """What registers hold: the sums, then factors."""
        sums = [(r[1], c[1] * WORD) for r, c in self.sums]
        factors = [shape for shape, _ in self._factors]
        free = REGISTERS - len(sums) - len(factors)
        return (*sums, *factors, *([(0, 0)] * free))

    @property
    def loads(self) -> int:
        """Lines of factors that are loaded for one product of each sum, deep as the deepest."""
        deep = max(n for _, n in self.words)
        return sum(n for _, n in self.rows) + deep * len(self.columns)

    @property
    def is_possible(self) -> bool:
        return len(self.sums) + len(self._factors) <= REGISTERS

    @property
    def _factors(self) -> list[tuple[tuple[int, int], object]]:
        """(shape, what it is for) of the registers behind the sums: those of the shorter side are
        for one part, those of the longer for all parts of a shape in turns, or also for one."""
        depths = sorted({n for _, n in self.words})
        a = [((r[1], n * WORD), ("a", r, n)) for n in depths for r in self.rows]
        b = [((n, c[1] * WORD), ("b", c, n)) for n in depths for c in self.columns]
        if len(self.sums) + len(a) + len(b) <= REGISTERS:
            return [*a, *b]
        held, passing = (a, b) if len(a) <= len(b) else (b, a)
        return [*held, *((shape, None) for shape in sorted({shape for shape, _ in passing}))]

    def products(self, nest: MatrixNest) -> Iterator[Node]:
        """One execution of the instruction's loops, which those of the group are like."""
        first = len(self.sums)
        own = {use: first + k for k, (_, use) in enumerate(self._factors) if use}
        shared = {shape: first + k for k, (shape, use) in enumerate(self._factors) if not use}
        numbers = {part: k for k, part in enumerate(self.sums)}
        for word in self.words:
            a = {r: own.get(("a", r, word[1])) for r in self.rows}
            b = {c: own.get(("b", c, word[1])) for c in self.columns}
            for r, register in a.items():
                if register is not None:
                    yield move_part("load", register, _factor(nest, True, r, word))
            for c, register in b.items():
                if register is not None:
                    yield move_part("load", register, _factor(nest, False, c, word))
            by_rows = None in a.values()
            outer, inner = (self.rows, self.columns) if by_rows else (self.columns, self.rows)
            for one in outer:
                for other in inner:
                    r, c = (one, other) if by_rows else (other, one)
                    left, right = a[r], b[c]
                    if left is None:
                        left = shared[r[1], word[1] * WORD]
                        if other is inner[0]:
                            yield move_part("load", left, _factor(nest, True, r, word))
                    if right is None:
                        right = shared[word[1], c[1] * WORD]
                        if other is inner[0]:
                            yield move_part("load", right, _factor(nest, False, c, word))
                    yield TileProduct(nest.row.name, numbers[r, c], left, right)


@cache
def group_parts(runs: int, m: int, n: int, k: int) -> tuple[Group, ...]:
    """All parts of runs of m rows, and of n columns, of sums of k words, in the groups for which
    the fewest lines of factors are loaded."""
    rows = [(run * m + start, count) for run in range(runs) for start, count in _cut_evenly(m)]
    columns, words = _cut(n), _cut_evenly(k)
    best: tuple[float, tuple[Group, ...]] | None = None
    for high in range(1, min(MOST_SUMS, len(rows)) + 1):
        for wide in range(1, min(MOST_SUMS // high, len(columns)) + 1):
            groups = tuple(
                Group(r, c, tuple(words)) for r in _share(rows, high) for c in _share(columns, wide)
            )
            if not all(group.is_possible for group in groups):
                continue
            loads = sum(group.loads for group in groups)
            if best is None or loads < best[0]:
                best = loads, groups
    assert best is not None, "one part of a result leaves registers for its factors"
    return best[1]


def _cut_evenly(extent: int) -> list[Part]:
    """28  ->  14 and 14"""
    count = ceil(extent / MOST)
    ends = [extent * k // count for k in range(count + 1)]
    return [(a, b - a) for a, b in pairwise(ends)]


def _cut(extent: int) -> list[Part]:
    """40  ->  16, 16 and 8: whole cache lines, as far as there are"""
    return [(k, min(MOST, extent - k)) for k in range(0, extent, MOST)]


def _share(parts: Sequence[Part], most: int) -> list[tuple[Part, ...]]:
    """7 parts, at most 6 together  ->  4 and 3"""
    count = ceil(len(parts) / most)
    ends = [len(parts) * k // count for k in range(count + 1)]
    return [tuple(parts[a:b]) for a, b in pairwise(ends)]


Places = tuple[Element, Element]


def result_part(nest: MatrixNest, rows: Part, columns: Part) -> Places:
    """Where a part of the result begins, and its second row."""
    column, *_ = nest.others
    values = nest.starts | nest.at_row(rows[0]) | _at(column, columns[0])
    return _places(nest.assign.target, values, nest.rows[-1])


def _factor(nest: MatrixNest, is_first: bool, part: Part, words: Part) -> Places:
    """Where a part of the first factor begins, or of the second, and its second row."""
    column, word, _ = nest.others
    values = nest.starts | _at(word, words[0])
    if is_first:
        return _places(nest.a, values | nest.at_row(part[0]), nest.rows[-1])
    return _places(nest.b, values | _at(column, part[0]), word)


def _at(loop: For, number: int) -> dict[str, Affine]:
    """The value of a loop in an iteration."""
    return {loop.var: loop.lower + number * loop.step}


def _places(element: Element, values: dict[str, Affine], along: For) -> Places:
    """An element, and the same an iteration of a loop later."""
    later = values | {along.var: values[along.var] + along.step}
    return substitute_element(element, values), substitute_element(element, later)


def move_part(kind: str, register: int, places: Places) -> TileMove:
    first, second = places
    match kind:
        case "load" | "store" | "zero":
            return TileMove(kind, register, first, second)
    raise AssertionError(kind)
