"""Bytes that a kernel fetches into a cache: what its loops touch, as often as it does not stay.

What a loop touches in all of its iterations either fits the cache, and is fetched once, or it does
not. Then, if what one iteration touches fits, what the next one touches as well is still there, and
each element is fetched once a loop; else it is fetched again in each iteration:

    fetched(loop) = touched(loop)                    where touched(loop) or touched(body) fits
                    iterations * fetched(body)       else
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from polyc.predict.nest import LINE, Access, Leaf, Loop, Nest, Shape, Tree

Bytes = Mapping[str, float]
"""By array."""

Form = tuple[str, tuple[tuple[tuple[str, int], ...], ...]]
"""An array, and how an access to it moves: those of one form differ by where they begin."""


@dataclass(frozen=True)
class _Part:
    """Trees that are run in order, inside of loops that are not part of them."""

    trees: tuple[Tree, ...]
    arrays: Mapping[str, Shape]

    @cached_property
    def parts(self) -> tuple[_Part, ...]:
        """Each tree by itself; of a single loop, what it runs."""
        if len(self.trees) > 1:
            return tuple(_Part((tree,), self.arrays) for tree in self.trees)
        (tree,) = self.trees
        return (_Part(tree.body, self.arrays),) if isinstance(tree, Loop) and tree.body else ()

    @cached_property
    def boxes(self) -> dict[Form, tuple[tuple[int, ...], tuple[int, ...]]]:
        """The first and the last place, with all loops at their first iterations, by form."""
        if not self.parts:
            leaves = [tree for tree in self.trees if isinstance(tree, Leaf)]
            accesses = [a for leaf in leaves for a in leaf.accesses]
            found = [
                (_form(a), a.place, a.place)
                for a in accesses
                if not self.arrays[a.array].in_registers
            ]
        else:
            found = [(form, *box) for part in self.parts for form, box in part.boxes.items()]
        boxes: dict[Form, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        for form, low, high in found:
            old = boxes.get(form, (low, high))
            boxes[form] = tuple(map(min, old[0], low)), tuple(map(max, old[1], high))
        return boxes

    @cached_property
    def loops(self) -> frozenset[str]:
        """The variables of all loops inside."""
        own = {tree.var for tree in self.trees if isinstance(tree, Loop)}
        return frozenset(own.union(*(part.loops for part in self.parts)))

    @cached_property
    def touched(self) -> Bytes:
        """Bytes of lines that are touched, each once."""
        total: dict[str, float] = defaultdict(float)
        for (name, spans), (low, high) in self.boxes.items():
            shape = self.arrays[name]
            covered = [
                min(n, last - first + 1 + sum(s for v, s in moves if v in self.loops))
                for n, moves, first, last in zip(shape.extents, spans, low, high, strict=True)
            ]
            total[name] = min(total[name] + _in_lines(covered, shape), shape.bytes)
        return total

    def fetched(self, capacity: float) -> Bytes:
        """Bytes that come into a cache of so many."""
        if sum(self.touched.values()) <= capacity or not self.parts:
            return self.touched
        if len(self.trees) > 1:
            total: Counter[str] = Counter()
            for part in self.parts:
                total.update(part.fetched(capacity))
            return total
        (loop,), (body,) = self.trees, self.parts
        assert isinstance(loop, Loop)
        if sum(body.touched.values()) <= capacity:
            return self.touched
        return {name: loop.trips * n for name, n in body.fetched(capacity).items()}


def measure_traffic(nest: Nest, capacity: float) -> Bytes:
    """Bytes that a kernel fetches into a cache of a capacity, by array."""
    return _Part(nest.trees, nest.arrays).fetched(capacity) if nest.trees else {}


def measure_touched(nest: Nest) -> Bytes:
    """Bytes that a kernel touches, each counted once."""
    return _Part(nest.trees, nest.arrays).touched if nest.trees else {}


def _form(access: Access) -> Form:
    return access.array, tuple(tuple(sorted(own.items())) for own in access.spans)


def _in_lines(covered: list[int], shape: Shape) -> float:
    """Bytes of a box; what is left of a cache line counts, where rows are longer than that."""
    size = shape.dtype.itemsize
    if not covered:
        return size
    *outer, row = covered
    used = min(-(-row * size // LINE) * LINE, max(shape.extents[-1], 1) * size)
    return prod(outer) * used
