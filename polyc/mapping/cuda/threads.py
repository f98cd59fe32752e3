"""One thread for each iteration of the loops that a cluster shares: right for every cluster.

    y[i, j] = f(x[i, j], b[j])       e = 256 i + j

    block   floor(e/1024)
    └ thread  floor((e mod 1024)/4)
      └ stack                        what a thread keeps: in registers, or on its stack
        └ vector  e mod 4            one load or store of 128 bits

The shared loops are joined into one long one, so that all threads are busy whatever the extents
are, and neighbouring threads touch neighbouring elements of what the last statement writes. Loops
of the statements' own, such as the taps of a pooling, run one after the other in the thread. Where
indices are made of pieces the loops stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import ceil

from polyc.mapping.cuda.coordinates import join_shared
from polyc.mapping.cuda.loops import Loop, Part, build_tree
from polyc.mapping.cuda.mapped import Mapped, private_of
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses, compute_strides
from polyc.poly.affine import estimated_extents, outputs
from polyc.promote.local_arrays import LARGEST_STACK
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget

THREADS = 256
"""Of a block: eight warps, of which eight blocks fill a multiprocessor."""


def map_threads(
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
) -> Mapped:
    """The tree of a cluster whose shared loops carry nothing."""
    order = by_stride(cluster, arrays, storages)
    if order and not is_joinable(cluster):
        return _map_apart(cluster, order, private, target)
    flat, made = join_shared(cluster, order, private, arrays, LARGEST_STACK)
    arrays = {**arrays, **made}
    e = flat.statements[0].iterators[0]
    count = max(estimated_extents(s.domain)[0] for s in flat.statements)
    lanes, threads = _choose_sizes(flat, count, arrays, target)
    size = lanes * threads
    grid = [
        Loop("block", f"floor({e}/{size})"),
        Loop("thread", f"floor(({e} mod {size})/{lanes})", threads),
    ]
    vector = [Loop("vector", f"{e} mod {lanes}")] if lanes > 1 else []
    parts = [Part([s], [*_own_loops(s), *vector]) for s in flat.statements]
    shown = f"threads: {e}" + (f"/{size}, vector {lanes}" if lanes > 1 else f"/{size}")
    return Mapped(
        flat,
        made,
        private_of(flat, private, made),
        build_tree(Part(flat.statements, grid, "stack", parts)),
        threads,
        shown,
    )


def is_joinable(cluster: Cluster) -> bool:
    """Whether accesses stay simple where the shared loops are digits of a number.

    An index that is chosen from pieces, as that of a reflection, has each of them divided; with
    several such indices isl no longer compares two accesses in reasonable time.
    """
    functions = [
        f for s in cluster.statements for _, index, _ in accesses(s) for f in outputs(index)
    ]
    return all(function.n_piece() == 1 for function in functions)


def _map_apart(
    cluster: Cluster, order: list[int], private: frozenset[str], target: CudaTarget
) -> Mapped:
    """The shared loops as they are: the last over threads, and over blocks with the others."""
    statements = cluster.statements

    def walk(d: int, formula: str = "{}") -> dict[str, str]:
        return {s.name: formula.format(s.iterators[cluster.shared[d][s.name]]) for s in statements}

    *outer, last = order
    extent = max(estimated_extents(s.domain)[cluster.shared[last][s.name]] for s in statements)
    threads = target.warp
    while threads < min(extent, THREADS):
        threads *= 2
    grid = [
        *(Loop("block", walk(d)) for d in outer),
        Loop("block", walk(last, f"floor({{}}/{threads})")),
        Loop("thread", walk(last, f"{{}} mod {threads}"), threads),
    ]
    parts = []
    for s in statements:
        shared = cluster.shared_positions(s)
        own = [i for p, i in enumerate(s.iterators) if p not in shared]
        parts.append(Part([s], [Loop("sequential", i) for i in own]))
    tree = build_tree(Part(statements, grid, "stack", parts))
    return Mapped(cluster, {}, private, tree, threads, f"threads: loops apart, {threads} a block")


def _own_loops(s: Statement) -> list[Loop]:
    """The loops of a statement inside a thread, all but the joined one."""
    return [Loop("sequential", i) for i in s.iterators[1:]]


def by_stride(
    cluster: Cluster, arrays: Table[str, Array], storages: Table[str, Storage]
) -> list[int]:
    """The shared loops, those first that move furthest through what the last statement writes."""
    last = cluster.statements[-1]
    steps = compute_strides(last, arrays, storages)[0].steps
    loops = range(len(cluster.shared))
    return sorted(loops, key=lambda d: -(steps[cluster.shared[d][last.name]] or 0))


def _choose_sizes(
    flat: Cluster, count: int, arrays: Table[str, Array], target: CudaTarget
) -> tuple[int, int]:
    """(elements a thread, threads a block): wide accesses if there is work for all then."""
    types = {arrays[name].dtype for s in flat.statements for name, _, _ in accesses(s)}
    alone = all(len(s.iterators) == 1 and s.reduction is None for s in flat.statements)
    lanes = min(map(target.lanes, types)) if alone else 1
    while lanes > 1 and (count % lanes or count < THREADS * lanes * target.multiprocessors):
        lanes //= 2
    threads = THREADS
    while threads > target.warp and ceil(count / (threads * lanes)) < target.multiprocessors:
        threads //= 2
    return lanes, threads
