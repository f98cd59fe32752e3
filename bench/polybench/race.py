"""One kernel, all engines in turns, in a process of its own: a crash costs one row."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.polybench.compilers import OURS, REFERENCE, Call, Engine, NotThere, find_engines
from bench.polybench.kernels import ALL
from polyc.commands.bench import settle
from polyc.run.reference import relative_error

TOLERANCE, OF_SINGLES = 1e-7, 1e-5
"""How far a result may be from gcc's, relative to the largest: what reordered sums explain."""

WARM = 1.0
"""A first call that is shorter than this many seconds is not counted."""


@dataclass(frozen=True)
class Race:
    """What is measured: an engine has so many samples, or so many seconds, and one at least.

    engines: those that take part, by name; none stands for all that are there.
    """

    size: str
    threads: int = 1
    rounds: int = 7
    seconds: float = 4.0
    cpu_time: bool = False
    patience: float = 900.0
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A kernel: the median of each engine in seconds, and why others have none."""

    kernel: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    compilers: tuple[str, ...] = ()

    @property
    def best(self) -> float | None:
        """The seconds of the quickest compiler beside polyc."""
        others = [self.seconds[c] for c in self.compilers if c in self.seconds and c != OURS]
        return min(others, default=None)

    @property
    def ratio(self) -> float | None:
        """The best compiler's time over polyc's; None if either has failed."""
        ours, best = self.seconds.get(OURS), self.best
        return None if ours is None or best is None else best / ours


def race(kernel: str, rules: Race) -> Row:
    """Measure one kernel in a new process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(there, kernel, rules), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(rules.patience):
            return Row(kernel, failed={OURS: f"not done after {rules.patience:.0f} s"})
        return here.recv()
    except EOFError:
        process.join()
        return Row(kernel, failed={OURS: f"its process died with {process.exitcode}"})
    finally:
        process.kill()
        process.join()
        here.close()


def _serve(connection: Connection, kernel: str, rules: Race) -> None:
    if hasattr(os, "sched_setaffinity"):  # no engine may use more cores than it has threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: rules.threads])
    connection.send(measure(kernel, rules))
    connection.close()


def choose_engines(rules: Race) -> dict[str, Engine]:
    """Those that take part, in the order of a table; LookupError for one that is not there."""
    found = find_engines(rules.threads)
    for name in rules.engines:
        if name not in found:
            raise LookupError(f"no engine is called {name}; there are {', '.join(found)}")
    chosen = rules.engines or tuple(found)
    return {n: e for n, e in found.items() if n in chosen or n in (OURS, REFERENCE)}


def measure(kernel: str, rules: Race) -> Row:
    """All engines that are there take turns on one kernel; each starts from the same data."""
    problem = ALL[kernel]
    given = problem.make(*problem.sizes[rules.size])
    engines = choose_engines(rules)
    compilers = tuple(e.name for e in engines.values() if e.compiler)
    calls: dict[str, Call] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="polybench-") as folder:
        for k, engine in enumerate(engines.values()):
            try:
                calls[engine.name] = engine.open(
                    problem, given, rules.threads, Path(folder, str(k))
                )
            except NotThere as reason:
                failed[engine.name] = str(reason)
            except Exception as error:  # an engine's, whatever it is, is a figure that is missing
                failed[engine.name] = _shown(error)
        samples = _take_turns(calls, given, problem.results, rules, failed)
    medians = {name: statistics.median(s) for name, s in samples.items() if name not in failed}
    return Row(kernel, medians, failed, compilers)


def _take_turns(
    calls: Mapping[str, Call],
    given: Mapping[str, Any],
    results: tuple[str, ...],
    rules: Race,
    failed: dict[str, str],
) -> dict[str, list[float]]:
    """The samples of each engine. The first call of each is compared with the reference's."""
    clock = time.process_time if rules.cpu_time else time.perf_counter
    work = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
    order = sorted(calls, key=lambda name: name != REFERENCE)
    samples: dict[str, list[float]] = {name: [] for name in order}
    spent = dict.fromkeys(order, 0.0)
    reference: dict[str, np.ndarray] = {}
    for number in range(rules.rounds + 1):
        for name in order:
            if name in failed or (samples[name] and spent[name] > rules.seconds):
                continue
            try:
                taken = _time(calls[name], given, work, clock)
            except Exception as error:
                failed[name] = _shown(error)
                continue
            if number == 0:
                if name == REFERENCE:
                    reference = {n: work[n].copy() for n in results}
                if problem := _differs(work, reference):
                    failed[name] = problem
            if number or taken > WARM:
                samples[name].append(taken)
                spent[name] += taken
            settle()
    return samples


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _time(
    call: Call, given: Mapping[str, Any], work: Mapping[str, Any], clock: Callable[[], float]
) -> float:
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            work[name][...] = value
    start = clock()
    call(work)
    return clock() - start


def _differs(work: Mapping[str, Any], reference: Mapping[str, np.ndarray]) -> str | None:
    """What is wrong with results, if anything is."""
    for name, right in reference.items():
        error = relative_error(work[name], right)
        if not error <= (OF_SINGLES if right.dtype == np.float32 else TOLERANCE):
            return f"{name} differs from that of {REFERENCE} by {error:.1e} of its largest element"
    return None
