"""Which parts of a result stay together in registers for matrices, and what multiplies them.

    28 rows by 32 columns, 64 bytes deep:   parts of 14 by 16, in tiles 0 to 3; factors in 4 to 7

Of all ways to group the parts that leave registers for factors, that is taken for which factors
are loaded least often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import ceil

from polyc.loopnest.matrices import MatrixNest
from polyc.loopnest.nodes import Element, Node, TileMove, TileProduct
from polyc.loopnest.substitute import substitute_element
from polyc.target.instructions.matrices import MOST, REGISTERS, WORD

MOST_SUMS = 6
"""Registers that hold parts of the result: its factors take at least two of them."""

Part = tuple[int, int]
"""(first, how many) of the iterations of a loop."""


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
        """Factors that are loaded for one product of each sum."""
        return len(self.rows) + len(self.columns)

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
                    yield move_part("load", register, _factor(nest, nest.a, 0, r, word))
            for c, register in b.items():
                if register is not None:
                    yield move_part("load", register, _factor(nest, nest.b, 2, c, word))
            by_rows = None in a.values()
            outer, inner = (self.rows, self.columns) if by_rows else (self.columns, self.rows)
            for one in outer:
                for other in inner:
                    r, c = (one, other) if by_rows else (other, one)
                    left, right = a[r], b[c]
                    if left is None:
                        left = shared[r[1], word[1] * WORD]
                        if other is inner[0]:
                            yield move_part("load", left, _factor(nest, nest.a, 0, r, word))
                    if right is None:
                        right = shared[word[1], c[1] * WORD]
                        if other is inner[0]:
                            yield move_part("load", right, _factor(nest, nest.b, 2, c, word))
                    yield TileProduct(nest.row.name, numbers[r, c], left, right)


@cache
def group_parts(m: int, n: int, k: int) -> tuple[Group, ...]:
    """All parts of m rows and n columns, of sums of k words, in the groups for which factors are
    loaded least often."""
    rows, columns, words = _cut_evenly(m), _cut(n), _cut_evenly(k)
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
    return _first_two(nest, nest.assign.target, {0: rows, 1: columns}, 0)


def _factor(nest: MatrixNest, element: Element, loop: int, part: Part, words: Part) -> Places:
    """Where a part of a factor begins, and its second row: of a those are rows, of b words."""
    parts = {0: part, 2: words} if loop == 0 else {1: part, 2: words}
    return _first_two(nest, element, parts, loop)


def _first_two(nest: MatrixNest, element: Element, parts: Mapping[int, Part], along: int) -> Places:
    """An element where parts of loops begin, and the same an iteration of one of them later."""
    values = dict(nest.starts)
    for k, (start, _) in parts.items():
        loop = nest.loops[k]
        values[loop.var] = loop.lower + start * loop.step
    first = substitute_element(element, values)
    if parts[along][1] == 1:
        return first, first
    loop = nest.loops[along]
    values[loop.var] = values[loop.var] + loop.step
    return first, substitute_element(element, values)


def move_part(kind: str, register: int, places: Places) -> TileMove:
    first, second = places
    match kind:
        case "load" | "store" | "zero":
            return TileMove(kind, register, first, second)
    raise AssertionError(kind)
