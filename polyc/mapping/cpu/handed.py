"""What it costs, and saves, to hand arrays from part to part of a kernel, tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod

from polyc.mapping.cpu.contraction.loop_order import L2_SHARE, Operand, list_operands, stays_near
from polyc.mapping.stored_kernel import StoredKernel
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array
from polyc.target.costs import far_bytes, memory_bytes, near_bytes
from polyc.target.machine import Target


def saved_cycles(size: int, longest: int, target: Target) -> float:
    """What it takes to write so many bytes beyond the first-level cache, and to read them.

    longest: as many as there are in a long call, which decides whether the second level keeps them.
    Memory is read before it is written as well, line by line.
    """
    if longest <= target.l2 // 2:
        return 2 * size / near_bytes(target)
    if stays_near(size, target):
        return 2 * size / far_bytes(target)
    return 3 * size / memory_bytes(target)


def extra_bytes(kernel: StoredKernel, arrays: Mapping[str, Array], target: Target) -> int:
    """What the parts fetch more often than they would alone."""
    fetched: list[tuple[Operand, int, int, Sequence[int | None]]] = []
    for part in kernel.parts:
        cluster = part.cluster
        first = cluster.statements[0].name
        around = [_position(cluster, loop[first]) for loop in kernel.loops]
        inside = list(cluster.extents)
        for d, size in zip(around, kernel.sizes, strict=True):
            if d is not None:
                inside[d] = size
        for operand in list_operands(cluster, arrays):
            if operand.array not in kernel.private:
                whole, tile = operand.footprint(cluster.extents), operand.footprint(inside)
                fetched.append((operand, whole, tile, around))
    handed = sum(arrays[name].bytes for name in kernel.handed)
    counts = [ceil(n / size) for n, size in zip(kernel.extents, kernel.sizes, strict=True)]
    level = sum(tile for _, _, tile, _ in fetched) + handed // prod(counts)
    extra = 0
    for operand, whole, tile, positions in fetched:
        outside = list(zip(positions, counts, strict=True))
        while outside and level <= L2_SHARE * target.l2:
            d, _ = outside[-1]
            if d is not None and operand.moves_with(d):
                break
            outside.pop()
        extra += max(0, tile * prod(count for _, count in outside) - whole)
    return extra


def _position(cluster: Cluster, iterator: int) -> int | None:
    """The shared loop of a cluster that is an iterator of its first statement."""
    first = cluster.statements[0].name
    found = (d for d, loop in enumerate(cluster.shared) if loop[first] == iterator)
    return next(found, None)
