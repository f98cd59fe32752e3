"""Which sums of products are cut into partial sums, so that all multiprocessors have some of it.

    y[i, j] += a[i, k] * b[k, j]    ->    parts[p, i, j] += a[i, 16 p + q] * b[16 p + q, j]
                                          y[i, j] += parts[p, i, j]

A block walks the sum of its tile step by step. Where there are few tiles, as in the layers of a
network on one small image, most multiprocessors would have none, and the others long sums. Compared
are the times that the model of waves foresees (`tiles.py`), with what it takes to write the parts
and to read them again, and another launch.
"""

from __future__ import annotations

from math import prod

from polyc.mapping.cuda.contraction import choose_shape
from polyc.mapping.cuda.coordinates.gemm_form import SMALLEST, moving, stored_factor
from polyc.mapping.cuda.tiles import estimate
from polyc.mapping.cuda.warp_tiles import choose_instruction
from polyc.poly.affine import moves
from polyc.scop.expr import Call, Expr
from polyc.scop.scop import Statement
from polyc.target.cuda import LAUNCH, CudaTarget

WORTH = 0.75
"""Of the time without parts; the model is no better than that."""

SHORTEST = 64
"""Steps of a sum that are left in a part: four tiles of a pipeline."""

MOST = 64
"""Parts, which are summed up one after the other."""


def find_parts(s: Statement, target: CudaTarget, tf32: bool) -> tuple[int, int] | None:
    """(position of the iterator to cut, parts of equal size) of an update, if that pays."""
    match s.value:
        case Call("mul", (left, right)) if s.reduction == "add" and s.domain.is_box():
            factors = (left, right)
        case _:
            return None
    extents = s.exact_extents
    if None in extents:
        return None
    sizes = [extent or 0 for extent in extents]
    kept = [moves(column) for column in s.columns[0]]
    sums = [p for p, is_kept in enumerate(kept) if not is_kept]
    sides = [moving(factor) for factor in factors]
    kinds: dict[tuple[bool, bool], int] = {}
    for p in range(len(sizes)):
        if kept[p]:
            kind = (p in sides[0], p in sides[1])
            kinds[kind] = kinds.get(kind, 1) * sizes[p]
    batch = kinds.get((True, True), 1) * kinds.get((False, False), 1)
    rows, columns = kinds.get((True, False), 1), kinds.get((False, True), 1)
    depth = prod(sizes[p] for p in sums)
    if min(rows, columns) < SMALLEST:
        return None
    alone = _seconds((batch, rows, columns, depth), factors, target, tf32)
    best, found = WORTH * alone, None
    for p in sums:
        for parts in range(2, min(sizes[p], MOST) + 1):
            if sizes[p] % parts or depth // parts < SHORTEST:
                continue
            moved = 2 * 4 * parts * batch * rows * columns
            seconds = LAUNCH + moved / target.bandwidth
            seconds += _seconds(
                (batch * parts, rows, columns, depth // parts), factors, target, tf32
            )
            if seconds < best:
                best, found = seconds, (p, parts)
    return found


def _seconds(
    extents: tuple[int, int, int, int], factors: tuple[Expr, Expr], target: CudaTarget, tf32: bool
) -> float:
    """What the model of waves foresees for a product."""
    stored = [stored_factor(factor) or factor for factor in factors]
    dtype = stored[0].dtype if stored[0].dtype == stored[1].dtype else factors[0].dtype
    instruction = choose_instruction(dtype, target, tf32)
    # Slots are multiply-adds of a multiprocessor; those of warps on tensor cores half the peak.
    rate = target.tensor_flops / 4 if instruction else target.flops / 2
    shape = choose_shape(extents, target, instruction)
    return estimate(shape, extents, target) * target.multiprocessors / rate
