"""Promotion: arrays that live and die inside one outer tile need no memory.

An array of the cluster that nobody else reads is given local storage at the `scope` mark: for each
value of the loops around the mark (the prefix), the elements touched there fit a box of fixed size,

    footprint  { prefix -> A }        local index  { S -> A - lower corner(prefix(S)) }

so the accumulators of a register tile, or the row that a softmax keeps, become small local arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import islpy as isl
import numpy as np

from polyc.memory.layout import accesses
from polyc.poly.tree import MARK
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array

LARGEST_LOCAL = 32 * 1024
"""Bytes of one local array: several of them fit any thread's stack and the L1 or L2 cache."""


@dataclass(frozen=True)
class LocalArray:
    """Local storage for an array: its box, and where each access of a statement falls in it."""

    name: str
    source: str
    dtype: np.dtype
    shape: tuple[int, ...]
    corner: isl.PwMultiAff  # prefix -> A: the element stored at index 0
    prefix: Mapping[str, isl.PwMultiAff]  # statement name -> { S -> prefix }

    def place(self, statement: str, index: isl.PwMultiAff) -> isl.PwMultiAff:
        """# S -> L, for an access  S -> A."""
        origin = self.corner.pullback_pw_multi_aff(self.prefix[statement])
        moved = isl.MultiPwAff.from_pw_multi_aff(index).sub(
            isl.MultiPwAff.from_pw_multi_aff(origin)
        )
        placed = isl.PwMultiAff.from_multi_pw_aff(moved)
        return placed.set_tuple_id(isl.dim_type.out, isl.Id(self.name))


def promote_to_locals(
    schedule: isl.Schedule, cluster: Cluster, private: frozenset[str], arrays: Mapping[str, Array]
) -> dict[str, LocalArray]:
    """Local arrays for those of `private` whose footprint under the `scope` mark is a small box."""
    node = _find_scope(schedule.get_root())
    prefix = node.get_prefix_schedule_union_map()  # S -> prefix
    functions = {
        s.name: isl.PwMultiAff.from_map(
            prefix.intersect_domain(isl.UnionSet.from_set(s.domain)).as_map()
        )
        for s in cluster.statements
    }
    # The prelude runs outside the scope: what it fills must be in memory.
    outside = {s.array for s in cluster.prelude}
    promoted = {}
    for name in sorted(private - outside):
        local = _promote(arrays[name], cluster, functions)
        if local is not None:
            promoted[name] = local
    return promoted


def _find_scope(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """The `scope` mark of a tree; every cluster has exactly one."""
    stack = [node]
    while stack:
        top = stack.pop()
        if top.get_type() == MARK and top.mark_get_id().get_name() == "scope":
            return top
        stack.extend(top.child(k) for k in range(top.n_children()))
    raise AssertionError("the tree has no scope mark")


def _promote(
    array: Array, cluster: Cluster, functions: Mapping[str, isl.PwMultiAff]
) -> LocalArray | None:
    footprint: isl.Map | None = None  # prefix -> A
    for s in cluster.statements:
        for name, index, _ in accesses(s):
            if name != array.name:
                continue
            touched = functions[s.name].as_map().reverse().apply_range(index.as_map())
            footprint = touched if footprint is None else footprint.union(touched)
    if footprint is None or any(ld.dynamic for s in cluster.statements for ld in s.loads):
        return None
    footprint = footprint.coalesce()
    corners = isl.PwAffList.alloc(isl.DEFAULT_CONTEXT, len(array.shape))
    shape = []
    for d in range(len(array.shape)):
        low, high = footprint.dim_min(d), footprint.dim_max(d)
        extent = high.sub(low).max_val()
        if not extent.is_int():
            return None
        shape.append(int(extent.to_python()) + 1)
        corners = corners.add(low)
    if prod(shape) * array.dtype.itemsize > LARGEST_LOCAL:
        return None
    corner = isl.MultiPwAff.from_pw_aff_list(footprint.get_space(), corners)
    return LocalArray(
        f"{array.name}_local",
        array.name,
        array.dtype,
        tuple(shape),
        isl.PwMultiAff.from_multi_pw_aff(corner),
        functions,
    )
