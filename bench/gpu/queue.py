"""Calls that are put into a stream, timed so that what is counted is the GPU."""

from __future__ import annotations

import time
from collections.abc import Callable

SPAN = 2e-3
"""Seconds: so much work is queued before it is waited for, which takes some 10 us."""

MOST = 1000


def queue_calls(
    call: Callable[[], object], synchronise: Callable[[], object]
) -> tuple[Callable[[], None], int]:
    """(a function that queues calls and waits for all, how many they are)"""
    call()
    synchronise()
    start = time.perf_counter()
    call()
    synchronise()
    calls = max(1, min(MOST, round(SPAN / (time.perf_counter() - start))))

    def run() -> None:
        for _ in range(calls):
            call()
        synchronise()

    return run, calls
