"""Schedules without a kernel's own names, so that equal kernels of different models can share one.

    split conv1.i 13 | pack w     ->     split s1.L0 13 | pack a1

Statements, arrays and names of loops become positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.schedule.initial import InitialLoops
from polyc.schedule.names import short, split_primes, split_statement
from polyc.schedule.schedule import Schedule


def to_positions(schedule: Schedule, named: InitialLoops, arrays: Sequence[str]) -> Schedule:
    """The schedule with positions for names; `arrays` are those of the kernel."""
    loops, statements = _tables(named)
    return _rename(schedule, loops, statements, {name: f"a{k}" for k, name in enumerate(arrays)})


def from_positions(schedule: Schedule, named: InitialLoops, arrays: Sequence[str]) -> Schedule:
    """The inverse: the schedule in the names of a kernel; IllegalSchedule if it is of another."""
    loops, statements = ({v: k for k, v in table.items()} for table in _tables(named))
    return _rename(schedule, loops, statements, {f"a{k}": name for k, name in enumerate(arrays)})


def _tables(named: InitialLoops) -> tuple[dict[str, str], dict[str, str]]:
    """The positions of the names of loops, and of those of statements."""
    loops = {name: f"L{k}" for k, name in enumerate(dict.fromkeys(x.name for x in named.loops))}
    listed = [s for cluster in named.clusters for s in (*cluster.prelude, *cluster.statements)]
    return loops, {short(s.name): f"s{k}" for k, s in enumerate(listed)}


def _rename(
    schedule: Schedule,
    loops: Mapping[str, str],
    statements: Mapping[str, str],
    arrays: Mapping[str, str],
) -> Schedule:
    def find(kind: str, table: Mapping[str, str], name: str) -> str:
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

    return schedule.rename(loop, lambda name: find("array", arrays, name))
