"""The search: kernel after kernel, a heat of candidates at a time, until the time is spent.

The next heat goes to the kernel that takes most of the model's time for the heats that it has had,
so a small budget is spent where it matters and a large one reaches everything. In a heat some
neighbours of the best schedule known are built and timed in turns; the fastest must then beat
the best known in a comparison of its own, since the fastest of several noisy times is also the
luckiest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from polyc.errors import BuildError, IllegalSchedule
from polyc.mapping.cpu.laying import keeps_layouts
from polyc.mapping.cpu.space import MOVES, find_tuned
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.tuned import Tuned
from polyc.schedule.canonical import to_positions
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.target.machine import Target
from polyc.tuning.measure import Built, compare

HEAT = 6
"""Candidates in a heat."""

WORTHWHILE = 0.03
"""The share of its time that a kernel must save."""


class Bench(Protocol):
    """What builds a kernel so that it can be run (`measure.Workbench`)."""

    def build(self, one: OpenCluster, schedule: Schedule) -> Built: ...


@dataclass(frozen=True)
class Task:
    """A kernel to tune: what the cost model chose, what is known already, and its time in the
    model in seconds, all launches together."""

    cluster: OpenCluster
    chosen: Schedule
    known: Tuned | None
    seconds: float

    @property
    def name(self) -> str:
        return short(self.cluster.cluster.statements[-1].name)


@dataclass(frozen=True)
class Finding:
    """What is known about a kernel now; its schedule by the cost model, and the best."""

    task: Task
    tuned: Tuned
    before: str
    after: str

    @property
    def saved(self) -> float:
        """Seconds of the model's time, estimated."""
        known = self.task.known.gain if self.task.known else 0.0
        return self.task.seconds * (1 - (1 - self.tuned.gain) / (1 - known))


@dataclass
class _State:
    """How far the search of one kernel has come.

    schedule: the best known; first: the cost model's kernel; best: that of the best schedule.
    """

    task: Task
    best_known: Tuned
    schedule: Schedule
    moves: Iterator[Schedule] = field(default_factory=lambda: iter(()))
    first: Built | None = None
    best: Built | None = None
    heats: int = 0
    tried: set[Schedule] = field(default_factory=set)
    schedules: set[str] = field(default_factory=set)

    @property
    def finding(self) -> Finding:
        before, after = (built.schedule if built else "" for built in (self.first, self.best))
        return Finding(self.task, self.best_known, before, after)


@dataclass(frozen=True)
class Search:
    """A search on a bench; `clock` gives seconds, `tell` hears which kernel is looked at."""

    bench: Bench
    target: Target
    clock: Callable[[], float] = time.perf_counter
    tell: Callable[[str], None] = lambda _: None

    def run(self, tasks: Sequence[Task], budget: float) -> Iterator[Finding]:
        """What becomes known, as it does, for `budget` seconds; later findings replace earlier.

        A heat that runs when the time is up is held with the candidates that it has.
        """
        deadline = self.clock() + budget
        states = [self._begin(task) for task in tasks]
        while states and self.clock() < deadline:
            state = max(states, key=lambda s: s.task.seconds / (s.heats + 1))
            self.tell(state.task.name)
            before = state.best_known
            try:
                more = self._heat(state, deadline)
            except (BuildError, IllegalSchedule):
                more = False  # the kernel cannot be built alone, even as it is
            if not more:
                state.best_known = replace(state.best_known, finished=True)
                states.remove(state)
            if state.best_known != before:
                yield state.finding

    def _begin(self, task: Task) -> _State:
        found = find_tuned(task.cluster, task.known, self.target) if task.known else None
        if task.known and found:
            state = _State(task, task.known, found)
        else:
            state = _State(
                task, Tuned(spell_in_positions(task.cluster, task.chosen), 0.0), task.chosen
            )
        state.tried |= {task.chosen, state.schedule}
        state.moves = self._neighbours(state)
        return state

    def _neighbours(self, state: _State) -> Iterator[Schedule]:
        """Untried candidates that leave the layouts of others alone, move after move."""
        one = state.task.cluster
        for move in MOVES:
            best = state.schedule
            for candidate in move(one, best, self.target):
                if candidate not in state.tried:
                    state.tried.add(candidate)
                    if keeps_layouts(one, best, candidate):
                        yield candidate

    def _heat(self, state: _State, deadline: float) -> bool:
        """One heat of a kernel; whether there is more to try."""
        first = state.first = state.first or self._build(state, state.task.chosen)
        if state.best is None:
            known = state.schedule
            state.best = first if known == state.task.chosen else self._build(state, known)
        state.heats += 1
        entrants, more = self._enter(state, deadline)
        if not entrants:
            return more
        times = compare([state.best.run, *(built.run for _, built in entrants)])
        winner = min(range(len(entrants)), key=lambda k: times[1 + k])
        schedule, built = entrants[winner]
        if 1 - times[1 + winner] / times[0] >= WORTHWHILE:
            step = _gain(built, state.best)
            gain = step if state.best is first else _gain(built, first)
            if min(step, gain) >= WORTHWHILE:
                text = spell_in_positions(state.task.cluster, schedule)
                state.best_known, state.best = Tuned(text, gain), built
                state.schedule = schedule
        return more

    def _enter(self, state: _State, deadline: float) -> tuple[list[tuple[Schedule, Built]], bool]:
        """The next candidates, built, and whether there may be more."""
        entrants: list[tuple[Schedule, Built]] = []
        while len(entrants) < HEAT:
            if self.clock() >= deadline:
                return entrants, True
            candidate = next(state.moves, None)
            if candidate is None:
                return entrants, False
            count = len(state.schedules)
            try:
                built = self._build(state, candidate)
            except (BuildError, IllegalSchedule):
                continue  # the compiler or the proof refused it
            if len(state.schedules) > count:
                entrants.append((candidate, built))
        return entrants, True

    def _build(self, state: _State, schedule: Schedule) -> Built:
        built = self.bench.build(state.task.cluster, schedule)
        state.schedules.add(built.schedule)
        return built


def spell_in_positions(one: OpenCluster, schedule: Schedule) -> str:
    """The text of a schedule that equal clusters of other models can share."""
    return str(to_positions(schedule, one.named, one.nameable))


def _gain(one: Built, other: Built) -> float:
    """The share of the other's time that one saves: the smaller result of two comparisons."""
    pairs = [compare([other.run, one.run]) for _ in range(2)]
    return min(1 - after / before for before, after in pairs)
