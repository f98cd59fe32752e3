"""Tiles of shared loops as directives: what contractions, transforms and pointwise clusters emit.

    order j i | split j 32 | split i 13 | vector j' | unroll i' | sink j' i' | parallel j i
    | keep all at i

    j ─ i ─ keep ─ sequence ├ j' ─ i' ─ init
                            ├ k ─ j' ─ i' ─ update
                            └ j' ─ i' ─ finish

Where an instruction takes four terms of the sum in each lane:

    … | vector j' | unroll i' | split k 4 | sink j' i' k' | use dot4.u8s8 k' | …

Where it multiplies matrices (`contraction/matrix_tile.py`), it runs that statement's tile as well:

    … | vector j' | split k 64 | split k' 4 | sink i' j' k' k'' | use tile.u8s8 S.i' S.j' k' k'' | …

Where the results of a contraction are summed up, loops over them are fused behind that:

    … | sink j' i' | fuse g | keep all at i | keep all at g

    j ─ i ─ keep ─ sequence ├ j' ─ i' ─ init of the sum
                            ├ g ─ keep ─ sequence ├ j' ─ i' ─ init
                            │                     ├ k ─ j' ─ i' ─ update
                            │                     └ j' ─ i' ─ the sum
                            └ j' ─ i' ─ finish

Where images are small, their pixels are counted through (`contraction/rows_as_one.py`):

    order o y x | collapse y x | split o 16 | split y 5 | vector o' | unroll y' | sink o' y' | …

Where taps run along a diagonal (`contraction/diagonal.py`), their loop is written out as well:

    … | skew r i' 1 | vector j' | unroll i' r | sink j' i' | …

To transpose, a block of squares is walked along one loop before the other goes on:

    order i j | split i 128 | split i' 16 | split j 16 | order i j i' | … | sink i'' j' | …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from polyc.mapping.cpu.contraction.diagonal import Diagonal
from polyc.mapping.reading import Grouped
from polyc.poly.affine import coefficients
from polyc.schedule.cluster import Cluster
from polyc.schedule.counting import Collapse
from polyc.schedule.directives import Fuse, Order, Run, Sink, Skew, Split
from polyc.schedule.initial import InitialLoop, InitialLoops
from polyc.schedule.keeping import Keep
from polyc.schedule.names import inside, short, split_statement
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.schedule.threads import Use
from polyc.scop.expr import Expr, Index, children

LONGEST = 8
"""Iterations of loops that are written out because they decide a number: the parts of a word."""


def schedule_tiles(
    cluster: Cluster,
    named: InitialLoops,
    order: Sequence[int],
    sizes: Mapping[int, int],
    blocks: Mapping[int, int],
    vector: int,
    unroll: int | None,
    parallel: int,
    grouped: Grouped | None = None,
    diagonal: Diagonal | None = None,
    run: int | None = None,
    rows: Sequence[int] = (),
) -> Schedule:
    """The loops in their order, cut into tiles of `sizes`, these inside of `blocks` if there are.

    vector and unroll: what a tile runs in lanes and writes out; parallel: how many leading loops
    run on threads; grouped: the loop of a sum that an instruction runs in each lane; diagonal: the
    taps that run along one; run: a loop that is written out whole inside of the unrolled one; rows:
    loops that run as one, the first of which is the unrolled one then.
    """
    loops, names, steps = put_in_order(cluster, named, order)
    if rows:
        steps.append(Collapse(tuple(names[d] for d in rows)))
        counts = [loops[d].extent for d in rows]
        loops = {d: loop for d, loop in loops.items() if d not in rows[1:]}
        count = None if None in counts else prod(n for n in counts if n is not None)
        loops[rows[0]] = replace(loops[rows[0]], extent=count)
    outer: dict[int, str] = {}
    inner: dict[int, str] = {}
    points: dict[int, str] = {}
    for d, loop in loops.items():
        cuts, (block, point) = cut(names[d], loop.extent, blocks.get(d))
        outer[d] = block
        if d in sizes:
            more, (tiles, point) = cut(point, _least(loop.extent, blocks.get(d)), sizes[d])
            cuts += more
            (inner if d in blocks else outer)[d] = tiles
            points[d] = point
        elif d not in blocks:
            outer[d] = point
        steps += cuts
    if run is not None:  # squares of both loops and the lanes are transposed as wholes
        points = {d: points[d] for d in (vector, unroll, run) if d in points}
    elif vector in points:  # of rows in lanes, `codegen/load_once.py` sees all at once
        points = {vector: points[vector], **points}
    around = [name for name in outer.values() if name]
    within = [name for name in inner.values() if name]
    if within and around:
        steps.append(Order((*around, *within)))
    chain = [name for d in loops for name in (outer[d], inner.get(d), points.get(d)) if name]
    taps = _skew(named, diagonal, points.get(unroll) if unroll is not None else None)
    steps += taps
    steps += [Run("vector", (points[vector],))] if vector in points else []
    if grouped and grouped.words:  # rows of matrices, which an instruction runs
        points = {d: points[d] for d in (unroll, vector) if d in points}
        unroll = None
    written = (*(points[d] for d in (unroll, run) if d in points), *(skew.loop for skew in taps))
    written += named.spell(_of_literals(cluster, named))
    steps += [Run("unroll", written)] if written else []
    alone = not rows and len(named.loops) == len(loops) and len(cluster.statements) == 1
    if grouped:
        loop = next(n for n in named.loops if n.key == (grouped.statement, grouped.position))
        steps += _use(grouped, named.spell([loop])[0], loop.extent, tuple(points.values()))
    elif points and not (alone and chain[-1:] == [*points.values()]):
        steps.append(Sink(tuple(points.values())))
    fused = [Fuse(named.spell(loops)) for loops in _sums(cluster, named)]
    threads = [name for d in [*order][:parallel] if (name := outer.get(d))]
    kept = [Keep(None, at=split_statement(one.loops[0])[1]) for one in fused]
    return Schedule((*steps, *fused, *run_and_keep(threads, [*around, *within]), *kept[-1:]))


def _use(
    grouped: Grouped, name: str, extent: int | None, points: tuple[str, ...]
) -> list[AnyDirective]:
    """The loop of a sum, and of the tile where matrices are multiplied, for an instruction."""
    cuts: list[AnyDirective] = []
    taken: tuple[str, ...] = ()
    if grouped.words > 1:
        cuts, (_, name) = cut(name, extent, grouped.words * grouped.size)
        extent = _least(extent, grouped.words * grouped.size)
    more, (words, terms) = cut(name, extent, grouped.size)
    if grouped.words:
        statement = short(grouped.statement)
        taken = tuple(f"{statement}.{point}" for point in points)
        taken += (words,) if grouped.words > 1 and words else ()
    sunk = (*points, words, terms) if grouped.words > 1 and words else (*points, terms)
    return [*cuts, *more, Sink(sunk), Use(grouped.instruction, (*taken, terms))]


def _sums(cluster: Cluster, named: InitialLoops) -> Iterator[list[InitialLoop]]:
    """Loops over the same results of a contraction, of those who compute and who sum them up."""
    for where in cluster.summed:
        members = [s for s in cluster.statements if s.name in where]
        loops = [loop for s in members if (loop := named.own(s, where[s.name]))]
        if len(loops) == len(members):
            yield loops


def _of_literals(cluster: Cluster, named: InitialLoops) -> list[InitialLoop]:
    """Short loops of a sum that decide a number in its expression: written out, it is a literal.

    float((w[j, q] >> 4*r) & 15)    for r in 0 .. 8

    A number that is only compared stays: its loop may end there (`codegen/bound_by_data.py`).
    """
    found = [
        loop
        for s in cluster.statements
        if s.reduction
        for loop in named.alone(cluster, s)
        if (loop.extent or LONGEST + 1) <= LONGEST
        and any(
            isinstance(e, Index) and coefficients(e.value)[loop.where[s.name]] != 0
            for e in _computed_with(s.value)
        )
    ]
    while prod(loop.extent or 1 for loop in found) > LONGEST:
        del found[0]  # several of them are written out as one: the innermost
    return found


def _computed_with(expr: Expr) -> Iterator[Expr]:
    """An expression and its parts, without what only says which of them is taken."""
    if expr.dtype != np.bool_:
        yield expr
        for child in children(expr):
            yield from _computed_with(child)


def _skew(named: InitialLoops, diagonal: Diagonal | None, rows: str | None) -> list[Skew]:
    """The taps of a diagonal moved by the rows of the tile, if there are several."""
    if diagonal is None or rows is None:
        return []
    loop = next(n for n in named.loops if n.key == (diagonal.statement, diagonal.position))
    return [Skew(named.spell([loop])[0], rows, diagonal.factor)]


def put_in_order(
    cluster: Cluster, named: InitialLoops, order: Sequence[int]
) -> tuple[dict[int, InitialLoop], dict[int, str], list[AnyDirective]]:
    """(the shared loops that do not run once, their names, the directive that orders them)."""
    loops = {d: loop for d in order if (loop := named.shared(cluster, d))}
    names = {d: named.spell([loop])[0] for d, loop in loops.items()}
    return loops, names, [Order(tuple(names.values()))] if len(names) > 1 else []


def run_and_keep(threads: Sequence[str], around: Sequence[str]) -> list[AnyDirective]:
    """Loops on threads; all that fits is kept in the innermost of the loops around the tiles."""
    parallel: list[AnyDirective] = [Run("parallel", tuple(threads))] if threads else []
    return [*parallel, Keep(None, at=around[-1] if around else "")]


def cut(
    name: str, extent: int | None, size: int | None
) -> tuple[list[AnyDirective], tuple[str, str]]:
    """(a split into tiles of that size, (the tiles, what is inside)); no tiles if one holds all."""
    if size is None or fits(extent, size):
        return [], ("", name)
    return [Split((name,), size)], (name, inside(name))


def cut_all(
    named: InitialLoops, loops: Sequence[InitialLoop], size: int
) -> tuple[list[AnyDirective], tuple[str, ...]]:
    """(one split of those that one tile does not hold, the loops inside of tiles: of all)."""
    long = [loop for loop in loops if not fits(loop.extent, size)]
    rest = [loop for loop in loops if fits(loop.extent, size)]
    cuts: list[AnyDirective] = [Split(named.spell(long), size)] if long else []
    return cuts, (*named.spell(long, inside("")), *named.spell(rest))


def fits(extent: int | None, size: int) -> bool:
    """Whether one tile holds all of a loop, whatever the sizes are."""
    return extent is not None and extent <= size


def _least(extent: int | None, size: int | None) -> int | None:
    found = [n for n in (extent, size) if n is not None]
    return min(found) if found else None
