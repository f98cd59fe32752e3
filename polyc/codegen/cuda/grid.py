"""A kernel for a GPU as text, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass

from polyc.codegen.cuda.tensor_copies import TensorMap
from polyc.printing.scope import Uses


@dataclass(frozen=True)
class Grid:
    """One `__global__` function, its blocks, the threads of a block, and their memory.

    blocks, threads: extents along x, y, z; shared_bytes: dynamic shared memory of a block; what is
    declared with PC_SHARED is not counted. maps: what it is given behind the arrays.
    """

    function: str
    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_bytes: int = 0
    maps: tuple[TensorMap, ...] = ()

    def __str__(self) -> str:
        return f"{_show(self.blocks)} blocks of {_show(self.threads)}"


@dataclass(frozen=True)
class DeviceText:
    """The `__global__` functions of a kernel, in the order that they are launched in.

    uses: what `text` needs of the runtime, besides polyc_cuda.cuh itself. Each function takes the
    kernel's parameters, its tensor maps and, last, `int *status`, which an index out of range sets.
    """

    text: str
    uses: Uses
    grids: tuple[Grid, ...]

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether they do the products."""
        return "pc_mma_" in self.text or "pc_wgmma_" in self.text

    @property
    def can_fail(self) -> bool:
        """Whether an index is checked while it runs."""
        return "pc_index(" in self.text


def _show(extents: tuple[int, int, int]) -> str:
    """(8, 4, 1) -> "8x4" """
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(map(str, kept))
