"""Timing calls, alone or several in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

COUNTED = 3
"""Samples of a turn, at the least."""

TURN = 0.02
"""Seconds of a turn that count; a slower call makes its turn longer."""

SAMPLE = 1e-4
"""Seconds: calls that take less are timed several together, or the clock would count as well."""

QUIET = 0.002
"""Seconds within which a process that has settled uses next to no time of a core."""

RESTLESS = 0.25
"""Seconds after which one that does not settle is left alone."""


@dataclass(frozen=True)
class Timing:
    """Seconds a call, sampled repeatedly."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    def __str__(self) -> str:
        return (
            f"median {self.median * 1e3:.3f} ms, min {self.best * 1e3:.3f} ms "
            f"({len(self.seconds)} samples)"
        )


def take_turn(call: Callable[[], object]) -> list[float]:
    """Seconds a call: at least COUNTED samples, after calls to warm up that do not count.

    What is warmed up are caches, and the engine's threads, which have gone to sleep since its last
    turn. Behind its last sample the turn waits until they sleep again: those of some engines look
    out for work for a while and would take the next one's cores.
    """
    seconds = _warm_up(call)
    batch = max(1, round(SAMPLE / max(seconds, 1e-9)))
    samples: list[float] = []
    end = time.perf_counter() + TURN
    while len(samples) < COUNTED or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        samples.append((time.perf_counter() - start) / batch)
    settle()
    return samples


def measure(call: Callable[[], object], budget: float = 1.0, least: int = 3) -> Timing:
    """At least `least` turns, and until `budget` seconds are spent."""
    return measure_in_turn({"": call}, budget, least)[""]


def measure_in_turn(
    calls: Mapping[str, Callable[[], object]], budget: float = 1.0, least: int = 3
) -> dict[str, Timing]:
    """Rounds of one turn each, at least `least` and until `budget` seconds are spent.

    Taking turns, all of them meet the same noise.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + budget
    rounds = 0
    while rounds < least or time.perf_counter() < deadline:
        rounds += 1
        for name, call in calls.items():
            seconds[name] += take_turn(call)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def settle() -> bool:
    """Wait until no thread of this process is busy; False if some still are after RESTLESS."""
    end = time.perf_counter() + RESTLESS
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(QUIET)
        if time.process_time() - before < QUIET / 4:
            return True
    return False


def _warm_up(call: Callable[[], object]) -> float:
    """Call at least once and for SAMPLE seconds; the seconds of the quickest call."""
    quickest = float("inf")
    end = time.perf_counter() + SAMPLE
    now = 0.0
    while now < end:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        quickest = min(quickest, now - start)
    return quickest
