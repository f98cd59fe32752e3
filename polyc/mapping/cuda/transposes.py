"""Transposes by way of shared memory: what is read along one loop, and written along another.

    y[j, i] = f(x[i, j])

    block   floor(i/32), floor(j/32)
    └ shared                         tile[i, j]: 32 x 32, swizzled
      ├ stage    thread ─ tile[i, j] = x[i, j]       a warp along j
      └ finish   thread ─ y[j, i] = f(tile[i, j])    a warp along i

Both accesses to memory are of neighbours then. A warp meets a row of the tile on the one side and a
column on the other; the swizzle puts either into 32 banks. The copy is a statement like any other.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass, replace

import islpy as isl

from polyc.loopnest.nodes import Swizzle
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.poly.affine import estimated_extents
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Statement

SIDE = 32
"""Of a tile: a warp has a row of it."""

DOWN = 8
"""Warps of a block, each with every eighth row."""

DIAGONAL = Swizzle(bits=5, to=0, source=5)
"""Element j of row i at place j xor i, so that a column is in 32 banks as well."""


@dataclass(frozen=True)
class Transpose:
    """A statement's loops along which it writes, and reads `loads`, with unit step."""

    writes: int
    reads: int
    loads: tuple[Load, ...]


def find_transpose(
    cluster: Cluster, arrays: Table[str, Array], storages: Table[str, Storage]
) -> Transpose | None:
    """The transpose that a cluster is; None if it is more than that, or too small for tiles."""
    if len(cluster.statements) != 1 or cluster.has_reuse:
        return None
    (s,) = cluster.statements
    if s.reduction or len(cluster.shared) < len(s.iterators):
        return None
    if any(load.dynamic or load.array == s.array for load in s.loads):
        return None
    written, *read = compute_strides(s, arrays, storages)
    sizes = estimated_extents(s.domain)
    large = [p for p, n in enumerate(sizes) if n >= SIDE]
    writes = next((p for p in large if written.steps[p] == 1), None)
    if writes is None:
        return None
    turned = {
        p: tuple(
            load
            for load, one in zip(s.loads, read, strict=True)
            if one.steps[p] == 1 and one.steps[writes] not in (0, 1)
        )
        for p in large
        if p != writes
    }
    reads = max(turned, key=lambda p: len(turned[p]), default=None)
    if reads is None or not turned[reads]:
        return None
    return Transpose(writes, reads, turned[reads])


def map_transpose(
    found: Transpose, cluster: Cluster, private: frozenset[str], arrays: Table[str, Array]
) -> Mapped:
    """The tree of a transpose."""
    (s,) = cluster.statements
    loads = {load: k for k, load in enumerate(dict.fromkeys(found.loads))}
    staged = [_stage(s, load, k, found, arrays) for load, k in loads.items()]
    tiles = {load: copy for load, (copy, _) in zip(loads, staged, strict=True)}

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e not in tiles:
            return e
        copy = tiles[e]
        same = ", ".join(s.iterators)
        index = copy.write.pullback_pw_multi_aff(
            isl.PwMultiAff(f"{{ {s.name}[{same}] -> {copy.name}[{same}] }}")
        )
        return Load(copy.array, index.intersect_domain(e.index.domain()), e.dtype)

    finish = replace(s, value=rebuild(s.value, leaf))
    statements = (*(copy for copy, _ in staged), finish)
    i, j = s.iterators[found.writes], s.iterators[found.reads]
    kept = (p for p in range(len(s.iterators)) if p not in (found.writes, found.reads))
    grid = [Loop("block", s.iterators[p]) for p in kept]
    grid += [Loop("block", f"floor({k}/{SIDE})") for k in (i, j)]
    parts = [Part([copy], _threads(i, j)) for copy, _ in staged]
    whole = Cluster(statements, (), has_reuse=False)
    made = {array.name: array for _, array in staged}
    return Mapped(
        whole,
        made,
        private_of(whole, private, made),
        build_tree(Part(statements, grid, "shared", [*parts, Part([finish], _threads(j, i))])),
        SIDE * DOWN,
        f"transpose: {SIDE}x{SIDE} of {i}, {j} a block, by way of shared memory",
        swizzles=dict.fromkeys(made, DIAGONAL),
    )


def _threads(slow: str, fast: str) -> list[Loop]:
    """A warp along one loop, and warps along the other."""
    return [
        Loop("thread", f"{slow} mod {DOWN}", DOWN, SIDE),
        Loop("thread", f"{fast} mod {SIDE}", SIDE),
        Loop("unroll", f"floor(({slow} mod {SIDE})/{DOWN})"),
    ]


def _stage(
    s: Statement, load: Load, number: int, found: Transpose, arrays: Table[str, Array]
) -> tuple[Statement, Array]:
    """The statement that copies what a load reads, and the array that it copies to."""
    name = f"{s.array}_tile{number}"
    while name in arrays:
        name += "_"
    sizes = estimated_extents(s.domain)
    order = [p for p in range(len(sizes)) if p not in (found.writes, found.reads)]
    order += [found.writes, found.reads]
    array = Array(name, load.dtype, tuple(sizes[p] for p in order), "temporary")
    title = f"S_{name}"
    places = ", ".join(s.iterators[p] for p in order)
    joined = ", ".join(s.iterators)
    onto = isl.PwMultiAff(f"{{ {title}[{joined}] -> {s.name}[{joined}] }}")  # T -> S
    index = load.index.pullback_pw_multi_aff(onto)
    domain = s.domain.intersect(load.index.domain()).preimage_pw_multi_aff(onto)
    write = isl.PwMultiAff(f"{{ {title}[{joined}] -> {name}[{places}] }}")
    value = Load(load.array, index, load.dtype)
    return Statement(title, domain, s.iterators, name, write, value, None, s.origin), array
