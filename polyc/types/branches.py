"""What a call decides: nodes, statements and launches that are executed in some calls only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

BRANCH = "branch_"
"""What the names of conditions begin with in integer sets; nothing else does."""


@dataclass(frozen=True)
class Branch:
    """Executed only where a condition, one boolean that a call brings or computes, is `holds`."""

    condition: str
    holds: bool

    def __str__(self) -> str:
        return self.condition if self.holds else f"not {self.condition}"


Branches = tuple[Branch, ...]
"""Branches inside of one another, the outermost first; none: executed in every call."""


def find_common(several: Iterable[Branches]) -> Branches:
    """The branches that all have in common: (c, d), (c, not d) -> (c)."""
    first, *rest = several
    for other in rest:
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, other, strict=False))
        first = tuple(branch for branch, _ in pairs)
    return first


def show_branches(branches: Branches) -> str:
    """c and not d"""
    return " and ".join(map(str, branches))
