"""Arrays with a strip of memory on either side: what is written or read there is noticed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STRIP = 1 << 12, 1 << 24
"""Bytes on either side: at least, and at most; in between as many as the array has."""


@dataclass(frozen=True)
class Guarded:
    """An array, the memory before and behind it, and what that held."""

    array: np.ndarray
    strips: tuple[np.ndarray, np.ndarray]
    held: tuple[np.ndarray, np.ndarray]

    @property
    def is_intact(self) -> bool:
        """Whether nothing was written next to the array."""
        return all(map(np.array_equal, self.strips, self.held))


def guard(values: np.ndarray, rng: np.random.Generator) -> Guarded:
    """A copy of an array between two strips of random bytes; it starts at a cache line."""
    size = values.nbytes
    strip = min(max(size // 64 * 64, STRIP[0]), STRIP[1])
    whole = np.empty(size + 2 * strip + 64, np.uint8)
    start = -whole.ctypes.data % 64
    before, inside, behind = np.split(whole[start:], [strip, strip + size])
    behind = behind[:strip]
    for part in (before, behind):
        part[:] = rng.integers(0, 256, strip, np.uint8)
    inside[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    array = inside.view(values.dtype).reshape(values.shape)
    return Guarded(array, (before, behind), (before.copy(), behind.copy()))
