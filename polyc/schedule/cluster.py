"""Clustering: which statements become one kernel.

A cluster is a run of statements that share their outer loops. A statement joins the cluster of the
*latest* of its producers, so that everything else it reads is already there, and clusters can run
in the order in which they were opened. What is shared is read off the accesses: an iterator p of a
producer and an iterator s of its reader are *aligned* if every element written at p is read at
s = p.

When does joining pay? The value read need not travel through memory. It must not cost more:

* a reduction with reuse (contraction, window) is tiled over all its parallel iterators, so only a
  pointwise statement aligned with all of them may join: its epilogue; or the sum of many of its
  results over iterators along which it uses nothing again, such as the blocks of a dot product;
* everything else (row reductions, pointwise) may share any outer loops, as long as these leave
  enough parallel iterations, and what one of them produces stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from polyc.budget import UNLIMITED, Budget
from polyc.poly.affine import moves, outputs, shifted_iterator
from polyc.schedule.align import align_reads, align_writes
from polyc.schedule.apart import may_run_before
from polyc.schedule.fills import part_of, set_fills_aside
from polyc.schedule.reuse import has_lanes, has_reuse
from polyc.schedule.tables import order_tables
from polyc.scop.scop import Array, Group, Scop, Statement
from polyc.scop.sizes import awaited_by
from polyc.target.cuda import BUSY, CudaTarget
from polyc.target.machine import Target
from polyc.types.branches import Branches
from polyc.types.element_types import FLOAT32
from polyc.types.ranges import Step

SMALL_WORK = 1 << 15
"""Instances below which a cluster is not worth a second thread (about 10 us of scalar work)."""

SERIAL_WORK = 1 << 13
"""The same if no loop would be shared: all of it on one thread, for one launch less."""

MANY_ITERATIONS = 16
"""Outer iterations that keep any number of threads that we know busy without imbalance."""

FEW = 8
"""Iterations that a thread runs in no more time than a kernel takes to begin."""

MUCH_MORE = 64
"""Times the work of a cluster that wants all its loops for itself, rather than a value at hand."""

MOST_STATEMENTS = 32
"""The most statements of a kernel, and"""

MOST_WEIGHT = 640
"""the most weight of their expressions: what the scheduler, the proof and the C compiler take grows
faster. Kernels of networks have ten statements; equal parts of a long chain are one kernel."""


@dataclass(frozen=True)
class Cluster:
    """Statements of one kernel in textual order, and the iterators that they share.

    shared[d] maps each statement's name to the position of its iterator for outer loop d.
    `has_reuse`: the cluster computes a contraction or a window. `summed` are loops that only the
    statements of a contraction share with the sum of its results over them. `prelude` holds fills
    of arrays that the cluster writes the rest of (halos); they run before, on their own. `awaited`
    are the arrays that hold sizes which the call must have found by then. `joined` are shared loops
    that have become the last of them (`mapping/join_rows.py`): the others run once, and keep names.
    """

    statements: tuple[Statement, ...]
    shared: tuple[Mapping[str, int], ...]
    has_reuse: bool
    prelude: tuple[Statement, ...] = ()
    is_group: bool = False
    awaited: frozenset[str] = frozenset()
    summed: tuple[Mapping[str, int], ...] = ()
    joined: tuple[int, ...] = ()

    @property
    def step(self) -> Step | None:
        """The loop over steps that the cluster is in."""
        return self.statements[0].step

    @property
    def branches(self) -> Branches:
        """Where the cluster is executed, if not in every call."""
        return self.statements[0].branches

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the shared loops."""
        first = self.statements[0]
        sizes = first.estimated_extents
        return tuple(sizes[d[first.name]] for d in self.shared)

    @property
    def long_extents(self) -> tuple[int, ...]:
        """The same in a long call."""
        first = self.statements[0]
        return tuple(first.long_extents[d[first.name]] for d in self.shared)

    def shared_positions(self, s: Statement) -> frozenset[int]:
        """The positions of a statement's iterators that are shared; none of a fill's."""
        return frozenset(loop[s.name] for loop in self.shared if s.name in loop)

    def summed_positions(self, s: Statement) -> frozenset[int]:
        """The positions of its iterators over results of a contraction that are summed up."""
        return frozenset(loop[s.name] for loop in self.summed if s.name in loop)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(s.name for s in self.statements)

    def statement(self, name: str) -> Statement:
        return next(s for s in self.statements if s.name == name)


@dataclass(frozen=True)
class Refusal:
    """A fusion that was not done, for `explain()`; bytes: handed over through memory instead."""

    producer: str
    consumer: str
    reason: str
    bytes: int


def find_clusters(
    scop: Scop, target: Target | CudaTarget, budget: Budget = UNLIMITED
) -> tuple[tuple[Cluster, ...], tuple[Refusal, ...]]:
    """Partition the statements of a scop into kernels, in execution order."""
    clusters: list[Cluster] = []
    home: dict[str, int] = {}  # array -> the last cluster that writes it
    refusals: list[Refusal] = []
    fills, statements = set_fills_aside(scop.statements)
    statements = order_tables(statements, scop)
    for unit in budget.over(_units(statements, scop.arrays), "cluster"):
        seen = {load.array for s in unit.statements for load in s.loads}
        unit = replace(unit, awaited=awaited_by(unit.statements, scop))
        seen |= unit.awaited.union(branch.condition for branch in unit.branches)
        reads = {scop.home(array) for array in seen}
        produced = [home[a] for a in reads if a in home]
        # What is read under another shape must be whole by then.
        before = [home[scop.home(a)] for a in seen if scop.home(a) != a]
        last = max((home[s.array] for s in unit.statements if s.array in home), default=-1)
        index = max(produced, default=-1)
        joined: Cluster | str = "it reads nothing that a kernel computes"
        if index >= 0 and clusters[index].step != unit.step:
            joined = "only one of them is repeated"
        elif index >= 0 and clusters[index].branches != unit.branches:
            joined = "a call may execute only one of them"
        elif index >= 0 and any(home.get(array) == index for array in unit.awaited):
            joined = "the other one finds a size that it needs"
        elif index >= 0 and max(before, default=-1) == index:
            joined = "it reads what the other one writes under another shape"
        elif last > index >= 0 and not may_run_before(unit, clusters[index + 1 :], scop):
            joined = "kernels in between read or write what it writes"
        elif index >= 0:
            joined = _join(clusters[index], unit, scop.arrays, target)
        if isinstance(joined, str):
            if index >= 0:
                names = clusters[index].statements[-1].name, unit.statements[-1].name
                handed = sum(scop.arrays[a].bytes for a in reads if home.get(a) == index)
                refusals.append(Refusal(*names, joined, handed))
            clusters.append(unit)
            index = len(clusters) - 1
        else:
            clusters[index] = joined
        for statement in unit.statements:
            home[statement.array] = max(index, home.get(statement.array, -1))
            prelude = tuple(fills.pop(part_of(statement), ()))
            clusters[index] = replace(clusters[index], prelude=clusters[index].prelude + prelude)
    return tuple(clusters), tuple(refusals)


def _units(statements: tuple[Statement, ...], arrays: Mapping[str, Array]) -> Iterator[Cluster]:
    """Single statements; a reduction together with its initialisation; a group at its last one."""
    pending: Statement | None = None
    starts = {s.array for s in statements if s.reduction}
    groups: dict[Group, list[Statement]] = {}
    for s in statements:
        if s.group is not None:
            groups.setdefault(s.group, []).append(s)
    for s in statements:
        if s.group is not None:
            members = groups[s.group]
            if s is members[-1]:
                yield _grouped(s.group, tuple(members))
            continue
        if s.reduction and pending is not None and pending.array == s.array:
            aligned = align_writes(pending, s)
            yield Cluster(
                (pending, s),
                tuple(
                    {pending.name: p, s.name: aligned[p]}
                    for p in range(len(pending.iterators))
                    if p in aligned
                ),
                has_reuse(s, aligned, arrays),
            )
            pending = None
            continue
        if pending is not None:
            yield alone(pending)
            pending = None
        if s.array in starts and not s.reduction:
            pending = s
        else:
            yield alone(s)
    if pending is not None:
        yield alone(pending)


def _grouped(group: Group, members: tuple[Statement, ...]) -> Cluster:
    """A group as a cluster over the iterators that its lowering named."""
    shared = [{s.name: s.iterators.index(i) for s in members} for i in group.shared]
    return Cluster(members, tuple(shared), has_reuse=False, is_group=True)


def alone(s: Statement) -> Cluster:
    """A statement on its own; what a recurrence or a lone reduction carries is not shared."""
    carried = {load.array for load in s.loads} | ({s.array} if s.reduction else set())
    parallel = range(len(s.iterators)) if s.array not in carried else _independent(s)
    return Cluster((s,), tuple({s.name: p} for p in parallel), has_reuse=False)


def _independent(s: Statement) -> list[int]:
    """Iterators on which every access to the statement's own array agrees: they carry nothing."""
    own = [s.write, *(load.index for load in s.loads if load.array == s.array)]
    placed = [[shifted_iterator(pw) for pw in outputs(function)] for function in own]
    found = [{found for found in each if found is not None} for each in placed]
    return sorted(p for p, _ in set.intersection(*found))


def _join(
    cluster: Cluster, unit: Cluster, arrays: Mapping[str, Array], target: Target | CudaTarget
) -> Cluster | str:
    """The two as one cluster, or the reason why not."""
    together = cluster.statements + unit.statements
    shared = shared_loops(cluster, unit)
    names = {s.name for s in unit.statements}
    merged = Cluster(
        together,
        shared,
        cluster.has_reuse or unit.has_reuse,
        cluster.prelude,
        awaited=cluster.awaited | unit.awaited,
        summed=cluster.summed,
    )
    whole = _covers(cluster, shared) and _covers(unit, shared)
    if unit.is_group or cluster.is_group:
        return "a transform is a nest of its own"
    if is_too_large(together):
        return "so large a kernel would take long to compile"
    if any(arrays[load.array].is_partial for s in unit.statements for load in s.loads):
        return "partial results are combined when all are there"
    if unit.has_reuse:
        return "a contraction or window is tiled on its own"
    if cluster.has_reuse:
        total = _sum_of_parts(cluster, unit) if isinstance(target, Target) else None
        if total is not None:
            return replace(total, prelude=merged.prelude, awaited=merged.awaited)
        if not whole:
            return "not every loop of the contraction is shared"
        if any(s.reduction for s in unit.statements):
            return "a reduction would split the register tile"
        lanes = target.lanes(FLOAT32) if isinstance(target, Target) else 0
        if lanes and not all(has_lanes(s, shared, lanes) for s in unit.statements):
            return "loads from where data says would be unrolled lane by lane in a register tile"
        return merged
    work = max(prod(s.estimated_extents) for s in merged.statements)
    outer = prod(merged.extents) if shared else 1
    if isinstance(target, CudaTarget) and _runs_alone(cluster, unit, shared):
        most = min(target.multiprocessors * BUSY, prod(cluster.extents) * prod(unit.extents))
        if outer < most and work > FEW * outer:
            return f"only {outer} threads would have work"
    if work > (SMALL_WORK if outer > 1 else SERIAL_WORK) and not whole:
        if any(load.dynamic for load in unit.statements[-1].loads):
            return "loads from where data says want all loops, for lanes that they do not depend on"
        if outer < min(MANY_ITERATIONS, max(prod(cluster.extents), prod(unit.extents))):
            return f"only {outer} parallel iterations would be left"
        before = max(prod(s.estimated_extents) for s in cluster.statements)
        if not isinstance(target, CudaTarget) and work > MUCH_MORE * before:
            return "it has loops of its own, in which what the other one gives is read many times"
        others = [s for s in cluster.statements if s.name not in names]
        inner = sum(arrays[s.array].bytes // outer for s in others)
        # What a sum was taken of is read again; a row of anything else is handed over once.
        again = any(s.reduction for s in cluster.statements)
        if inner > (target.l2 // 2 if again or isinstance(target, CudaTarget) else target.l1d):
            return f"{inner} bytes a row would not stay in cache"
    return merged


def _runs_alone(cluster: Cluster, unit: Cluster, shared: Sequence[Mapping[str, int]]) -> bool:
    """Whether each thread of a GPU would run loops on its own that are parallel apart.

    Threads share what one of the two sums up, such as a row of a softmax, unless each element of
    that is a sum. Other loops, as of two that read parts of one array, one thread runs for each
    iteration of those that are shared.
    """
    return any(
        not _covers(one, shared)
        and (_sums_elements(one, shared) or not any(s.reduction for s in other.statements))
        for one, other in ((cluster, unit), (unit, cluster))
    )


def _sums_elements(cluster: Cluster, shared: Sequence[Mapping[str, int]]) -> bool:
    """Whether there is a sum for each of several elements that an iteration of `shared` has."""
    return any(
        moves(s.columns[0][p])
        for s in cluster.statements
        if s.reduction
        for p in set(range(len(s.iterators))) - {loop[s.name] for loop in shared}
    )


def _sum_of_parts(cluster: Cluster, unit: Cluster) -> Cluster | None:
    """A contraction with the sum of its results over loops along which it uses nothing again.

    part[i, j, g] += x[i, g, k]*w[j, g, k]         for i, j: acc = 0
    acc[i, j] += part[i, j, g]*s[j, g]       ->      for g: part = 0; for k: part += …
                                                            acc += part*s

    None if it is something else.
    """
    members = cluster.statements, unit.statements
    if any(len(m) != 2 or not m[1].reduction or m[0].array != m[1].array for m in members):
        return None
    (begin, part), (start, total) = members
    if cluster.summed or cluster.prelude or part.array == total.array:
        return None
    aligned = align_reads(part, total)
    if len(aligned) < len(cluster.shared) or len(part.iterators) == len(cluster.shared):
        return None
    outside = {loop[total.name]: loop for loop in unit.shared}
    shared = [(aligned[loop[part.name]], loop) for loop in cluster.shared]
    summed = [(p, loop) for p, loop in shared if p not in outside]
    used_once = all(
        moves(columns[loop[part.name]]) for columns in part.columns[1:] for _, loop in summed
    )
    if not summed or not used_once or len(shared) < len(total.iterators):
        return None
    return Cluster(
        (start, begin, part, total),
        tuple({**outside[p], **loop} for p, loop in shared if p in outside),
        has_reuse=True,
        summed=tuple({**loop, total.name: p} for p, loop in summed),
    )


def is_too_large(statements: Sequence[Statement]) -> bool:
    """Whether a kernel of these statements would take longer to compile than two."""
    weight = sum(s.weight for s in statements)
    return len(statements) > MOST_STATEMENTS or weight > MOST_WEIGHT


def _covers(cluster: Cluster, shared: Sequence[Mapping[str, int]]) -> bool:
    """Whether all the parallel loops of a cluster that iterate at all are among `shared`."""
    first = cluster.statements[0]
    kept = {loop[first.name] for loop in shared}
    sizes = first.exact_extents
    return all(loop[first.name] in kept or sizes[loop[first.name]] == 1 for loop in cluster.shared)


def shared_loops(cluster: Cluster, unit: Cluster) -> tuple[Mapping[str, int], ...]:
    """The loops of the cluster that the unit runs along with: those that all its reads agree on."""
    writers = {s.array: s for s in cluster.statements}
    first = unit.statements[0]
    links = {loop[first.name]: loop for loop in unit.shared}
    reads = []  # (name of a producer, its iterators -> those of the unit's first statement)
    for statement in unit.statements:
        back = {loop[statement.name]: loop[first.name] for loop in unit.shared}
        for array in dict.fromkeys(load.array for load in statement.loads):
            if array in writers:
                aligned = align_reads(writers[array], statement)
                reads.append((writers[array].name, {p: back.get(s) for p, s in aligned.items()}))
    shared: list[Mapping[str, int]] = []
    for loop in cluster.shared:
        positions = {aligned.get(loop[producer]) for producer, aligned in reads}
        if len(positions) == 1 and (position := positions.pop()) is not None:
            shared.append({**loop, **links[position]})
    return tuple(shared)
