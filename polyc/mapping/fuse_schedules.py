"""One schedule of several: clusters that run tile by tile, each as it would be alone inside.

split i 13 | vector j  and  split i 8 | vector k
->  fuse i 56 | parallel i | keep all at i
    | split scores.i' 13 | vector scores.j | split product.i' 8 | vector product.k
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyc.schedule.cluster import Cluster
from polyc.schedule.directives import Fuse, Run
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.names import short, split_primes, split_statement
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective


def fuse_schedules(
    clusters: Sequence[Cluster],
    schedules: Sequence[Schedule],
    loops: Sequence[Mapping[str, int]],
    sizes: Sequence[int],
) -> Schedule | None:
    """The schedule of clusters inside of loops that they share; None if these cannot be told apart.

    loops[k] gives the position of a statement's iterator for loop k, sizes[k] the tile.
    """
    named = InitialLoops(tuple(clusters))
    firsts = [cluster.statements[0] for cluster in clusters]
    shared = [[named.own(s, loop[s.name]) for s in firsts] for loop in loops]
    steps: list[AnyDirective] = []
    tiles: list[str] = []
    inside: list[InitialLoop] = []
    for found, size in zip(shared, sizes, strict=True):
        each = [loop for loop in found if loop]
        lead = _find_own_name(each, named, tiles)
        if len(each) < len(found) or lead is None:
            return None
        each.sort(key=lambda loop: loop.name != lead)
        inside += each
        tiles.append(lead)
        # Always by statement: this is how a schedule that is given says what it fuses.
        names = tuple(f"{short(loop.key[0])}.{loop.name}" for loop in each)
        steps.append(Fuse(names, size))
    steps += [Run("parallel", tuple(tiles)), Keep(None, at=tiles[-1])]
    for cluster, schedule in zip(clusters, schedules, strict=True):
        steps += _place(schedule, InitialLoops((cluster,)), named, inside).directives
    return Schedule(tuple(steps))


def _find_own_name(
    loops: Sequence[InitialLoop], named: InitialLoops, taken: Sequence[str]
) -> str | None:
    """A name of one of these loops that no other loop has."""
    for name in (loop.name for loop in loops):
        if name not in taken and all(loop in loops for loop in named.find(name)):
            return name
    return None


def _place(
    schedule: Schedule, own: InitialLoops, named: InitialLoops, inside: Sequence[InitialLoop]
) -> Schedule:
    """A part's schedule in the names of the whole; its loops are no longer run on threads."""

    def rename(name: str) -> tuple[str, ...]:
        base, primes = split_primes(name)
        found = own.find(base)
        fused = "'" if any(loop in inside for loop in found) else ""
        statement, _ = split_statement(base)
        if statement:  # that one alone, though others may have the loop as well by now
            return tuple(f"{statement}.{loop.name}{primes}{fused}" for loop in found)
        return named.spell(found, primes + fused)

    kept = (d for d in schedule.directives if not (isinstance(d, Run) and d.kind == "parallel"))
    return Schedule(tuple(kept)).rename(rename, lambda array: array)
