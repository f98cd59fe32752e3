"""Calls that differ in extents only: what was made for one of them, or for all.

    first call:   x[5, 8]   i[2, 5]
    second call:  x[7, 8]   i[2, 7]
    pattern:      x[n0, 8]  i[2, n0]       for any n0 from 1 on

Extents that were equal in every call so far share a name: what belongs together (the values that
were found, and their places) has one size, and that is what makes the shapes fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

Shapes = tuple[tuple[int, ...], ...]
Pattern = tuple[tuple[int | str, ...], ...]

MAX_KEPT = 64
"""How many are kept that were made for extents of their own; the least recently used goes first."""

MAX_SEEN = 8
"""Calls that a pattern is derived from."""

MAX_REFUSED = 4
"""Patterns that are tried in vain before each call gets what is made for its own extents."""


@dataclass
class SimilarCalls(Generic[T]):
    """What was made for calls of one kind.

    by_shapes: for extents of their own; by_pattern: for all extents that fit; seen: those of calls
    that nothing was there for; refused: patterns that nothing can be made for.
    """

    by_shapes: OrderedDict[Shapes, T] = field(default_factory=OrderedDict)
    by_pattern: dict[Pattern, T] = field(default_factory=dict)
    seen: list[Shapes] = field(default_factory=list)
    refused: set[Pattern] = field(default_factory=set)

    def find(self, shapes: Shapes) -> tuple[T, dict[str, int]] | None:
        """What there is for these shapes, and the values of the names in its pattern."""
        if shapes in self.by_shapes:
            self.by_shapes.move_to_end(shapes)
            return self.by_shapes[shapes], {}
        for pattern, made in self.by_pattern.items():
            values = match(pattern, shapes)
            if values is not None:
                return made, values
        return None

    def generalise(self, shapes: Shapes) -> Pattern | None:
        """What this call has in common with all those seen, or else with one; if worth a try."""
        if len(self.refused) >= MAX_REFUSED:
            return None
        groups = [self.seen, *([one] for one in reversed(self.seen))] if self.seen else []
        patterns = (find_pattern([*group, shapes]) for group in groups)
        return next((p for p in patterns if p is not None and p not in self.refused), None)

    def keep(self, made: T, shapes: Shapes, pattern: Pattern | None) -> None:
        """Remember what was made for these shapes, or for all that fit the pattern."""
        self.seen = [*self.seen, shapes][-MAX_SEEN:]
        if pattern is not None:
            self.by_pattern[pattern] = made
            return
        self.by_shapes[shapes] = made
        if len(self.by_shapes) > MAX_KEPT:
            self.by_shapes.popitem(last=False)


def find_pattern(calls: Sequence[Shapes]) -> Pattern | None:
    """A name for each extent that differs; None where one is 0, since nothing is like nothing."""
    names: dict[tuple[int, ...], str] = {}

    def name(column: tuple[int, ...]) -> int | str:
        if len(set(column)) == 1:
            return column[0]
        return names.setdefault(column, f"n{len(names)}")

    pattern = tuple(
        tuple(name(column) for column in zip(*tensor, strict=True))
        for tensor in zip(*calls, strict=True)
    )
    return None if any(0 in column for column in names) or not names else pattern


def match(pattern: Pattern, shapes: Shapes) -> dict[str, int] | None:
    """The values of the names with which the pattern is these shapes; None if there are none."""
    values: dict[str, int] = {}
    for known, shape in zip(pattern, shapes, strict=True):
        for a, b in zip(known, shape, strict=True):
            if b < 1 if isinstance(a, str) else a != b:
                return None
            if isinstance(a, str) and values.setdefault(a, b) != b:
                return None
    return values
