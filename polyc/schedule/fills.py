"""Fills: statements that write what another one then completes, such as zeros around an image.

They go into the kernel of the statement that completes the array.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.scop.scop import Statement
from polyc.types.branches import Branches
from polyc.types.ranges import Step

Part = tuple[str, Step | None, Branches]
"""What statements of one array write before a loop over steps, in it, or behind it; in a branch."""


def part_of(s: Statement) -> Part:
    return s.array, s.step, s.branches


def set_fills_aside(
    statements: Sequence[Statement],
) -> tuple[dict[Part, list[Statement]], tuple[Statement, ...]]:
    """(fills of a part of an array that another statement completes, all other statements)."""

    def is_fill(s: Statement) -> bool:
        return not (s.reduction or s.loads)

    completed = {part_of(s) for s in statements if not is_fill(s) and not s.reduction}
    fills: dict[Part, list[Statement]] = {}
    others: list[Statement] = []
    for s in statements:
        if is_fill(s) and part_of(s) in completed:
            fills.setdefault(part_of(s), []).append(s)
        else:
            others.append(s)
    return fills, tuple(others)
