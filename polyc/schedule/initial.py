"""The loop tree that schedules start from: statements in order, loops as clusters share them.

    cluster { init[i, j], update[i, j, k], finish[i, j] }   ->   i ─ j ─ sequence ├ init
                                                                                ├ k ─ update
                                                                                └ finish

A loop of one iteration is left out. Shared loops are called as in the statement that has most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import islpy as isl

from polyc.names import fresh
from polyc.schedule.cluster import Cluster
from polyc.schedule.loops import Instances, Loop, LoopTree
from polyc.schedule.loops import Sequence as Parts
from polyc.schedule.names import short, split_statement
from polyc.scop.scop import Statement

Key = tuple[str, int]
"""A loop of the initial tree: (a statement in it, the position of its iterator)."""

Room = Mapping[tuple[str, str], int]
"""By statement and iterator: how many values there is room for."""


@dataclass(frozen=True)
class InitialLoop:
    """A loop before anything is decided.

    where: for each statement inside the position of its iterator; extent: one more than its largest
    value, None where that depends on sizes.
    """

    name: str
    where: Mapping[str, int]
    extent: int | None

    @property
    def key(self) -> Key:
        """By the last statement inside."""
        return [*self.where.items()][-1]


@dataclass(frozen=True)
class InitialLoops:
    """The loops of a kernel's clusters, and how to call them.

    counted: with those that run once, which for a GPU are loops like others (`lower_tree`). room:
    by statement and iterator, extents of digits that have more values than there are instances.
    """

    clusters: tuple[Cluster, ...]
    counted: bool = False
    room: Room = field(default_factory=dict)

    @cached_property
    def loops(self) -> tuple[InitialLoop, ...]:
        found = tuple(loop for cluster in self.clusters for loop in _list_loops(cluster, self.room))
        named = {
            (s.name, cluster.shared[d][s.name])
            for cluster in self.clusters
            for d in cluster.joined
            for s in cluster.statements
        }
        return tuple(
            loop
            for loop in found
            if self.counted or loop.extent != 1 or not named.isdisjoint(loop.where.items())
        )

    def shared(self, cluster: Cluster, d: int) -> InitialLoop | None:
        """A shared loop of a cluster; None if it runs once."""
        return self.own(cluster.statements[-1], cluster.shared[d][cluster.statements[-1].name])

    def own(self, s: Statement, position: int) -> InitialLoop | None:
        """The loop over an iterator; None if it runs once."""
        return self._table.get((s.name, position))

    def alone(self, cluster: Cluster, s: Statement) -> list[InitialLoop]:
        """The loops that a statement of a cluster does not share, but for those that run once."""
        shared = cluster.shared_positions(s)
        own = (self.own(s, p) for p in range(len(s.iterators)) if p not in shared)
        return [loop for loop in own if loop]

    @cached_property
    def _table(self) -> Mapping[Key, InitialLoop]:
        return {item: loop for loop in self.loops for item in loop.where.items()}

    def find(self, name: str) -> list[InitialLoop]:
        """The loops meant by the name of an outermost one."""
        statement, base = split_statement(name)
        found = [loop for loop in self.loops if loop.name == base]
        if statement:
            found = [loop for loop in found if statement in map(short, loop.where)]
        return found

    def spell(self, loops: Iterable[InitialLoop], primes: str = "") -> tuple[str, ...]:
        """Names that mean these loops, or what is inside them, and no others."""
        groups: dict[str, list[InitialLoop]] = {}
        for loop in loops:
            groups.setdefault(loop.name, []).append(loop)
        names: list[str] = []
        for name, group in groups.items():
            if len(self.find(name)) == len(group):
                names.append(name + primes)
            else:
                names += [f"{short(loop.key[0])}.{name}{primes}" for loop in group]
        return tuple(names)


def initial_tree(clusters: Sequence[Cluster]) -> LoopTree:
    """The clusters of a kernel, one after another; see above."""
    return make_tree(InitialLoops(tuple(clusters)))


def make_tree(named: InitialLoops) -> LoopTree:
    """The same, with loops that have names already."""
    parts = tuple(part for cluster in named.clusters for part in _cluster_parts(cluster, named))
    return parts[0] if len(parts) == 1 else Parts(parts)


def _list_loops(cluster: Cluster, room: Room) -> Iterator[InitialLoop]:
    """Those of fills, then those that are shared, then each statement's own."""
    main = max(cluster.statements, key=lambda s: len(s.iterators))
    names = [main.iterators[where[main.name]] for where in cluster.shared]
    for s in cluster.prelude:
        yield from _list_own(s, range(len(s.iterators)), (), room)
    for name, where in zip(names, cluster.shared, strict=True):
        extents = {s.exact_extents[where[s.name]] for s in cluster.statements}
        known = [n for n in extents if n is not None]
        yield InitialLoop(name, where, max(known) if len(known) == len(extents) else None)
    for s in cluster.statements:
        used = cluster.shared_positions(s)
        yield from _list_own(s, [p for p in range(len(s.iterators)) if p not in used], names, room)


def _list_own(
    s: Statement, positions: Iterable[int], taken: Sequence[str], room: Room
) -> Iterator[InitialLoop]:
    for p in positions:
        own = s.iterators[p]
        extent = room.get((s.name, own)) or s.exact_extents[p]
        name = fresh(own, {*taken, *s.iterators}) if own in taken else own
        yield InitialLoop(name, {s.name: p}, extent)


def _cluster_parts(cluster: Cluster, named: InitialLoops) -> Iterator[LoopTree]:
    """The nests of fills, and that of the cluster behind them."""
    for s in cluster.prelude:
        yield _nest(s, cluster, named)
    nests = [_nest(s, cluster, named) for s in cluster.statements]
    body = nests[0] if len(nests) == 1 else Parts(tuple(nests))
    for d in reversed(range(len(cluster.shared))):
        loop = named.shared(cluster, d)
        if loop:
            walked = _walk(loop, cluster.statements)
            body = Loop(loop.name, walked, body, whole=True, extent=loop.extent)
    yield body


def _nest(s: Statement, cluster: Cluster, named: InitialLoops) -> LoopTree:
    """The loops of one statement alone, in the order of its iterators."""
    body: LoopTree = Instances(s.name)
    for loop in reversed(named.alone(cluster, s)):
        body = Loop(loop.name, _walk(loop, [s]), body, extent=loop.extent)
    return body


def _walk(loop: InitialLoop, statements: Iterable[Statement]) -> isl.UnionPwAff:
    """# S -> Z: for each statement the iterator of a loop."""
    functions = []
    for s in statements:
        space = isl.LocalSpace.from_space(s.domain.get_space())
        walked = isl.PwAff.var_on_domain(space, isl.dim_type.set, loop.where[s.name])
        functions.append(isl.UnionPwAff.from_pw_aff(walked))
    return reduce(isl.UnionPwAff.union_add, functions)
