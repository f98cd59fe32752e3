"""Sums of which an instruction takes several terms in each lane: which loop, and which operands.

    acc[i, j] add= i32(a[i, k]) * i32(b[k, j])       dot4.u8s8 takes  k = 4 q + r  for r in 0 .. 4

The expression is the row's (`loopnest/instructions.py`). Of its operands one is the same in all
lanes, and has the terms next to each other in memory; the other one moves with the lanes, and is a
constant, or is packed, so that the terms of each lane lie together: b[k, j] at  j / tile, k / 4,
j mod tile, k mod 4  (`layout.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from polyc.loopnest.instructions import unify
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.reading import Grouped
from polyc.memory.storage import Storage
from polyc.memory.strides import Strides, accesses, compute_strides, has_known_step
from polyc.poly.affine import coefficients, output
from polyc.schedule.cluster import Cluster
from polyc.scop.factors.narrow_factors import OFTEN
from polyc.scop.scop import Array, Statement
from polyc.target.instructions.rows import VectorInstruction
from polyc.target.machine import Target

SEVERAL = 2
"""Times that an instruction is used in a sum from which on a rest does not matter."""


def find_group(
    one: OpenCluster, vector: int | None, target: Target
) -> tuple[Grouped, tuple[str, ...]] | None:
    """(the loop of a contraction's sum to give to an instruction, the operands to pack for it)."""
    updates = [s for s in one.cluster.statements if s.reduction]
    sums = 2 if one.cluster.summed else 1
    if vector is None or not one.cluster.has_reuse or len(updates) != sums:
        return None
    update = updates[0]
    row = find_row(update, target)
    if row is None:
        return None
    lane = one.cluster.shared[vector][update.name]
    _, *loads = one.strides[update.name]
    same = [a for a in loads if a.steps[lane] == 0]
    moving = [a for a in loads if a.steps[lane] != 0]
    if len(same) != 1 or len(moving) != 1:
        return None
    (size,) = row.inner
    assert isinstance(size, int)
    sizes = update.estimated_extents
    shared = one.cluster.shared_positions(update)
    for p in sorted(set(range(len(sizes))) - {*shared}, key=lambda p: -sizes[p]):
        whole = sizes[p] % size == 0 or sizes[p] >= SEVERAL * size
        inside = [n for q, n in enumerate(sizes) if q > p and q not in shared]
        if not whole or sizes[p] < size or any(n > 1 for n in inside):
            continue  # the sum keeps its order
        packed = _pack_same(same[0], p), _pack_moving(moving[0], lane, p, one.arrays)
        if packed[0] is not None and packed[1] is not None:
            return Grouped(row.name, update.name, p, size), packed[0] + packed[1]
    return None


def find_row(update: Statement, target: Target) -> VectorInstruction | None:
    """The first row of the target that computes what the statement does."""
    for row in target.vectors.instructions:
        known = row.inner and target.vectors.has(row)
        if known and unify(row, update.reduction, update.value) is not None:
            return row
    return None


def count_held(update: Statement, target: Target) -> int:
    """Registers that a sum takes for its products, where these are added by another instruction."""
    row = find_row(update, target)
    lanes = target.lanes(update.value.dtype)
    spelling = row.spell(frozenset(target.vectors.features), lanes) if row else None
    return int(spelling is not None and spelling.count > 1)


def _pack_same(access: Strides, p: int) -> tuple[str, ...] | None:
    """The operand that is the same in all lanes, if neighbours along p are none in memory and it
    has to be packed; None if it cannot be."""
    if access.dimensions[p] is None:
        return None
    if access.free or access.steps[p] == 1:
        return ()
    return (access.array,) if access.reuse >= OFTEN else None


def _pack_moving(
    access: Strides, lane: int, p: int, arrays: Mapping[str, Array]
) -> tuple[str, ...] | None:
    """The operand that moves with the lanes, if it has to be packed; None if it cannot be."""
    across, along = access.dimensions[lane], access.dimensions[p]
    if across is None or along is None or across == along:
        return None
    if access.free and arrays[access.array].kind == "constant":
        return ()
    return (access.array,) if access.reuse >= OFTEN and not access.free else None


def is_grouped(
    cluster: Cluster,
    grouped: Grouped,
    vector: int,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    rows: int | None = None,
) -> bool:
    """Whether all that a statement touches lies as the instruction takes it.

    rows: a shared loop along which everything has a known step.
    """
    update = next(s for s in cluster.statements if s.name == grouped.statement)
    lane, size = cluster.shared[vector][update.name], grouped.size
    written, *loads = compute_strides(update, arrays, storages)
    if rows is not None:
        along = cluster.shared[rows][update.name]
        touched = zip((written, *loads), update.columns, strict=True)
        if not all(has_known_step(c[along], storages.get(a.array)) for a, c in touched):
            return False
    steps = [(a.steps[lane], a.steps[grouped.position]) for a in loads]
    if (written.steps[lane], written.steps[grouped.position]) != (1, 0):
        return False
    indices = [index for _, index, is_write in accesses(update) if not is_write]
    whole = all(
        _begins_with_block(update, index, storages.get(load.array), grouped.position)
        for load, index in zip(loads, indices, strict=True)
    )
    return whole and set(steps) == {(0, 1), (size, 1)}


def _begins_with_block(
    s: Statement, index: isl.PwMultiAff, storage: Storage | None, p: int
) -> bool:
    """Whether iterator p counts from the beginning of a block, where memory is cut along it.

    x[34 g + c], 4 together:  34 is no multiple of 4, so that for g = 1 terms 0 .. 3 lie in two
    """
    for d, size in storage.blocks if storage else ():
        position = output(index, d)
        if coefficients(position)[p] == 0:
            continue
        local = isl.LocalSpace.from_space(position.get_domain_space())
        counted = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, p))
        rest = position.sub(counted).mod_val(isl.Val(size))
        if not rest.non_zero_set().intersect(s.domain).is_empty():
            return False
    return True
