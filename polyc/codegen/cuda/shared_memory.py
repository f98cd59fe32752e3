"""Where the shared arrays of a kernel lie, and the barriers in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from polyc.codegen.cuda.tensor_copies import BARRIER_BYTES, Arrivals, find_arrivals
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import Block, For, walk_nodes

STATIC_SHARED = 47 * 1024
"""Bytes of shared memory without asking: 48 KiB, less what combining across warps takes."""

ALIGNED = 1024
"""Bytes that shared arrays are aligned to: eight rows of the banks, after which swizzles repeat."""


@dataclass(frozen=True)
class Shared:
    """The shared memory of a kernel, in what a launch reserves.

    offsets: of arrays, empty if they take what every block has; reserved: bytes. by_groups: whether
    warpgroups multiply out of it; needs_fences: what threads have written before. arrivals: the
    barriers that count what boxes bring.
    """

    offsets: Mapping[str, int] = field(default_factory=dict)
    reserved: int = 0
    by_groups: bool = False
    needs_fences: bool = False
    arrivals: Arrivals | None = None


def place_shared(block: Block) -> Shared:
    """The shared arrays of a kernel whose unrolled loops are these, one behind the other.

    Where warpgroups multiply they are laid out by hand; or else, only if they do not fit what every
    block has.
    """
    offsets, end = {}, 0
    for node in walk_nodes(block):
        for local in node.locals if isinstance(node, Block) else ():
            if local.space == "shared":
                offsets[local.name] = end
                end += -(-prod(local.shape) * local.dtype.itemsize // ALIGNED) * ALIGNED
    by_groups = _has(block, "wgmma")
    if not by_groups and end <= STATIC_SHARED:
        return Shared()
    arrivals = find_arrivals(block, end)
    if arrivals:
        end += arrivals.places * BARRIER_BYTES
    all_boxes = arrivals is not None and arrivals.arrays == len(offsets)
    return Shared(offsets, end, by_groups, by_groups and not all_boxes, arrivals)


def _has(block: Block, kind: LoopKind) -> bool:
    return any(isinstance(node, For) and node.kind == kind for node in walk_nodes(block))
