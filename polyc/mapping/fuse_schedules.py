"""One schedule of several: clusters that run tile by tile, each as it would be alone inside.

split i 13 | vector j  and  split i 8 | vector k
->  fuse i 56 | parallel i | keep all at i
    | split scores.i' 13 | vector scores.j | split product.i' 8 | vector product.k

Of a long sum some terms at a time may be taken (GotoBLAS: Goto and van de Geijn 2008, "Anatomy of
high-performance matrix multiplication"). What is copied for these stays near, however long the sum
is; the results wait in memory meanwhile, and in registers while terms are added:

    fuse copy.j product.j 64 | … | distribute j' i | first init.i | fuse copy.k product.k 1024
    | keep b_packed in stack at k | … | hold k'

    j ─ keep acc ─ sequence ├ j' ─ i ─ init
                            ├ k ─ keep b_packed ─ sequence ├ k' ─ j' ─ copy
                            │                              └ j' ─ i ─ k' ─ product
                            └ j' ─ i ─ finish
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polyc.schedule.cluster import Cluster
from polyc.schedule.directives import Distribute, First, Fuse, Run
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside, short, split_primes, split_statement
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective


def fuse_schedules(
    clusters: Sequence[Cluster],
    schedules: Sequence[Schedule],
    loops: Sequence[Mapping[str, int]],
    sizes: Sequence[int],
    terms: int = 0,
) -> Schedule | None:
    """The schedule of clusters inside of loops that they share; None if these cannot be told apart.

    loops[k] gives the position of a statement's iterator for loop k, sizes[k] the tile; terms: of
    the sum of the last cluster, how many it takes at a time of what the first one copies.
    """
    named = InitialLoops(tuple(clusters))
    firsts = [cluster.statements[0] for cluster in clusters]
    shared = [[named.own(s, loop[s.name]) for s in firsts] for loop in loops]
    steps: list[AnyDirective] = []
    tiles: list[str] = []
    fused: list[InitialLoop] = []
    for found, size in zip(shared, sizes, strict=True):
        each = [loop for loop in found if loop]
        lead = _find_own_name(each, named, tiles)
        if len(each) < len(found) or lead is None:
            return None
        each.sort(key=lambda loop: loop.name != lead)
        fused += each
        tiles.append(lead)
        # Always by statement: this is how a schedule that is given says what it fuses.
        names = tuple(f"{short(loop.key[0])}.{loop.name}" for loop in each)
        steps.append(Fuse(names, size))
    steps += [Run("parallel", tuple(tiles)), Keep(None, at=tiles[-1])]
    held: tuple[AnyDirective, ...] = ()
    if terms:
        summed = find_summed(clusters, named, fused)
        if summed is None or _find_own_name(summed, named, tiles) != summed[0].name:
            return None
        steps += _take_terms(clusters, named, fused, summed, terms)
        fused += summed
        statement, _ = summed[1].key
        held = (Run("hold", (f"{short(statement)}.{inside(summed[1].name)}",)),)
    for cluster, schedule in zip(clusters, schedules, strict=True):
        placed = _place(schedule, InitialLoops((cluster,)), named, fused).directives
        steps += (d for d in placed if not (terms and isinstance(d, Keep)))
    return Schedule((*steps, *held))


def find_summed(
    clusters: Sequence[Cluster], named: InitialLoops, fused: Sequence[InitialLoop]
) -> tuple[InitialLoop, InitialLoop] | None:
    """(the loop of a copy, the loop of a sum) over the terms that the one copies for the other.

    None if there is more than one of either, besides those that the two share.
    """
    copy, product = clusters
    updates = [s for s in product.statements if s.reduction]
    of_copy = [loop for loop in InitialLoops((copy,)).loops if loop not in fused]
    of_sum = [loop for s in updates for loop in named.alone(product, s)]
    if len(of_copy) != 1 or len(of_sum) != 1:
        return None
    return of_copy[0], of_sum[0]


def _take_terms(
    clusters: Sequence[Cluster],
    named: InitialLoops,
    fused: Sequence[InitialLoop],
    summed: tuple[InitialLoop, InitialLoop],
    terms: int,
) -> Iterator[AnyDirective]:
    """What is copied for so many terms, and these added to all results, before others are."""
    copy, product = clusters
    last = product.statements[-1]
    shared = [loop for d in range(len(product.shared)) if (loop := named.shared(product, d))]
    spelled = [f"{short(last.name)}.{x.name}{_prime(x, fused)}" for x in shared]
    yield Distribute(tuple(reversed(spelled)))
    update = next(k for k, s in enumerate(product.statements) if s.reduction)
    before = (short(s.name) for s in product.statements[:update])
    first = tuple(f"{s}.{shared[0].name}{_prime(shared[0], fused)}" for s in before)
    if first:
        yield First(first)
    yield Fuse(tuple(f"{short(loop.key[0])}.{loop.name}" for loop in summed), terms)
    yield Keep((copy.statements[0].array,), "stack", summed[0].name)


def _prime(loop: InitialLoop, fused: Sequence[InitialLoop]) -> str:
    """What the name of a loop has more where tiles of it are fused."""
    return inside("") if loop in fused else ""


def _find_own_name(
    loops: Sequence[InitialLoop], named: InitialLoops, taken: Sequence[str]
) -> str | None:
    """A name of one of these loops that no other loop has."""
    for name in (loop.name for loop in loops):
        if name not in taken and all(loop in loops for loop in named.find(name)):
            return name
    return None


def _place(
    schedule: Schedule, own: InitialLoops, named: InitialLoops, fused: Sequence[InitialLoop]
) -> Schedule:
    """A part's schedule in the names of the whole; its loops are no longer run on threads."""

    def rename(name: str) -> tuple[str, ...]:
        base, primes = split_primes(name)
        found = own.find(base)
        more = inside("") if any(loop in fused for loop in found) else ""
        statement, _ = split_statement(base)
        if statement:  # that one alone, though others may have the loop as well by now
            return tuple(f"{statement}.{loop.name}{primes}{more}" for loop in found)
        return named.spell(found, primes + more)

    kept = (d for d in schedule.directives if not (isinstance(d, Run) and d.kind == "parallel"))
    return Schedule(tuple(kept)).rename(rename, lambda array: array)
