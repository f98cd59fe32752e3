"""What a call decides: nodes, statements and launches that are executed in some calls only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from polyc.types.sizes import Size

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


Demands = Mapping[Branches, tuple[Size, ...]]
"""What must not be negative in calls that take branches, and in no others."""


def unite_demands(several: Iterable[Demands]) -> dict[Branches, tuple[Size, ...]]:
    """All that is demanded, each thing once."""
    total: dict[Branches, tuple[Size, ...]] = {}
    for demands in several:
        for branches, needs in demands.items():
            total[branches] = tuple(dict.fromkeys((*total.get(branches, ()), *needs)))
    return total


def needs_behind(
    demands: Demands, around: Branches, condition: str
) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """What is demanded where a condition holds, and where it does not, in branches around it."""
    one, other = (demands.get((*around, Branch(condition, h)), ()) for h in (True, False))
    return one, other


def needs_in(demands: Demands, branches: Branches) -> tuple[Size, ...]:
    """What is demanded in some branches: of the outermost, and of those inside."""
    outside = (branches[:depth] for depth in range(1, len(branches) + 1))
    return tuple(dict.fromkeys(need for some in outside for need in demands.get(some, ())))


def list_demanding(demands: Demands) -> list[tuple[Branches, str]]:
    """The conditions behind which something is demanded, with the branches around them."""
    return [*dict.fromkeys((way[:-1], way[-1].condition) for way in demands)]


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
