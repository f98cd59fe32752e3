"""One thread for each iteration of the loops that a cluster shares: right for every cluster.

    y[i, j] = f(x[i, j], b[j])       e = 256 i + j

    join i j as e | split e 1024 | split e' 4 | block e | thread e' | keep all in stack at e'
    | vector e'' | sink e''

    block e
    └ thread e'
      └ keep                         what a thread keeps: in registers, or on its stack
        └ vector e''                 one load or store of 128 bits

The shared loops are joined into one long one, so that all threads are busy whatever the extents
are, and neighbouring threads touch neighbouring elements of what the last statement writes. Loops
of the statements' own, such as the taps of a pooling, run one after the other in the thread. Where
indices are made of pieces the loops stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import ceil

from polyc.mapping.cuda.coordinates.change import fresh_iterator
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses, compute_strides
from polyc.poly.affine import outputs
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import Join
from polyc.schedule.directives import Order, Run, Sink, Split
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Threads
from polyc.scop.scop import Array
from polyc.target.cuda import CudaTarget

THREADS = 256
"""Of a block: eight warps, of which eight blocks fill a multiprocessor."""


def schedule_threads(start: Rewritten, target: CudaTarget) -> Schedule:
    """The schedule of a cluster whose shared loops carry nothing."""
    (cluster,) = start.clusters
    order = by_stride(cluster, start.arrays, start.storages)
    if order and not is_joinable(cluster):
        return _schedule_apart(start, order, target)
    join = join_by(start, order)
    block, thread, lane = join.name, inside(join.name), inside(inside(join.name))
    keep = Keep(None, "stack", thread)
    flat = rewrite(start, Schedule((join, keep)))
    (joined,) = flat.clusters
    count = max(s.estimated_extents[0] for s in joined.statements)
    lanes, threads = _choose_sizes(joined, count, flat.arrays, target)
    steps: list[AnyDirective] = [join, Split((block,), lanes * threads)]
    steps += [Split((thread,), lanes)] if lanes > 1 else []
    steps += [Run("block", (block,)), Threads((thread,)), keep]
    steps += [Run("vector", (lane,)), Sink((lane,))] if lanes > 1 else []
    return Schedule(tuple(steps))


def join_by(start: Rewritten, order: list[int], position: int = 0, multiple: int = 1) -> Join:
    """The directive that joins the shared loops of a cluster in an order."""
    cluster = start.clusters[position]
    loops = [loop for d in order if (loop := start.named.shared(cluster, d))]
    return Join(
        tuple(name for loop in loops for name in start.named.spell([loop])),
        fresh_iterator(start.statements, "e"),
        multiple,
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


def _schedule_apart(start: Rewritten, order: list[int], target: CudaTarget) -> Schedule:
    """The shared loops as they are: the last over threads, and over blocks with the others."""
    (cluster,) = start.clusters
    loops = [loop for d in order if (loop := start.named.shared(cluster, d))]
    names = tuple(name for loop in loops for name in start.named.spell([loop]))
    threads = target.warp
    while threads < min(loops[-1].extent or THREADS, THREADS):
        threads *= 2
    thread = inside(names[-1])
    steps: list[AnyDirective] = [Order(names)] if len(names) > 1 else []
    steps += [Split((names[-1],), threads), Run("block", names), Threads((thread,))]
    return Schedule((*steps, Keep(None, "stack", thread)))


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
