"""Loops of statements as digits of a number, so that threads, steps and vectors can walk them.

S[e, j]   ->   S[e, k, t, v]   with   j = 128 k + 4 t + v,   0 <= t < 32,  0 <= v < 4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.coordinates.change import change_coordinates, digits
from polyc.names import show
from polyc.schedule.cluster import Cluster
from polyc.schedule.names import short
from polyc.scop.scop import Statement


def cut_digits(
    cluster: Cluster,
    own: Mapping[str, Sequence[int]],
    names: Sequence[str],
    sizes: Sequence[int],
) -> Cluster:
    """The cluster with iterators of statements, by name of these, as digits of one number.

    sizes: the extents of all digits but the first, which has what is needed.
    """
    statements = []
    shared = [dict(loop) for loop in cluster.shared]
    for s in cluster.statements:
        positions = own.get(s.name)
        if positions:
            taken = next((n for n in names if n in s.iterators), None)
            if taken is not None:
                raise IllegalSchedule(
                    f"{show(short(s.name))} has a loop {show(taken)} already; take another name"
                )
            kept = [p for p in range(len(s.iterators)) if p not in positions]
            s = _cut(s, positions, kept, names, sizes)
            for loop in shared:
                loop[s.name] = kept.index(loop[s.name])
        statements.append(s)
    return replace(cluster, statements=tuple(statements), shared=tuple(shared))


def _cut(
    s: Statement,
    positions: Sequence[int],
    kept: Sequence[int],
    names: Sequence[str],
    sizes: Sequence[int],
) -> Statement:
    """One statement, with the digits behind the iterators that it keeps."""
    extents = s.estimated_extents
    weights = [prod(sizes[k:]) for k in range(len(names))]
    terms = (name if w == 1 else f"{w}*{name}" for name, w in zip(names, weights, strict=True))
    place = f"({' + '.join(terms)})"
    formulas = list(s.iterators)
    lengths = [extents[p] for p in positions]
    for p, digit in zip(positions, digits(place, lengths), strict=True):
        formulas[p] = digit
    length = prod(lengths)
    counts = (ceil(length / weights[0]), *sizes)
    limits = [f"0 <= {name} < {n}" for name, n in zip(names, counts, strict=True)]
    bounds = " and ".join([*limits, f"{place} < {length}"])
    iterators = [*(s.iterators[p] for p in kept), *names]
    return change_coordinates(s, iterators, formulas, bounds)
