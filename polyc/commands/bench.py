"""Timing a compiled model."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
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
    call()
    seconds: list[float] = []
    deadline = time.perf_counter() + budget
    while len(seconds) < least or time.perf_counter() < deadline:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return Timing(tuple(seconds))
