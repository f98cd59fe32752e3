"""Schedules without a kernel's own names, so that equal kernels of different models can share one.

    split conv1.i 13 | pack w     ->     split s1.L0 13 | pack a1

Statements, arrays and names of loops become positions. What a schedule makes itself, loops that it
names and arrays such as `acc_left`, is told by what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    return _rename(schedule, *_tables(named, arrays, made), lambda _: frozenset())


def from_positions(
    schedule: Schedule, named: InitialLoops, arrays: Sequence[str], made: Made = NOTHING
) -> Schedule:
    """The inverse: the schedule in the names of a kernel; IllegalSchedule if it is of another.

    made: as `place_made` gives it.
    """
    tables = _tables(named, arrays, NOTHING)
    loops, statements, stored = ({v: k for k, v in table.items()} for table in tables)
    statements |= _derive(made.statements, {**stored, **statements})
    stored |= _derive(made.arrays, stored)
    return _rename(schedule, loops, statements, stored, lambda names: _near(names, named))


def _near(names: Iterable[str], named: InitialLoops) -> frozenset[str]:
    """What the loops are called that stand in one cluster with some of these."""
    around = {s for name in names for loop in named.find(name.rstrip("'")) for s in loop.where}
    clusters = [c for c in named.clusters if c.names & around]
    return frozenset(x.name for x in named.loops if any(c.names & {*x.where} for c in clusters))


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


def _rename(
    schedule: Schedule,
    loops: Names,
    statements: Names,
    arrays: Names,
    near: Callable[[Iterable[str]], frozenset[str]],
) -> Schedule:
    """The schedule in other names; loops that a directive names are known from then on.

    near: what the loops are called, in the new names, that stand in a cluster with some.
    """
    own: dict[str, str] = {}
    steps: list[AnyDirective] = []
    for directive in schedule.directives:
        if isinstance(directive, Join | Cut | Tile | Stage):
            known = {**own, **loops}
        else:
            known = {**loops, **own}
        (renamed,) = _rename_one(directive, known, statements, arrays).directives
        match renamed:
            case Join(sources, name):
                own[name] = fresh(name, near(sources) - {*sources})
                renamed = replace(renamed, name=own[name])
            case Cut(sources, names):
                taken = near(sources) - {*sources}
                own |= {name: fresh(name, taken) for name in names if name not in own}
                renamed = replace(renamed, names=tuple(own[name] for name in names))
            case Tile():
                own |= {name: name for name in _digits(renamed)}
        steps.append(renamed)
    return Schedule(tuple(steps))


def _digits(tile: Tile) -> tuple[str, ...]:
    """The loops of a product in tiles."""
    sides = (tile.rows, tile.columns, tile.sums)
    return (*DIGITS, *(name for side in sides for name, _ in side.digits))


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
