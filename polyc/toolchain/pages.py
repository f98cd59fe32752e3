"""Memory in huge pages, for what a model streams through: its weights, and its arena.

A core that reads weights once a call is bound by how far the hardware prefetches, which stops at
the end of a page: one core read 150 MB at 19 GB/s in pages of 4 KiB and at 31 GB/s in pages
of 2 MiB (Linux, madvise).
"""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

from polyc.errors import TooLarge

HUGE = 2 << 20
"""Bytes of a huge page on x86-64 and on most arm64 systems."""


def allocate_pages(size: int) -> np.ndarray:
    """`size` bytes of zeroes, aligned to 64 bytes; in huge pages if that many fill one.

    Raises TooLarge where the system has not as much.
    """
    try:
        if size < HUGE:
            return _aligned(np.zeros(size + 64, np.uint8), 64)[:size]
        region = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (MemoryError, OSError, OverflowError) as error:
        raise TooLarge(f"there is no memory for {size} bytes; use smaller sizes") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # the kernel has none: ordinary pages do
            region.madvise(mmap.MADV_HUGEPAGE)
    return _aligned(np.frombuffer(region, np.uint8), HUGE)[:size]


def touch_pages(size: int) -> np.ndarray:
    """`allocate_pages`, of memory that the system has given before it is first written.

    That takes it 0.1 ms a megabyte and more, for which a call would wait.
    """
    buffer = allocate_pages(size)
    buffer[:: mmap.PAGESIZE] = 0
    return buffer


def _aligned(buffer: np.ndarray, alignment: int) -> np.ndarray:
    return buffer[-buffer.ctypes.data % alignment :]
