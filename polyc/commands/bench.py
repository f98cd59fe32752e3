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


def measure_in_turn(
    calls: Mapping[str, Callable[[], object]], budget: float = 1.0, least: int = 5
) -> dict[str, Timing]:
    """Each call once to warm up, then rounds of one call each until `budget` seconds are spent.

    There are at least `least` rounds. Taking turns, all of them meet the same noise.
    """
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + budget
    rounds = 0
    while rounds < least or time.perf_counter() < deadline:
        rounds += 1
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
