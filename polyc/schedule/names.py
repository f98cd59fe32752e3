"""How a schedule calls loops: `i`, `i'` inside it, and `conv1.i` for that around one statement.

An iterator's name is that of the outermost loop over it. A loop that a directive cuts in two keeps
its name for the outer one, and the inner one has a prime more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.schedule.loops import (
    Loop,
    LoopTree,
    children,
    paths,
    statements_in,
    walk,
    with_children,
)

PREFIX = "S_"
"""What the names of statements begin with; people leave it out."""


def inside(name: str) -> str:
    """The name of the loop inside another: i -> i'."""
    return name + "'"


def split_primes(name: str) -> tuple[str, str]:
    """(the name of the outermost loop over an iterator, primes): conv1.i'' -> conv1.i, ''."""
    base = name.rstrip("'")
    return base, name[len(base) :]


def split_statement(name: str) -> tuple[str, str]:
    """(the statement, the loop alone): conv1.i' -> conv1, i'; without a statement that is empty."""
    statement, _, loop = name.rpartition(".")
    return statement, loop


def select(tree: LoopTree, name: str) -> list[Loop]:
    """The loops meant by a name, in textual order; IllegalSchedule if there is none."""
    statement, loop = split_statement(name)
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
    known = {short(full): full for full in statements_in(tree)}
    if name not in known:
        raise IllegalSchedule(
            f"there is no statement {show(name)} here; there are {', '.join(sorted(known))}"
        )
    return known[name]


def short(statement: str) -> str:
    """What people call a statement: S_conv1 -> conv1."""
    return statement.removeprefix(PREFIX)


def edit_loops(tree: LoopTree, names: Sequence[str], edit: Callable[[Loop], LoopTree]) -> LoopTree:
    """The tree with the named loops edited, innermost ones first."""
    chosen = {id(n) for name in names for n in select(tree, name)}

    def visit(node: LoopTree) -> LoopTree:
        new = with_children(node, tuple(map(visit, children(node))))
        if id(node) not in chosen:
            return new
        assert isinstance(new, Loop)
        return edit(new)

    return visit(tree)


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
