"""Waiting for other threads of this process without missing a signal."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")

TURN = 0.1
"""Seconds of a wait in which no signal may be seen."""


def result_of(future: Future[T]) -> T:
    """What another thread computes, waited for in turns.

    Python handles signals in its main thread alone, between two of its steps. One that arrives as
    that thread begins to wait, or that Linux gives to another thread, is seen when the wait ends:
    a process that was told to end as it began to wait for compilers waited for these.
    """
    while not future.done():
        wait([future], TURN)
    return future.result()
