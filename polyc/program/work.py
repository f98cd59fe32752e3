"""What one execution of a kernel takes, apart from where in a program it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Seconds that one core computes, and bytes that come from where they are slow to fetch.

    pieces: (seconds, iterations that threads may share out) of one part of the kernel after the
    other; near: bytes from the second-level cache; again: bytes that did not stay there, besides
    those that are fetched for the first time; afar: the same of the third-level cache; touched: by
    parameter, bytes that are fetched at least once.
    """

    pieces: tuple[tuple[float, int], ...]
    near: float
    again: float
    afar: float
    touched: tuple[float, ...]
