"""Schedules that are given for kernels: which clusters each of them speaks of.

A kernel is called as its last statement is, or by a node of the model that it alone computes. It
consists of that statement's cluster, and of those whose loops its schedule fuses with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyc.errors import IllegalSchedule, UnusedSchedule
from polyc.mapping.cpu.laying import Tiles, read_tiles
from polyc.mapping.cpu.space import list_packable
from polyc.mapping.open_cluster import OpenCluster
from polyc.names import show
from polyc.schedule.cluster import Cluster
from polyc.schedule.directives import Fuse
from polyc.schedule.names import short, split_statement
from polyc.schedule.schedule import Schedule


@dataclass(frozen=True)
class Given:
    """The schedules by what their kernels are called, and the clusters that these consist of.

    homes: the position of a cluster -> its kernel. A schedule of no cluster is for a copy that
    packs an operand: it comes about when layouts are decided; copies: such a one -> the kernel
    whose schedule fuses it.
    """

    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    homes: Mapping[int, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)

    def home_of_copy(self, name: str) -> str:
        """The kernel that a copy is part of, or is itself, by the schedules; empty for none."""
        return name if name in self.schedules else self.copies.get(name, "")

    def check_used(self, called: Sequence[str]) -> None:
        """Raise UnusedSchedule if a schedule is for a kernel that there is not."""
        unused = [name for name in self.schedules if name not in called]
        if unused:
            raise UnusedSchedule(
                f"a schedule is given for {', '.join(map(show, unused))}, but no kernel is called "
                f"so; there are {', '.join(map(show, called))}",
                frozenset(unused),
            )


NOTHING = Given()


def place_given(texts: Sequence[tuple[str, str]], clusters: Sequence[Cluster]) -> Given:
    """The schedules that are given as text, by name; IllegalSchedule if they cannot be read."""
    lasts = {short(cluster.statements[-1].name): k for k, cluster in enumerate(clusters)}
    owners = {short(s.name): k for k, c in enumerate(clusters) for s in (*c.prelude, *c.statements)}
    schedules: dict[str, Schedule] = {}
    homes: dict[int, str] = {}
    copies: dict[str, str] = {}
    asked: dict[int, str] = {}  # as `homes`, by the names that were given
    for given, text in texts:
        name = given
        with_it = [k for k, cluster in enumerate(clusters) if name in _nodes(cluster)]
        if name not in lasts and len(with_it) == 1:
            name = short(clusters[with_it[0]].statements[-1].name)
        try:
            schedule = Schedule.parse(text)
        except IllegalSchedule as error:
            raise IllegalSchedule(f"the schedule of {show(given)}: {error}") from None
        schedules[name] = schedule
        fused = dict.fromkeys(_fused(schedule))
        members = {owners[s] for s in fused if s in owners}
        copies |= {s: name for s in fused if s not in owners}
        for k in sorted(members | ({lasts[name]} if name in lasts else set())):
            if asked.setdefault(k, given) != given:
                raise IllegalSchedule(
                    f"the schedules of {show(asked[k])} and {show(given)} both speak of "
                    f"{show(short(clusters[k].statements[-1].name))}; give one of them"
                )
            homes[k] = name
    return Given(schedules, homes, copies)


def _nodes(cluster: Cluster) -> frozenset[str]:
    return frozenset(o for s in cluster.statements for o in s.origin)


def _fused(schedule: Schedule) -> Iterator[str]:
    """What the statements are called whose loops a schedule fuses."""
    for directive in schedule.directives:
        if isinstance(directive, Fuse):
            yield from (split_statement(name)[0] for name in directive.loops)


def read_given(one: OpenCluster, schedule: Schedule) -> Tiles:
    """What a given schedule says of a cluster's vectors and copies."""
    tiles = read_tiles(one, schedule)
    packed = tuple(name for name in tiles.packed if name in one.touched)
    able = list_packable(one, tiles.vector, tiles.grouped)
    for name in packed:
        if name not in able:
            raise IllegalSchedule(
                f"pack {show(name)}: what is packed is read by a sum of products, along the loop "
                f"that runs in lanes; that can be {', '.join(map(show, able)) or 'nothing here'}"
            )
    return replace(tiles, packed=packed)
