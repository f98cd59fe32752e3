"""The search, with a clock and times that are made up."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from polyc.errors import BuildError
from polyc.mapping.cpu.laying import choose_schedule
from polyc.mapping.cpu.space import find_tuned
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.reading import read_tile
from polyc.mapping.tuned import Tuned
from polyc.schedule.initial import InitialLoops
from polyc.schedule.schedule import Schedule
from polyc.tuning.measure import MOST_TURNS, Built, compare
from polyc.tuning.search import HEAT, Search, Task, spell_in_positions
from tests.analysis.nests import conv_scop, matmul_scop
from tests.mapping.stages import AVX512, open_cluster

MATMUL = open_cluster(matmul_scop(64, 64, 64))
CONV = open_cluster(conv_scop(32, 14, 14, 16, 3))
MS = 1e-3


@dataclass
class FakeBench:
    """Kernels that take `times` seconds where it says, else a millisecond; a build takes one s.

    noise: added to most runs, in shares of their time; lasting: runs after which all are alike.
    """

    times: dict[Schedule, float] = field(default_factory=dict)
    noise: float = 0.0
    lasting: int = 1 << 60
    refused: frozenset[Schedule] = frozenset()
    now: float = 0.0
    built: list[tuple[str, Schedule]] = field(default_factory=list)

    def build(self, one: OpenCluster, schedule: Schedule) -> Built:
        self.now += 1.0
        self.built.append((one.key, schedule))
        if schedule in self.refused:
            raise BuildError("no")
        seconds = self.times.get(schedule, MS)
        swing = itertools.cycle([1 + self.noise, 1 + self.noise / 2, 1.0])
        runs = itertools.count()

        def run() -> float:
            return (seconds if next(runs) < self.lasting else MS) * next(swing)

        return Built(str(schedule), run)

    def clock(self) -> float:
        return self.now


def task(one: OpenCluster = MATMUL, known: Tuned | None = None, seconds: float = 1.0) -> Task:
    return Task(one, choose_schedule(one, AVX512), known, seconds)


def stored(schedule: Schedule, one: OpenCluster = MATMUL) -> str:
    return spell_in_positions(one, schedule)


def run(bench: FakeBench, *tasks: Task, budget: float = 1000):
    return list(Search(bench, AVX512, bench.clock).run(tasks, budget))


def neighbour(one: OpenCluster = MATMUL, place: int = 2) -> Schedule:
    """Some candidate of the first heats."""
    bench = FakeBench()
    run(bench, task(one))
    return bench.built[place][1]


def test_where_nothing_is_faster_the_cost_model_s_choice_stays():
    (finding,) = run(FakeBench(), task())
    assert finding.tuned == Tuned(stored(choose_schedule(MATMUL, AVX512)), 0.0, finished=True)
    assert finding.saved == 0


def test_all_that_is_tried_is_new_and_in_the_space():
    bench = FakeBench()
    run(bench, task(CONV))
    tried = [schedule for _, schedule in bench.built]
    assert tried[0] == choose_schedule(CONV, AVX512)
    assert len(set(tried)) == len(tried) > HEAT
    known = [Tuned(stored(schedule, CONV), 0.1) for schedule in tried]
    assert [find_tuned(CONV, one, AVX512) for one in known] == tried


def test_what_is_faster_is_found_and_its_gain_measured():
    fast = neighbour()
    findings = run(FakeBench({fast: 0.8 * MS}), task(seconds=2.0))
    assert [f.tuned.schedule for f in findings] == [stored(fast)] * 2
    assert [f.tuned.finished for f in findings] == [False, True]
    assert findings[0].tuned.gain == pytest.approx(0.2)
    assert findings[0].saved == pytest.approx(0.4)
    assert findings[0].after == str(fast)


def test_later_moves_start_from_the_best():
    fast = neighbour()
    bench = FakeBench({fast: 0.8 * MS})
    run(bench, task())
    named = InitialLoops((MATMUL.cluster,))
    later = bench.built[bench.built.index((MATMUL.key, fast)) + HEAT :]
    tile = read_tile(fast, named)
    orders = [p for _, p in later if read_tile(p, named) == tile]
    assert orders


def test_a_small_gain_is_none():
    few = {neighbour(place=k): 0.98 * MS for k in range(1, 4)}
    (finding,) = run(FakeBench(few), task())
    assert finding.tuned.gain == 0


def test_disturbed_runs_do_not_count():
    fast = neighbour()
    for times in ({}, {fast: 0.8 * MS}):
        quiet, noisy = (run(FakeBench(times, noise), task())[-1].tuned for noise in (0.0, 3.0))
        assert quiet == noisy


def test_a_lucky_run_must_be_repeated():
    lucky = neighbour()
    bench = FakeBench({lucky: 0.5 * MS}, lasting=MOST_TURNS)
    (finding,) = run(bench, task())
    assert finding.tuned.gain == 0


def test_candidates_that_cannot_be_built_are_passed_over():
    bad, fast = neighbour(place=1), neighbour(place=3)
    findings = run(FakeBench({fast: 0.5 * MS}, refused=frozenset([bad])), task())
    assert findings[-1].tuned.schedule == stored(fast)


def test_a_kernel_that_cannot_be_built_is_finished():
    chosen = choose_schedule(MATMUL, AVX512)
    bench = FakeBench(refused=frozenset([chosen]))
    (finding,) = run(bench, task())
    assert finding.tuned == Tuned(stored(chosen), 0.0, finished=True)
    assert len(bench.built) == 1


def test_what_is_known_is_where_a_search_begins():
    fast, faster = neighbour(), neighbour(place=4)
    known = Tuned(stored(fast), 0.2)
    bench = FakeBench({fast: 0.8 * MS, faster: 0.4 * MS})
    findings = run(bench, task(known=known))
    assert [p for _, p in bench.built[:2]] == [choose_schedule(MATMUL, AVX512), fast]
    assert findings[-1].tuned.schedule == stored(faster)
    assert findings[-1].tuned.gain == pytest.approx(0.6)
    assert findings[-1].saved == pytest.approx(0.5)


def test_the_budget_is_kept():
    bench = FakeBench()
    run(bench, task(MATMUL), task(CONV), budget=5)
    assert bench.now == 5
    assert run(FakeBench(), task(), budget=0) == []


def test_kernels_that_take_most_come_first_and_oftener():
    bench = FakeBench()
    run(bench, task(MATMUL, seconds=1.0), task(CONV, seconds=2.5), budget=3 * (HEAT + 1))
    keys = [key for key, _ in bench.built]
    assert keys[0] == CONV.key
    assert keys.count(CONV.key) > keys.count(MATMUL.key) > 0


def test_who_is_hopeless_leaves_a_race():
    counts = [0, 0, 0]

    def runner(k, seconds):
        def run():
            counts[k] += 1
            return seconds

        return run

    times = compare([runner(0, 1e-3), runner(1, 1.1e-3), runner(2, 2e-3)])
    assert times == [1e-3, 1.1e-3, 2e-3]
    assert counts[0] == counts[1] > counts[2]
