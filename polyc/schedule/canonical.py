"""Schedules without a kernel's own names, so that equal kernels of different models can share one.

    split conv1.i 13 | pack w     ->     split s1.L0 13 | pack a1

Statements, arrays and names of loops become positions. What a schedule makes itself, loops that it
names and arrays such as `acc_left`, is told by what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyc.errors import IllegalSchedule
from polyc.names import fresh, show
from polyc.schedule.coordinates import DIGITS, Cut, Join, Stage, Tile
from polyc.schedule.initial import InitialLoops
from polyc.schedule.names import short, split_primes, split_statement
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective

Names = Mapping[str, str]


@dataclass(frozen=True)
class Made:
    """What a schedule has made: arrays and statements, each of an array or a statement before.

    By name, as people call them, that whose name it begins with: acc_left -> acc.
    """

    arrays: tuple[tuple[str, str], ...] = ()
    statements: tuple[tuple[str, str], ...] = ()


NOTHING = Made()


def to_positions(
    schedule: Schedule, named: InitialLoops, arrays: Sequence[str], made: Made = NOTHING
) -> Schedule:
    """The schedule with positions for names; `arrays` are those of the kernel."""
    return _rename(schedule, *_tables(named, arrays, made))


def from_positions(
    schedule: Schedule, named: InitialLoops, arrays: Sequence[str], made: Made = NOTHING
) -> Schedule:
    """The inverse: the schedule in the names of a kernel; IllegalSchedule if it is of another.

    made: as `place_made` gives it.
    """
    tables = _tables(named, arrays, NOTHING)
    loops, statements, stored = ({v: k for k, v in table.items()} for table in tables)
    statements |= _derive(made.statements, {**stored, **statements})
    return _rename(schedule, loops, statements, stored | _derive(made.arrays, stored))


def place_made(made: Made, named: InitialLoops, arrays: Sequence[str]) -> Made:
    """What a schedule has made, with positions for names."""
    _, statements, stored = _tables(named, arrays, NOTHING)
    known = {**stored, **statements}
    return Made(_place(made.arrays, stored), _place(made.statements, known))


def _place(made: Iterable[tuple[str, str]], known: Names) -> tuple[tuple[str, str], ...]:
    return tuple((known[root] + name.removeprefix(root), known[root]) for name, root in made)


def _derive(made: Iterable[tuple[str, str]], known: Names) -> dict[str, str]:
    """name -> what it is called where its root is called otherwise."""
    return {name: known[root] + name.removeprefix(root) for name, root in made}


def _tables(
    named: InitialLoops, arrays: Sequence[str], made: Made
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The positions of the names of loops, of statements, and of arrays."""
    loops = {name: f"L{k}" for k, name in enumerate(dict.fromkeys(x.name for x in named.loops))}
    listed = [s for cluster in named.clusters for s in (*cluster.prelude, *cluster.statements)]
    statements = {short(s.name): f"s{k}" for k, s in enumerate(listed)}
    stored = {name: f"a{k}" for k, name in enumerate(arrays)}
    statements |= _derive(made.statements, {**stored, **statements})
    return loops, statements, stored | _derive(made.arrays, stored)


def _rename(schedule: Schedule, loops: Names, statements: Names, arrays: Names) -> Schedule:
    """The schedule in other names; loops that a directive names are known from then on."""
    own: dict[str, str] = {}
    steps: list[AnyDirective] = []
    for directive in schedule.directives:
        if isinstance(directive, Join | Cut | Tile | Stage):
            known = {**own, **loops}
        else:
            known = {**loops, **own}
        (renamed,) = _rename_one(directive, known, statements, arrays).directives
        for name in _introduced(directive):
            taken = {*loops.values(), *own.values()}
            own[name] = name if isinstance(directive, Tile) or name in own else fresh(name, taken)
        match renamed:
            case Join(name=name):
                renamed = replace(renamed, name=own[name])
            case Cut(names=names):
                renamed = replace(renamed, names=tuple(own[name] for name in names))
        steps.append(renamed)
    return Schedule(tuple(steps))


def _introduced(directive: AnyDirective) -> tuple[str, ...]:
    """The loops that a directive gives names to."""
    match directive:
        case Join(name=name):
            return (name,)
        case Cut(names=names):
            return names
        case Tile(rows, columns, sums):
            sides = (rows, columns, sums)
            return (*DIGITS, *(name for side in sides for name, _ in side.digits))
    return ()


def _rename_one(
    directive: AnyDirective, loops: Names, statements: Names, arrays: Names
) -> Schedule:
    def find(kind: str, table: Names, name: str) -> str:
        if name not in table:
            raise IllegalSchedule(
                f"there is no {kind} {show(name)} in this kernel; there are "
                f"{', '.join(map(show, table)) or 'none'}"
            )
        return table[name]

    def loop(name: str) -> tuple[str, ...]:
        statement, one = split_statement(name)
        base, primes = split_primes(one)
        renamed = find("loop", loops, base) + primes
        return (f"{find('statement', statements, statement)}.{renamed}" if statement else renamed,)

    return Schedule((directive,)).rename(loop, lambda name: find("array", arrays, name))
