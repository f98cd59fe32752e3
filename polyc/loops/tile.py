"""Tiles, wavefronts, threads and vectors: what is made of the bands of a schedule tree.

A permutable band that is worth it is tiled. A coincident one of its tile loops becomes the
outermost, and runs in parallel; if there is none, tiles run in wavefronts, each in parallel:

    band (t, 2t + i)                   band T0 + T1                 T0 = floor(t/32), …
                            ->         └ mark parallel ─ band T1
                                         └ band t, 2t + i

Innermost goes the member along which memory is walked best, in vector lanes if it carries nothing
(Bondhugula et al. 2008, sections 4 and 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl

from polyc.loops.direction import direction, is_carried, rows_of, score, stride_along
from polyc.poly.tree import BAND, LEAF, MARK, make_atomic, mark_members
from polyc.scop.scop import Statement

TILE = 32
STRIP = 2048
"""Iterations of a loop that one thread takes at a time, where there is one loop alone."""


@dataclass(frozen=True)
class Shaping:
    """What bands are shaped by: the statements, and what must stay in order."""

    statements: Mapping[str, Statement]
    validity: isl.UnionMap  # S -> T
    parallel: list[str] = field(default_factory=list)  # how threads share, for people

    def shape(self, tree: isl.Schedule) -> isl.Schedule:
        node = tree.get_root().child(0)
        return self._visit(node, False).get_schedule()

    def _visit(self, node: isl.ScheduleNode, shared: bool) -> isl.ScheduleNode:
        """The subtree shaped; `shared`: inside of a parallel loop. Gives the node at its place."""
        if node.get_type() == BAND:
            return self._band(node, shared)
        for k in range(node.n_children()):
            node = self._visit(node.child(k), shared).parent()
        return node

    def _band(self, node: isl.ScheduleNode, shared: bool) -> isl.ScheduleNode:
        band = Band.of(node, self.validity)
        innermost = not _has_band(node.child(0))
        order, lanes = self._inner_order(node, band) if innermost else (band.order, False)
        worth = band.is_permutable and len(order) > 1 and self._has_reuse(node, band)
        strip = innermost and len(order) == 1 and band.coincident[0] and not shared
        if not (worth or strip):
            marks = ["" for _ in order]
            first = self._parallel_member(band, order, shared, innermost)
            if first is not None and band.is_permutable:
                order = [first, *(k for k in order if k != first)]
            if first is not None and (lanes is False or order[-1] != first or len(order) > 1):
                marks[order.index(first)] = "parallel"
                self.parallel.append(f"loops of {_names(node)}")
            if lanes and not marks[-1]:
                marks[-1] = "simd"
            return self._finish(band.insert(node, order), marks, shared or "parallel" in marks)
        node, tile_marks = self._tile(node, band, STRIP if strip else TILE, shared)
        shared = shared or "parallel" in tile_marks
        inner = band.insert(node.child(0), order)
        marks = [*["" for _ in order[:-1]], "simd" if lanes else ""]
        node = self._finish(inner, marks, shared).parent()
        return mark_members(node, tile_marks)

    def _finish(
        self, node: isl.ScheduleNode, marks: Sequence[str], shared: bool
    ) -> isl.ScheduleNode:
        """What is below a band shaped, then its members marked."""
        node = self._visit(node.child(0), shared).parent()
        return mark_members(node, marks)

    # -- choices ------------------------------------------------------------------------------

    def _inner_order(self, node: isl.ScheduleNode, band: Band) -> tuple[list[int], bool]:
        """The members of an innermost band, the best for lanes last; whether it runs in lanes."""
        outer = node.get_prefix_schedule_union_map()
        domain = node.get_domain()
        carried = [self._is_carried(outer, band, k, domain) for k in band.order]
        scores = [self._score(outer, band, k) for k in band.order]
        candidates = band.order if band.is_permutable else band.order[-1:]
        best = max(candidates, key=lambda k: (scores[k] - (50 if carried[k] else 0), k))
        order = [*(k for k in band.order if k != best), best]
        return order, not carried[best] and scores[best] > 0

    def _is_carried(
        self, outer: isl.UnionMap, band: Band, member: int, domain: isl.UnionSet
    ) -> bool:
        held = outer.intersect_domain(domain)
        for k in band.order:
            if k != member:
                held = held.flat_range_product(band.member(k))
        relation = self.validity
        inside = relation.intersect_domain(domain).intersect_range(domain)
        return is_carried(inside, held, band.member(member))

    def _score(self, outer: isl.UnionMap, band: Band, member: int) -> int:
        total = 0
        for name in band.names:
            statement = self.statements[name]
            rows = rows_of(outer, statement)
            own = [row for k in band.order for row in rows_of(band.member(k), statement)]
            total += score(statement, direction([*rows, *own], len(rows) + member))
        return total

    def _parallel_member(
        self, band: Band, order: Sequence[int], shared: bool, innermost: bool
    ) -> int | None:
        """The coincident member that threads share; short loops are not worth a barrier."""
        if shared or (innermost and len(order) == 1):
            return None
        candidates = band.order if band.is_permutable else band.order[:1]
        return next((k for k in candidates if band.coincident[k]), None)

    def _has_reuse(self, node: isl.ScheduleNode, band: Band) -> bool:
        """Whether tiles touch less than their points together do."""
        if not all(band.coincident):
            return True
        for name in band.names:
            statement = self.statements[name]
            own = [row for k in band.order for row in rows_of(band.member(k), statement)]
            for member in band.order:
                moves = direction(own, member)
                for load in statement.loads:
                    if moves and any(moves) and not load.dynamic and _rests(load.index, moves):
                        return True
        return False

    # -- tiles --------------------------------------------------------------------------------

    def _tile(
        self, node: isl.ScheduleNode, band: Band, size: int, shared: bool
    ) -> tuple[isl.ScheduleNode, list[str]]:
        """A band of tile loops above the band, and how each of them is to run."""
        numbers = [band.functions[k].scale_down_val(isl.Val(size)).floor() for k in band.order]
        marks = ["" for _ in numbers]
        if not shared:
            first = next((k for k in band.order if band.coincident[k]), None)
            if first is not None:
                numbers = [numbers[first], *(n for k, n in enumerate(numbers) if k != first)]
                marks[0] = "parallel"
                self.parallel.append(f"tiles of {_names(node)}")
            else:
                numbers = [numbers[0].add(numbers[1]), *numbers[1:]]
                marks[1] = "parallel"
                self.parallel.append(f"wavefronts of tiles of {_names(node)}")
        node = node.insert_partial_schedule(_joined(numbers))
        return make_atomic(node.band_set_permutable(1)), marks


@dataclass(frozen=True)
class Band:
    """A band as values: a function for each member, which are coincident, and whose they are."""

    functions: tuple[isl.UnionPwAff, ...]
    coincident: tuple[bool, ...]
    is_permutable: bool
    names: tuple[str, ...]

    @staticmethod
    def of(node: isl.ScheduleNode, relation: isl.UnionMap) -> Band:
        """The band of a node. A member is coincident if no pair of a relation, of those that no
        loop around keeps in order, is apart along it; isl's own marks forget some pairs."""
        partial = node.band_get_partial_schedule()
        functions = [partial.get_union_pw_aff(k) for k in range(node.band_n_member())]
        domain = node.get_domain()
        outer = node.get_prefix_schedule_union_map().intersect_domain(domain)
        inside = relation.intersect_domain(domain).intersect_range(domain)
        coincident = (not is_carried(inside, outer, _as_map([f])) for f in functions)
        return Band(
            tuple(functions),
            tuple(coincident),
            len(functions) == 1 or bool(node.band_get_permutable()),
            _names_of(node),
        )

    @property
    def order(self) -> list[int]:
        return list(range(len(self.functions)))

    def member(self, k: int) -> isl.UnionMap:
        """# S -> [value of the member]"""
        return _as_map([self.functions[k]])

    def insert(self, node: isl.ScheduleNode, order: Sequence[int]) -> isl.ScheduleNode:
        """The band at its node, its members in another order."""
        if list(order) == self.order:
            return node
        node = node.delete()
        node = node.insert_partial_schedule(_joined([self.functions[k] for k in order]))
        node = node.band_set_permutable(int(self.is_permutable))
        for place, k in enumerate(order):
            node = node.band_member_set_coincident(place, int(self.coincident[k]))
        return node


def _as_map(functions: Sequence[isl.UnionPwAff]) -> isl.UnionMap:
    """# S -> [values]"""
    return isl.UnionMap.from_multi_union_pw_aff(_joined(functions))


def _joined(functions: Sequence[isl.UnionPwAff]) -> isl.MultiUnionPwAff:
    """Several functions as one of several dimensions."""
    whole = isl.MultiUnionPwAff.from_union_pw_aff(functions[0])
    for function in functions[1:]:
        whole = whole.flat_range_product(isl.MultiUnionPwAff.from_union_pw_aff(function))
    return whole


def _rests(index: isl.PwMultiAff, moves: Sequence[int]) -> bool:
    """Whether an access stays at its element along a direction."""
    return stride_along(index, moves) == 0


def _has_band(node: isl.ScheduleNode) -> bool:
    if node.get_type() == BAND:
        return True
    return any(_has_band(node.child(k)) for k in range(node.n_children()))


def _names_of(node: isl.ScheduleNode) -> tuple[str, ...]:
    sets = node.get_domain().get_set_list()
    return tuple(sorted(sets.get_at(k).get_tuple_name() for k in range(sets.n_set())))


def _names(node: isl.ScheduleNode) -> str:
    return ", ".join(_names_of(node))


def declare_scopes(tree: isl.Schedule) -> isl.Schedule:
    """The tree with a mark below each band where local arrays may be declared.

    Not above a parallel loop: what is declared there would be shared by its iterations.
    """

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        if node.get_type() != BAND or _has_parallel(node):
            return node
        return node.child(0).insert_mark(isl.Id("scope")).parent()

    return visit(tree.get_root()).get_schedule()


def _has_parallel(node: isl.ScheduleNode) -> bool:
    if node.get_type() == MARK and node.mark_get_id().get_name() == "parallel":
        return True
    if node.get_type() == LEAF:
        return False
    return any(_has_parallel(node.child(k)) for k in range(node.n_children()))
