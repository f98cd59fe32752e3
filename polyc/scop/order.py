"""The original order of a scop: which instances come before which others.

Statements of tensor graphs stand in the order of the text, each with all its instances, and have no
`time`. Those of loops that people write are interleaved: their `time` says when an instance runs,
as a vector in which positions in the text and loop counters alternate (Feautrier 1992; Kelly and
Pugh's 2d+1 form), and instances run in the lexicographic order of these vectors.

    for i: S; for j: T       S[i] at [0, i, 0, 0, 0]      T[i, j] at [0, i, 1, j, 0]
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.scop.scop import Statement


def before(first: Statement, second: Statement, places: tuple[int, int]) -> isl.Map:
    """# S -> T: pairs of which the instance of `first` is executed before that of `second`.

    places: the positions of the two in the text, which decide where statements have no time.
    """
    if first.time is not None and second.time is not None:
        later = isl.Map.lex_lt(first.time.as_map().range().space)  # [t] -> [t']
        ordered = first.time.as_map().apply_range(later)
        return ordered.apply_range(second.time.as_map().reverse())
    if places[0] == places[1]:
        return isl.Map.lex_lt(first.domain.space)
    source = first.domain.space.align_params(second.domain.space)
    space = source.map_from_domain_and_range(second.domain.space.align_params(source))
    return isl.Map.universe(space) if places[0] < places[1] else isl.Map.empty(space)


def may_precede(first: Statement, places: tuple[int, int]) -> bool:
    """Whether some instance of `first` may come before one of a statement at the second place."""
    return first.time is not None or places[0] <= places[1]


def original_order(statements: Sequence[Statement]) -> isl.UnionMap:
    """# S -> time: without a time of its own, instance i of the k-th runs at [k, i…, 0…]."""
    if any(s.time is not None for s in statements):
        whole = isl.UnionMap("{ }")
        for s in statements:
            assert s.time is not None, f"{s.name} has no time among statements that have one"
            whole = whole.union(isl.UnionMap.from_map(s.time.as_map()))
        return whole
    depth = max((len(s.iterators) for s in statements), default=0)
    parts = []
    for k, statement in enumerate(statements):
        indices = [f"i{d}" for d in range(len(statement.iterators))]
        time = [str(k), *indices, *["0"] * (depth - len(indices))]
        parts.append(f"{statement.name}[{', '.join(indices)}] -> [{', '.join(time)}]")
    return isl.UnionMap(f"{{ {'; '.join(parts)} }}")
