"""Timing calls, alone or several in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated calls."""

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
            f"({len(self.seconds)} runs)"
        )


def measure(call: Callable[[], object], budget: float = 1.0, least: int = 5) -> Timing:
    """Call once to warm up, then at least `least` times and until `budget` seconds are spent."""
    return measure_in_turn({"": call}, budget, least)[""]


COUNTED = 3
"""Calls of a turn that are timed, after the one that is not."""


def measure_in_turn(
    calls: Mapping[str, Callable[[], object]], budget: float = 1.0, least: int = 5
) -> dict[str, Timing]:
    """Rounds of a warm-up call and three that count, of each in turn, for `budget` seconds.

    There are at least `least` rounds. Taking turns, all of them meet the same noise. The warm-up is
    for the threads of the one before: those of some engines go on spinning after a call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + budget
    rounds = 0
    while rounds < least or time.perf_counter() < deadline:
        rounds += 1
        for name, call in calls.items():
            call()
            for _ in range(COUNTED):
                start = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
