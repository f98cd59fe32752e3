"""Strips: a loop around others runs in lanes, some vectors of it at a time.

    for j:                                    for J:                          strips of 32
      s = 0                                     for j in J: s[j] = 0
      for k: s += x[k, j]               ->      for k: for j in J: s[j] += x[k, j]
      y[j] = s                                  for j in J: y[j] = s[j]

Each iteration of the loop is as it was, and the locals of a strip are registers. It pays where
memory runs better along the loop than along those inside of it, or where these carry what lanes
cannot share: a recurrence, the best so far and where it was. The last strip, which is not whole,
gets code of its own (`codegen/peel.py`).

Innermost loops in lanes are left to the C compiler, except those that call functions, of which it
knows no vectors: these become strips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.loops.schedule.band import Band, has_band, joined, names_of
from polyc.loops.schedule.direction import (
    direction,
    is_carried,
    rows_of,
    score,
    stays,
    steps_along,
    stride_along,
)
from polyc.loops.schedule.inner import IN_LANES, Order, choose_inner, deepest, only
from polyc.loops.schedule.short import is_short
from polyc.poly.tree import BAND, LEAF, MARK
from polyc.scop.expr import calls_functions, walk
from polyc.scop.scop import Statement
from polyc.target.machine import Target

IN, OUT = isl.dim_type.in_, isl.dim_type.out

IN_SUMS = 2
"""What `IN_LANES` is where lanes share a sum, and are added up behind each of its loops; or where a
loop has less than a vector of iterations."""

MOST_VECTORS = 4
"""Of a strip: as many chains of what waits for each other run at the same time."""

VECTORS_OF_FUNCTIONS = 2
"""Of a strip of functions. A series is a chain of 10 to 15 multiply-adds of 4 cycles, and a core
looks at some 500 instructions at a time, which are few vectors of an expression of several of them.
"""


@dataclass(frozen=True)
class Lanes:
    """What decides whether lanes run along a loop: see `tile.Shaping`."""

    statements: Mapping[str, Statement]
    order: Order
    local: frozenset[str]
    target: Target

    def choose_strip(self, node: isl.ScheduleNode, band: Band) -> int:
        """The width of strips of the loop at a node, which is around others; 0 if it is to stay."""
        inside = [self.statements[name] for name in band.names]
        inmost = deepest(band.names, self.statements)
        worth = self._worth_of_strips(node, band, inmost)
        if worth <= max(0, self._worth(node.child(0), inmost)):
            return 0
        lanes = _lanes(inside, self.target)
        kept = self.local & {s.array for s in inside}
        fitting = self.target.vectors.registers // (2 * max(1, len(kept)))
        return lanes * max(1, min(MOST_VECTORS, fitting))

    def choose_strip_of_functions(self, node: isl.ScheduleNode, band: Band) -> int:
        """The width of strips of a loop with no others inside; 0 if it calls no functions, or has
        to stay for another reason."""
        inside = [self.statements[name] for name in band.names]
        if len(band.order) != 1 or band.short:
            return 0
        if not any(calls_functions(s.value) for s in inside):
            return 0
        if not _is_free(node, band, self.order.validity) or not _fills_lanes(node, band, inside):
            return 0
        return VECTORS_OF_FUNCTIONS * _lanes(inside, self.target)

    def _worth(self, node: isl.ScheduleNode, inmost: frozenset[str]) -> int:
        """What it is worth to the deepest statements that some loops at a node run in lanes."""
        if node.get_type() == LEAF or not inmost & {*names_of(node)}:
            return 0
        below = (self._worth(node.child(k), inmost) for k in range(node.n_children()))
        if node.get_type() != BAND:
            return sum(below)
        band = Band.of(node, self.order.validity)
        if has_band(node.child(0)):
            return max(self._worth_of_strips(node, band, inmost), sum(below))
        return self._worth_inside(node, band, inmost)

    def _worth_of_strips(self, node: isl.ScheduleNode, band: Band, inmost: frozenset[str]) -> int:
        """The same of a loop around others; 0 where it cannot be."""
        if len(band.order) != 1 or not _is_free(node, band, self.order.strict):
            return 0
        outer = node.get_prefix_schedule_union_map()
        moving = {name: _moving(self.statements[name], outer, band) for name in band.names}
        if None in moving.values() or not _is_even(node, band, moving):
            return 0
        worth = 0
        for s in (self.statements[name] for name in inmost & {*band.names}):
            moves = tuple(int(d == moving[s.name]) for d in range(len(s.iterators)))
            if _gathers(s, outer, moves, self.local):
                return 0
            worth += score(s, moves, self.local) + IN_LANES
        return worth

    def _worth_inside(self, node: isl.ScheduleNode, band: Band, inmost: frozenset[str]) -> int:
        """The same of a band with no other inside; lanes have little of one of a few iterations."""
        inner = choose_inner(node, band, self.statements, self.order, self.local)
        outer = node.get_prefix_schedule_union_map()
        worth: dict[str, int] = {}  # of the best of its loops, where one is cut (`hyperplane.py`)
        for group in inner.groups:
            for s in (self.statements[name] for name in inmost & {*group.names}):
                around = [row for row in rows_of(outer, s) if None not in row]
                moves = direction([*around, *band.rows(s)], len(around) + inner.order[-1])
                lanes = (IN_SUMS if group.sums or is_short(node) else IN_LANES) * group.lanes
                found = score(s, moves, self.local) + lanes
                worth[s.name] = max(worth.get(s.name, found), found)
        return sum(worth.values())


def _lanes(statements: Sequence[Statement], target: Target) -> int:
    """Of a vector of the widest elements that they compute with."""
    return min(target.lanes(e.dtype) for s in statements for e in walk(s.value))


def _gathers(
    s: Statement, outer: isl.UnionMap, moves: Sequence[int], local: frozenset[str]
) -> bool:
    """Whether lanes lie apart in memory at places that loops inside move: none can be kept."""
    around = [row for row in rows_of(outer, s) if None not in row]
    inside = [
        tuple(int(d == k) for d in range(len(moves)))
        for k in range(len(moves))
        if not moves[k] and not any(row[k] for row in around)
    ]
    for array, index in ((s.array, s.write), *((x.array, x.index) for x in s.loads)):
        apart = array not in local and stride_along(index, moves) not in (0, 1)
        if apart and any(any(steps_along(index, each) or (1,)) for each in inside):
            return True
    return not all(stays(load, moves) for load in s.loads)


def _is_free(node: isl.ScheduleNode, band: Band, relation: isl.UnionMap) -> bool:
    """Whether no iteration of the loop waits for another."""
    domain = node.get_domain()
    outer = node.get_prefix_schedule_union_map().intersect_domain(domain)
    pairs = relation.intersect_domain(domain).intersect_range(domain)
    return not is_carried(pairs, outer, band.member(0))


def _moving(s: Statement, outer: isl.UnionMap, band: Band) -> int | None:
    """The iterator of a statement that the loop counts up; None if it is not one by itself."""
    around = [row for row in rows_of(outer, s) if None not in row]  # tiles stand still
    row = band.rows(s)[0]
    found = [k for k, c in enumerate(row) if c != 0]
    if len(found) != 1 or row[found[0]] != 1 or any(each[found[0]] for each in around):
        return None
    return found[0]


def _is_even(node: isl.ScheduleNode, band: Band, moving: Mapping[str, int | None]) -> bool:
    """Whether each statement is executed in all iterations of the loop, or in none.

    Loops inside then have the same bounds in all lanes of a strip.
    """
    domain = node.get_domain()
    time = node.get_prefix_schedule_union_map().flat_range_product(band.member(0))
    loop = time.intersect_domain(domain).range()
    for name, k in moving.items():
        own = only(domain, [name])
        points = isl.Set.from_union_set(own)
        along = isl.Map.universe(points.get_space().map_from_set())
        for other in range(points.dim(isl.dim_type.set)):
            along = along if other == k else along.equate(IN, other, OUT, other)
        line = time.intersect_domain(isl.UnionSet.from_set(points.apply(along)))
        if not line.intersect_range(loop).domain().is_subset(own):
            return False
    return True


def insert_strip(node: isl.ScheduleNode, band: Band, width: int) -> isl.ScheduleNode:
    """The loop at a node as one over strips, with lanes innermost; gives the node of it.

    band j over sequence { S, band k over T }
    ->   band 32 floor(j/32) over sequence { S: vector j mod 32, band k over T: vector j mod 32 }

    Strips of a loop that begins elsewhere than at 0 begin there.
    """
    function = band.functions[0].intersect_domain(node.get_domain().universe())
    first = _first(node, band)
    strip = function.sub(first).scale_down_val(isl.Val(width)).floor().scale_val(isl.Val(width))
    strip = strip.add(first)
    lanes = function.sub(strip)
    node = node.delete().insert_partial_schedule(joined([strip]))
    return _sunk(node.child(0), lanes).parent()


def cut_at_functions(
    tree: isl.Schedule, statements: Mapping[str, Statement], target: Target
) -> tuple[isl.Schedule, int]:
    """Innermost loops in lanes that call functions, in strips; and the most iterations of a strip.

    simd j over S   ->   band 8 floor(j/8) over S: vector j mod 8
    """
    widths = [0]

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if node.get_type() == MARK and node.mark_get_id().get_name() == "simd":
            inside = [statements[name] for name in names_of(node)]
            if any(calls_functions(s.value) for s in inside):
                band = Band.of(node.child(0), isl.UnionMap("{ }"))
                if len(band.order) == 1 and _fills_lanes(node.child(0), band, inside):
                    widths.append(VECTORS_OF_FUNCTIONS * _lanes(inside, target))
                    return insert_strip(node.delete(), band, widths[-1])
            return node
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        return node

    return visit(tree.get_root()).get_schedule(), max(widths)


def _fills_lanes(node: isl.ScheduleNode, band: Band, inside: Sequence[Statement]) -> bool:
    """Whether all lanes of a loop do the same, each on an element of its own."""
    outer = node.get_prefix_schedule_union_map()
    moving = {s.name: _moving(s, outer, band) for s in inside}
    if None in moving.values() or not _is_even(node, band, moving):
        return False
    moves = [tuple(int(d == moving[s.name]) for d in range(len(s.iterators))) for s in inside]
    return all(stride_along(s.write, m) != 0 for s, m in zip(inside, moves, strict=True))


def _first(node: isl.ScheduleNode, band: Band) -> isl.UnionPwAff:
    """# S -> Z: where the loop begins; 0 if that is not one function of the loops around."""
    domain = node.get_domain()
    outer = node.get_prefix_schedule_multi_union_pw_aff()
    time = node.get_prefix_schedule_union_map().flat_range_product(band.member(0))
    points = isl.Set.from_union_set(time.intersect_domain(domain).range())
    depth = points.dim(isl.dim_type.set) - 1
    least = isl.Map.from_domain(points).move_dims(OUT, 0, IN, depth, 1).dim_min(0)
    if least.n_piece() != 1:
        return isl.UnionPwAff.val_on_domain(domain.universe(), isl.Val(0))
    ((_, begin),) = least.get_pieces()
    if depth == 0:
        begin = begin.project_domain_on_params()
        return isl.UnionPwAff.aff_on_domain(domain.universe(), begin)
    return outer.apply_aff(begin).intersect_domain(domain.universe())


def _sunk(node: isl.ScheduleNode, lanes: isl.UnionPwAff) -> isl.ScheduleNode:
    """The subtree with a loop over lanes at each leaf."""
    if node.get_type() == LEAF:
        own = lanes.intersect_domain(node.get_domain().universe())
        return node.insert_partial_schedule(joined([own])).insert_mark(isl.Id("vector"))
    for k in range(node.n_children()):
        node = _sunk(node.child(k), lanes).parent()
    return node
