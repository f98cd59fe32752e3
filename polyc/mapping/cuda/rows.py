"""Rows: what a cluster does with all of a row at a time, such as softmax and norms.

    join i as e | cut j as k t v by 32 4 | partial update.t | split e 8 | distribute e' | order …
    | block e | warp e' | thread t | combine update_combine.t | unroll k | vector v | keep all …

    block   e                             8 rows at a time, a warp each; long rows have a block each
    └ keep
      ├ start    warp e' ─ thread t        parts[e, t] = 0
      ├ update   warp e' ─ thread t ─ …    parts[e, t] += x[e, j]      j = 128 k + 4 t + v
      ├ combine  warp e' ─ t               total[e] += parts[e, t]     by all threads of the row
      ├ finish   warp e'                   mean[e] = total[e] / n      by each, in its own registers
      └ rest     warp e' ─ thread t ─ …    y[e, j] = x[e, j] - mean[e]

The shared loops are joined into one over rows, and the loops of each statement into one over its
elements, which threads walk side by side in vectors. So a thread meets the same elements in every
statement, and what is kept of a row lies in its registers. A sum of n elements becomes two: one for
each thread, and one over threads, which they compute together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil, prod

from polyc.mapping.cuda.coordinates.change import fresh_iterator
from polyc.mapping.cuda.coordinates.rewrite import Rewritten, rewrite
from polyc.mapping.cuda.threads import THREADS, by_stride, join_by
from polyc.memory.storage import Storage
from polyc.memory.strides import accesses, compute_strides
from polyc.poly.affine import coefficients, outputs
from polyc.schedule.cluster import Cluster
from polyc.schedule.coordinates import Cut, Partial
from polyc.schedule.directives import Distribute, Order, Run, Split
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside, short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Threads
from polyc.scop.scop import Array, Statement
from polyc.target.cuda import CudaTarget

SHORTEST = 32
"""Elements of a row from which on a warp shares it."""

FEW_VECTORS = 8
"""Vectors of a row that a thread takes before the row gets more threads."""

OWN_ELEMENTS = 64
"""Elements up to which a thread keeps its part of a row in registers, its loops written out."""


def suits_rows(
    cluster: Cluster,
    private: frozenset[str],
    arrays: Table[str, Array],
    storages: Table[str, Storage],
    target: CudaTarget,
) -> bool:
    """Whether threads can share the rows of a cluster, and that is better than a row a thread."""
    own = [s for s in cluster.statements if _own(s, cluster)]
    if not own or max(_length(s, cluster) for s in own) < SHORTEST:
        return False
    if not can_share_rows(cluster, private, arrays):
        return False
    longest = max(own, key=lambda s: _length(s, cluster))
    strides = compute_strides(longest, arrays, storages)
    along = any(a.steps[p] == 1 for a in strides for p in _own(longest, cluster))
    rows = prod(cluster.extents)
    return along or rows < THREADS * target.multiprocessors // 4


def can_share_rows(cluster: Cluster, private: frozenset[str], arrays: Table[str, Array]) -> bool:
    """Whether threads may share a row: what they do with it is in any order, or a sum."""
    own = [s for s in cluster.statements if _own(s, cluster)]
    return not any(
        _is_serial(s, cluster) or not _can_combine(s, cluster, private, arrays) for s in own
    )


def _own(s: Statement, cluster: Cluster) -> list[int]:
    """The iterators of a statement that it does not share."""
    shared = cluster.shared_positions(s)
    return [p for p in range(len(s.iterators)) if p not in shared]


def _length(s: Statement, cluster: Cluster) -> int:
    """Elements that a statement walks in a row."""
    sizes = s.estimated_extents
    return prod(sizes[p] for p in _own(s, cluster))


def _is_serial(s: Statement, cluster: Cluster) -> bool:
    """Whether a statement reads what it has written itself, element by element."""
    return s.reduction is None and any(load.array == s.array for load in s.loads)


def _can_combine(
    s: Statement, cluster: Cluster, private: frozenset[str], arrays: Table[str, Array]
) -> bool:
    """Whether a statement is no reduction, or one of a row to one element of a private array."""
    if s.reduction is None:
        return True
    if s.array not in private or arrays[s.array].dtype.itemsize not in (4, 8):
        return False
    return not any(coefficients(f)[p] for f in outputs(s.write) for p in _own(s, cluster))


@dataclass(frozen=True)
class Row:
    """How threads share a row: `threads` of them, each vectors of `lanes`; `rows` a block."""

    threads: int
    lanes: int
    rows: int


def schedule_rows(start: Rewritten, target: CudaTarget) -> Schedule:
    """The schedule of a cluster that works on rows."""
    (cluster,) = start.clusters
    join = join_by(start, by_stride(cluster, start.arrays, start.storages))
    flat = rewrite(start, Schedule((join,)))
    (joined,) = flat.clusters
    sizes = [s.estimated_extents for s in joined.statements]
    count, length = max(n for n, *_ in sizes), max(prod(own) for _, *own in sizes)
    row = choose_row(count, length, joined, flat.arrays, target)
    coordinates = (join, *share_rows(flat, joined, row))
    cut = rewrite(start, Schedule(coordinates))
    block, each = join.name, inside(join.name)
    steps: list[AnyDirective] = [*coordinates]
    steps += [Split((block,), row.rows)] if row.rows > 1 else []
    steps += [Run("block", (block,)), Keep(None, "shared", block)]
    if row.rows > 1:
        steps += [Distribute((each,))] if len(cut.statements) > 1 else []
        steps += [Threads((each,), warps=True)]
    return Schedule((*steps, *walk_rows(cut.named, cut.clusters[0], row)))


def share_rows(now: Rewritten, cluster: Cluster, row: Row) -> Iterator[AnyDirective]:
    """The elements of rows as [k, t, v], for each statement, and their sums in parts by threads."""
    k, t, v = (fresh_iterator(cluster.statements, name) for name in "ktv")
    groups: dict[tuple[str, ...], list[list[InitialLoop]]] = {}
    for s in cluster.statements:
        loops = _by_stride(s, now)
        if loops:
            groups.setdefault(tuple(loop.name for loop in loops), []).append(loops)
    for group in groups.values():
        columns = zip(*group, strict=True)
        names = tuple(name for column in columns for name in now.named.spell(column))
        yield Cut(names, (k, t, v), (row.threads, row.lanes))
    for s in cluster.statements:
        if s.reduction and len(s.iterators) > 1:
            yield Partial(f"{short(s.name)}.{t}")


def walk_rows(named: InitialLoops, cluster: Cluster, row: Row) -> Iterator[AnyDirective]:
    """What threads do with elements [e, k, t, v], and with parts of sums [e, t]."""
    whole = [s for s in cluster.statements if len(s.iterators) == 4]
    parts = [s for s in cluster.statements if len(s.iterators) == 2]

    def spell(statements: Sequence[Statement], position: int) -> tuple[str, ...]:
        loops = (named.own(s, position) for s in statements)
        return named.spell(loop for loop in loops if loop)

    if not whole:
        return
    k, t, _ = whole[0].iterators[1:]
    yield Order((t, k))
    # By statement, where other parts of the kernel have a loop t as well, which combines by now.
    over = [*(named.own(s, 2) for s in whole), *(named.own(s, 1) for s in parts)]
    for name in named.spell(loop for loop in over if loop):
        yield Threads((name,))
    combining = spell([s for s in parts if s.reduction], 1)
    if combining:
        yield Run("combine", combining)
    few = [s for s in whole if s.estimated_extents[1] * row.lanes <= OWN_ELEMENTS]
    if few:
        yield Run("unroll", spell(few, 1))
    if row.lanes > 1:
        yield Run("vector", spell(whole, 3))


def _by_stride(s: Statement, now: Rewritten) -> list[InitialLoop]:
    """The loops of a statement's own, those first that move furthest through memory."""
    steps = compute_strides(s, now.arrays, now.storages)
    own = sorted(
        range(1, len(s.iterators)), key=lambda p: -max(abs(a.steps[p] or 0) for a in steps)
    )
    return [loop for p in own if (loop := now.named.own(s, p))]


def choose_row(
    count: int, length: int, flat: Cluster, arrays: Table[str, Array], target: CudaTarget
) -> Row:
    """A warp a row, or more if it is long, or if there are too few rows to fill the device."""
    lanes = choose_lanes(length, flat.statements, arrays, target)
    threads = target.warp
    vectors = ceil(length / lanes)
    enough = THREADS * target.multiprocessors
    while threads < 1024 and vectors > threads * (FEW_VECTORS if count * threads >= enough else 1):
        threads *= 2
    alone = threads > target.warp or count * threads < enough
    return Row(threads, lanes, 1 if alone else THREADS // threads)


def choose_lanes(
    length: int, statements: Sequence[Statement], arrays: Table[str, Array], target: CudaTarget
) -> int:
    """Elements of a row that a thread takes at once: whole accesses, of all types."""
    types = {arrays[name].dtype for s in statements for name, _, _ in accesses(s)}
    lanes = min(map(target.lanes, types))
    while lanes > 1 and length % lanes:
        lanes //= 2
    return lanes
