"""A kernel for a GPU as text, and how it is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from polyc.codegen.cuda.tensor_copies import TensorMap
from polyc.loopnest.index import Affine, Condition, const
from polyc.loopnest.index_text import show_index
from polyc.loopnest.nodes import Block, For, extent_of
from polyc.printing.scope import Uses


@dataclass(frozen=True)
class Grid:
    """One `__global__` function, its blocks, the threads of a block, and their memory.

    blocks, threads: extents along x, y, z; shared_bytes: dynamic shared memory of a block; what is
    declared with PC_SHARED is not counted. arrays: of the kernel, those that it is given, None for
    all; maps: what it is given behind them; counters: and behind these, of loops around the launch.
    """

    function: str
    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared_bytes: int = 0
    maps: tuple[TensorMap, ...] = ()
    counters: tuple[str, ...] = ()
    arrays: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{_show(self.blocks)} blocks of {_show(self.threads)}"


@dataclass(frozen=True)
class Steps:
    """A loop of the host around launches: for each value from `lower` to below `upper`, in turn."""

    var: str
    lower: Affine
    upper: Affine
    step: int
    body: tuple[HostNode, ...]


@dataclass(frozen=True)
class When:
    """Launches that are made where a condition on the counters of the host's loops holds."""

    condition: Condition
    then: tuple[HostNode, ...]
    otherwise: tuple[HostNode, ...] = ()


HostNode = int | Steps | When
"""What the host does to launch a kernel: a grid, by its position, or several."""


@dataclass(frozen=True)
class DeviceText:
    """The `__global__` functions of a kernel, and how the host launches them.

    uses: what `text` needs of the runtime, besides polyc_cuda.cuh itself. Each function takes the
    kernel's parameters, its tensor maps, counters and, last, `int *status`, which an index out of
    range sets. order: what is launched when; by default all grids one after another.
    """

    text: str
    uses: Uses
    grids: tuple[Grid, ...]
    order: tuple[HostNode, ...] | None = None

    @property
    def launched(self) -> tuple[HostNode, ...]:
        """What the host does, node by node."""
        return tuple(range(len(self.grids))) if self.order is None else self.order

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


def split_blocks(block: Block) -> tuple[list[For], Block]:
    """The loops over blocks, which are outermost and directly inside one another, and the rest."""
    loops: list[For] = []
    while not block.locals and len(block.body) == 1:
        (node,) = block.body
        if isinstance(node, Block):
            block = node
        elif isinstance(node, For) and node.kind == "block":
            loops.append(node)
            block = node.body
        else:
            break
    return loops, block


def number_blocks(loops: Sequence[For]) -> Iterator[tuple[str, str]]:
    """(variable, its value) of loops over blocks, which are numbered as one, the last fastest."""
    extents = [extent_of(loop) or 1 for loop in loops]
    for k, loop in enumerate(loops):
        inner = prod(extents[k + 1 :])
        text = "PC_BLOCK_X" if inner == 1 else f"PC_BLOCK_X / {inner}"
        text = f"{text} % {extents[k]}" if k and extents[k] > 1 else text
        text = "0" if extents[k] == 1 else text
        yield loop.var, text if loop.lower == const(0) else f"{text} + {show_index(loop.lower)}"
