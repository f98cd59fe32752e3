"""Locals of one branch, or of one loop: under a condition on data they are there for nobody else.

    if a[i] > b[i]:                             s = a[i] - b[i] if c else 0
        s = a[i] - b[i]          ->             y[i] = y[i] + s if c else y[i]
        y[i] += s

What an assignment under such a condition leaves where the condition is false is what the local had
before, which a later reader may want. If nobody but the branch mentions the local, which assigns it
first, there is no such reader: the local starts afresh, and iterations hand each other nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from polyc.loops.read.syntax import (
    Assign,
    Branch,
    Command,
    Function,
    Loop,
    Name,
    Place,
    commands,
    expressions,
    walk,
)

Beginning = tuple[str, Place]
"""A local, and where it is assigned."""


def find_beginnings(function: Function) -> frozenset[Beginning]:
    """Where locals are assigned that nobody outside of that body, and nothing before, mentions."""
    loops = {c.variable for c in commands(function.body) if isinstance(c, Loop)}
    begun = {
        name: list(_beginnings(function.body, name))
        for name in {_local(c) for c in commands(function.body)} - {None, *loops}
        if name is not None
    }
    whole = mentions(function.body)
    return frozenset(
        (name, place)
        for name, found in begun.items()
        if whole[name] == sum(count for _, count in found)
        for place, _ in found
    )


def _beginnings(body: Sequence[Command], name: str) -> Iterator[tuple[Place, int]]:
    """Where the outermost bodies that begin with a local do so, and how often they mention it."""
    for command in body:
        arms: tuple[Sequence[Command], ...] = ()
        if isinstance(command, Loop):
            arms = (command.body,)
        elif isinstance(command, Branch):
            arms = (command.then, command.otherwise)
        for arm in arms:
            first = next((c for c in arm if mentions([c])[name]), None)
            if first is not None and _local(first) == name and mentions([first])[name] == 1:
                yield first.place, mentions(arm)[name]
            else:
                yield from _beginnings(arm, name)


def _local(command: Command) -> str | None:
    """The name that a command assigns, whatever it was before."""
    if isinstance(command, Assign) and command.operator is None:
        return command.target.name if isinstance(command.target, Name) else None
    return None


def mentions(body: Sequence[Command]) -> Counter[str]:
    """How often a body mentions each name, targets included."""
    parts = (part for c in commands((*body,)) for e in expressions(c) for part in walk(e))
    return Counter(part.name for part in parts if isinstance(part, Name))
