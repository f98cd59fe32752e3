"""Sinking: a loop moves into the loops below it, where memory is walked better along it.

    band k, j                              band k
    └ sequence                             └ sequence
      ├ filter S  ─ band i         ->        ├ filter S  ─ band j, i
      └ filter T  ─ band i                   └ filter T  ─ band j, i

    for k: for j:                          for k:
      for i: R[k, j] += Q[i, k] * A[i, j]    for i: for j: R[k, j] += Q[i, k] * A[i, j]
      for i: A[i, j] -= Q[i, k] * R[k, j]    for i: for j: A[i, j] -= Q[i, k] * R[k, j]

Statements then run one after another for all values of j, which must break no dependence between
them that the loops around leave open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import islpy as isl

from polyc.loops.schedule.band import Band, as_map, falls, joined, names_of
from polyc.loops.schedule.direction import direction, equal_values, rows_of, score
from polyc.poly.tree import BAND, LEAF, NESTED
from polyc.scop.scop import Statement


def sink_last(
    node: isl.ScheduleNode,
    band: Band,
    statements: Mapping[str, Statement],
    validity: isl.UnionMap,
) -> isl.ScheduleNode | None:
    """The band at a node without its last member, which has sunk; None if it had better not."""
    below = node.child(0)
    if len(band.order) < 2 or below.get_type() not in NESTED:
        return None
    *others, last = band.order
    outer = node.get_prefix_schedule_union_map()
    held = outer.flat_range_product(as_map([band.functions[k] for k in others]))
    domain = node.get_domain()
    inside = validity.intersect_domain(domain).intersect_range(domain)
    open_pairs = inside.intersect(equal_values(held))
    if not _gains(below, outer, band, statements) or _is_broken(below, open_pairs):
        return None
    function = band.functions[last]
    node = node.delete().insert_partial_schedule(joined([band.functions[k] for k in others]))
    node = node.band_set_permutable(int(band.is_permutable))
    for place, k in enumerate(others):
        node = node.band_member_set_coincident(place, int(band.coincident[k]))
    return _sunk(node.child(0), function, open_pairs).parent()


def _bands(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """The outermost bands and leaves below sequences and sets."""
    if node.get_type() in (BAND, LEAF):
        yield node
        return
    for k in range(node.n_children()):
        yield from _bands(node.child(k))


def _gains(
    below: isl.ScheduleNode,
    outer: isl.UnionMap,
    band: Band,
    statements: Mapping[str, Statement],
) -> bool:
    """Whether accesses of the deepest statements run better along the last member than they do."""
    depth = max(len(statements[name].iterators) for name in band.names)
    now = then = 0
    for node in _bands(below):
        if node.get_type() == LEAF:
            continue
        inner = Band.of(node, isl.UnionMap("{ }"))
        if any(_bands_inside(node.child(0))):
            return False
        for name in names_of(node):
            s = statements[name]
            if len(s.iterators) == depth:
                members = [*(band.member(k) for k in band.order), *map(inner.member, inner.order)]
                rows = [*rows_of(outer, s), *(row for m in members for row in rows_of(m, s))]
                rows = [row for row in rows if None not in row]
                first = len(rows) - len(inner.order)
                now += max(score(s, direction(rows, first + k)) for k in inner.order)
                then += score(s, direction(rows, first - 1))
    return then > max(now, 0)


def _bands_inside(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    return (each for each in _bands(node) if each.get_type() == BAND)


def _is_broken(node: isl.ScheduleNode, pairs: isl.UnionMap) -> bool:
    """Whether some pair runs from a child of a sequence, or of a set, to one before it."""
    if node.get_type() not in NESTED:
        return False  # what is below a band stays as it is
    parts = [node.child(k).child(0).get_domain() for k in range(node.n_children())]
    for k, earlier in enumerate(parts):
        for later in parts[k + 1 :]:
            if not pairs.intersect_domain(later).intersect_range(earlier).is_empty():
                return True
    return any(_is_broken(node.child(k).child(0), pairs) for k in range(node.n_children()))


def _sunk(
    node: isl.ScheduleNode, function: isl.UnionPwAff, pairs: isl.UnionMap
) -> isl.ScheduleNode:
    """The subtree with a loop inside of its sequences and sets."""
    if node.get_type() not in (BAND, LEAF):
        for k in range(node.n_children()):
            node = _sunk(node.child(k), function, pairs).parent()
        return node
    domain = node.get_domain()
    functions: Sequence[isl.UnionPwAff] = [function.intersect_domain(domain.universe())]
    if node.get_type() == BAND:
        partial = node.band_get_partial_schedule()
        functions = [*functions, *map(partial.get_union_pw_aff, range(node.band_n_member()))]
        node = node.delete()
    own = pairs.intersect_domain(domain).intersect_range(domain)
    node = node.insert_partial_schedule(joined(functions))
    return node.band_set_permutable(int(not any(falls(f, own) for f in functions)))
