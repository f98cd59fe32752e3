"""How a kernel is launched on a GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """One `__global__` function, its blocks, the threads of a block, and their memory.

    blocks, threads: extents along x, y, z; shared_bytes: dynamic shared memory of a block; what is
    declared with PC_SHARED is not counted.
    """

    function: str
    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_bytes: int = 0

    def __str__(self) -> str:
        return f"{_show(self.blocks)} blocks of {_show(self.threads)}"


def _show(extents: tuple[int, int, int]) -> str:
    """(8, 4, 1) -> "8x4" """
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(map(str, kept))
