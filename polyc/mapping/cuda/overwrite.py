"""Rows that overwrite rows: what a part hands on lies where it was handed something.

    max over S[i, :]; e = exp(S[i, :] - max); P[i, :] = e / sum     ->     … S[i, :] = e / sum

A block's shared memory is what limits its rows. Where a part reads the rows of one array, and
writes as many of the same kind only when it has read them for the last time, one array does for
both. What makes that right is seen here by the form of accesses, and proven on the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.mapping.cpu.fuse_tiles import common_loops
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.strides import accesses
from polyc.names import show
from polyc.poly.affine import outputs, plain_iterator
from polyc.schedule.keeping import KeepInPlace
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import spell
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Statement


def find_overwritten(
    kernel: StoredKernel, arrays: Mapping[str, Array]
) -> tuple[tuple[str, str], ...]:
    """(what a part reads, what it writes in its place), one after the other."""
    for position, part in enumerate(kernel.parts):
        for old, new in _find_pairs(part, kernel, arrays):
            if not any(old in later.arrays for later in kernel.parts[position + 1 :]):
                left = overwrite_rows(kernel, ((old, new),))
                return ((old, new), *find_overwritten(left, arrays))
    return ()


def overwrite_rows(kernel: StoredKernel, pairs: Sequence[tuple[str, str]]) -> StoredKernel:
    """The kernel with handed rows renamed to those that they take the place of."""
    for old, new in pairs:
        parts = tuple(_renamed(one, new, old) for one in kernel.parts)
        kernel = replace(kernel, parts=parts, handed=kernel.handed - {new})
    return kernel


def _with_common_loops(kernel: StoredKernel) -> StoredKernel:
    """The kernel with the loops that all of its parts share, as strategies have it."""
    first, *rest = kernel.parts
    whole = StoredKernel((first,))
    for part in rest:
        whole = StoredKernel((*whole.parts, part), common_loops(whole, part))
    return replace(kernel, loops=whole.loops, sizes=(1,) * len(whole.loops))


def _find_pairs(
    part: StoredCluster, kernel: StoredKernel, arrays: Mapping[str, Array]
) -> list[tuple[str, str]]:
    """(what a part reads, what it writes in its place) that it could be."""
    if part.cluster.has_reuse or not kernel.loops:
        return []
    statements = part.cluster.statements
    pairs = []
    for new in sorted({s.array for s in statements} & kernel.handed):
        for old in sorted(kernel.handed - {s.array for s in statements}):
            kinds = {(arrays[name].shape, arrays[name].dtype) for name in (old, new)}
            last = [k for k, s in enumerate(statements) if any(x.array == old for x in s.loads)]
            first = next(k for k, s in enumerate(statements) if s.array == new)
            walked = _rows_of(part, kernel, {old, new})
            if last and max(last) < first and len(kinds) == 1 and len(walked) == 1:
                pairs.append((old, new))
    return pairs


def _rows_of(part: StoredCluster, kernel: StoredKernel, names: set[str]) -> set[frozenset[object]]:
    """In which dimensions accesses to some arrays walk which common loops; all, or it is none."""
    found: set[frozenset[object]] = set()
    for s in part.cluster.statements:
        loops = {loop[s.name]: k for k, loop in enumerate(kernel.loops)}
        sizes = s.estimated_extents
        moving = {k for p, k in loops.items() if sizes[p] > 1}
        for name, index, _ in accesses(s):
            if name not in names:
                continue
            plain = [plain_iterator(f) for f in outputs(index)]
            walked = {
                (d, loops[p[0]])
                for d, p in enumerate(plain)
                if p is not None and p[0] in loops and p[1] == 0
            }
            complete = moving <= {k for _, k in walked}
            found.add(frozenset(walked) if complete else frozenset([s.name, name]))
    return found


def _renamed(part: StoredCluster, old: str, new: str) -> StoredCluster:
    """The part with its accesses to an array turned to another, element by element."""
    if old not in part.arrays:
        return part

    places = ", ".join(f"i{d}" for d in range(len(part.storages[old].permutation)))
    onto = isl.PwMultiAff(f"{{ {old}[{places}] -> {new}[{places}] }}")  # A -> B

    def send(index: isl.PwMultiAff) -> isl.PwMultiAff:
        return onto.pullback_pw_multi_aff(index)

    def leaf(e: Expr) -> Expr:
        if isinstance(e, Load) and e.array == old:
            return replace(e, array=new, index=send(e.index))
        return e

    def rename(s: Statement) -> Statement:
        s = replace(s, value=rebuild(s.value, leaf))
        return replace(s, array=new, write=send(s.write)) if s.array == old else s

    cluster = replace(part.cluster, statements=tuple(map(rename, part.cluster.statements)))
    names = tuple(dict.fromkeys(new if a == old else a for a in part.arrays))
    storages = {new if a == old else a: storage for a, storage in part.storages.items()}
    return replace(part, cluster=cluster, arrays=names, storages=storages)


def overwrite_named(
    kernel: StoredKernel, schedule: Schedule, arrays: Mapping[str, Array]
) -> StoredKernel:
    """The kernel with rows where a schedule keeps them: in place of others.

    Raises IllegalSchedule for rows whose place is not free by then.
    """
    if kernel.given:
        kernel = _with_common_loops(kernel)
    for directive in schedule.directives:
        if not isinstance(directive, KeepInPlace):
            continue
        pair = directive.home, directive.array
        able = find_overwritten(kernel, arrays)
        if pair not in able:
            could = "; ".join(f"{show(new)} in place of {show(old)}" for old, new in able)
            raise IllegalSchedule(
                f"{spell(directive)}: rows take the place of others of their shape, which are read "
                f"for the last time before; here that can be {could or 'none'}"
            )
        kernel = overwrite_rows(kernel, [pair])
    return kernel
