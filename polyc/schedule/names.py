"""How a schedule calls loops: `i`, `i'` inside it, and `conv1.i` for that around one statement.

An iterator's name is that of the outermost loop over it. A loop that a directive cuts in two keeps
its name for the outer one, and the inner one has a prime more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.schedule.loops import Loop, LoopTree, paths, statements_in, walk

PREFIX = "S_"
"""What the names of statements begin with; people leave it out."""


def inside(name: str) -> str:
    """The name of the loop inside another: i -> i'."""
    return name + "'"


def select(tree: LoopTree, name: str) -> list[Loop]:
    """The loops meant by a name, in textual order; IllegalSchedule if there is none."""
    statement, _, loop = name.rpartition(".")
    found = [n for n in walk(tree) if isinstance(n, Loop) and n.name == loop]
    if statement:
        full = find_statement(tree, statement)
        found = [n for n in found if full in statements_in(n)]
    if not found:
        there = dict.fromkeys(n.name for n in walk(tree) if isinstance(n, Loop))
        raise IllegalSchedule(
            f"there is no loop {show(name)} here; there are {', '.join(there) or 'none'}"
        )
    return found


def find_statement(tree: LoopTree, name: str) -> str:
    """The statement that people call so; IllegalSchedule if there is none."""
    known = statements_in(tree)
    for full in (PREFIX + name, name):
        if full in known:
            return full
    raise IllegalSchedule(
        f"there is no statement {show(name)} here; there are {', '.join(sorted(map(short, known)))}"
    )


def short(statement: str) -> str:
    """What people call a statement: S_conv1 -> conv1."""
    return statement.removeprefix(PREFIX)


def chains(tree: LoopTree) -> Sequence[tuple[Loop, ...]]:
    """The nests of a tree: loops directly inside one another, outermost first."""
    found: dict[int, tuple[Loop, ...]] = {}
    for path in paths(tree):
        run: list[Loop] = []
        for node, below in pairwise([*path, None]):
            if isinstance(node, Loop):
                run.append(node)
            if run and not isinstance(below, Loop):
                found.setdefault(id(run[0]), tuple(run))
                run = []
    return list(found.values())
