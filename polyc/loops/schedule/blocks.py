"""Blocks, threads and launches of a GPU: what is made of the bands of a schedule tree.

Members that carry nothing run over blocks and the threads of each; those that do stay outside, and
each of their iterations is a launch, or several one after another:

    band t                             band t                              on the host
    └ band i, j (both coincident)      └ block  floor(i/8), floor(j/32)
      └ band k                   ->      └ thread  i mod 8, j mod 32
                                           └ stack                         locals of a thread
                                             └ band k

Of a permutable band all of whose members carry something, the diagonals are launched one after
another (Lamport 1974, "The parallel execution of DO loops"). A band with nothing to share out below
it becomes loops of one thread (`codegen/cuda/launches.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import islpy as isl

from polyc.loopnest.marks import LoopKind, LoopMark
from polyc.loops.schedule.band import Band, as_map, joined, names_of
from polyc.loops.schedule.direction import direction, rows_of, score
from polyc.poly.tree import BAND, MARK, make_atomic
from polyc.schedule.loops import find_value
from polyc.scop.scop import Statement

THREADS = 256
"""Of a block, at most: eight warps."""

NEIGHBOURS = 32
"""Of these along the loop that walks through memory, where two loops run over threads: a warp."""


@dataclass(frozen=True)
class Sharing:
    """What loops are shared out by: the statements, and what must stay in order."""

    statements: Mapping[str, Statement]
    validity: isl.UnionMap  # S -> T
    shared: list[str] = field(default_factory=list)  # how, for people

    def shape(self, tree: isl.Schedule) -> isl.Schedule:
        return self._visit(tree.get_root().child(0)).get_schedule()

    def _visit(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        """The subtree with what runs at the same time over blocks and threads; at its place."""
        if node.get_type() == BAND:
            return self._band(node)
        for k in range(node.n_children()):
            node = self._visit(node.child(k)).parent()
        return node

    def _band(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        band = Band.of(node, self.validity)
        if not band.is_permutable:
            node = node.band_split(1)
            band = Band.of(node, self.validity)
        while all(band.coincident) and node.child(0).get_type() == BAND:
            node, band = self._with_child(node, band)
        candidates = [k for k in band.order if band.coincident[k]]
        if candidates:
            return self._share(node, band, candidates)
        if len(band.order) > 1:
            return self._diagonals(node, band)
        node = make_atomic(node)
        return self._visit(node.child(0)).parent()

    def _with_child(self, node: isl.ScheduleNode, band: Band) -> tuple[isl.ScheduleNode, Band]:
        """A band that carries nothing, and the one below it, as one.

        Of a band below whose members cannot change places, the first comes along.
        """
        child = node.child(0)
        below = Band.of(child, self.validity)
        if not below.is_permutable:
            child = child.band_split(1)
            below = Band.of(child, self.validity)
        functions = (*band.functions, *below.functions)
        node = child.delete().parent().delete()
        node = make_atomic(node.insert_partial_schedule(joined(functions)))
        coincident = (*band.coincident, *below.coincident)
        # What loops around carry is in order whichever way these are.
        return node, Band(functions, coincident, True, band.names)

    def _diagonals(self, node: isl.ScheduleNode, band: Band) -> isl.ScheduleNode:
        """band i, j  ->  band i + j ─ band i, the first on the host."""
        whole = reduce(isl.UnionPwAff.add, band.functions)
        node = node.delete().insert_partial_schedule(joined(band.functions[:-1]))
        node = make_atomic(node.band_set_permutable(1))
        node = make_atomic(node.insert_partial_schedule(joined([whole])))
        self.shared.append(f"diagonals of {', '.join(band.names)} are launched one after another")
        return self._visit(node.child(0)).parent()

    def _share(
        self, node: isl.ScheduleNode, band: Band, candidates: Sequence[int]
    ) -> isl.ScheduleNode:
        """A band with one or two of its members over blocks and threads, and the rest inside."""
        inmost = max(candidates, key=lambda k: (self._score(node, band, k), k))
        others = [k for k in candidates if k != inmost][:1]
        extents = {k: _extent(node, band.functions[k]) for k in (*others, inmost)}
        room = NEIGHBOURS if others else THREADS
        widths = {inmost: min(room, _round_up(extents[inmost]))}
        for k in others:
            widths[k] = min(THREADS // widths[inmost], _round_up(extents[k]))
        chosen = [*others, inmost]
        rest = [band.functions[k] for k in band.order if k not in chosen]
        node = _declare_stacks(node.delete())
        if rest:
            node = make_atomic(node.insert_partial_schedule(joined(rest)))
        node = node.insert_mark(isl.Id("stack"))
        apart = 1
        for k in reversed(chosen):
            place = band.functions[k].mod_val(isl.Val(widths[k]))
            at = find_value(place, node.get_domain())
            node = _insert(node, place, LoopMark("thread", widths[k], apart, at))
            apart *= widths[k]
        for k in reversed(chosen):
            number = band.functions[k].scale_down_val(isl.Val(widths[k])).floor()
            node = _insert(node, number, LoopMark("block"))
        loops = "one loop" if len(chosen) == 1 else "two loops"
        self.shared.append(f"over blocks and threads: {loops} of {', '.join(names_of(node))}")
        return node

    def _score(self, node: isl.ScheduleNode, band: Band, member: int) -> int:
        """How well memory is walked along a member."""
        outer = node.get_prefix_schedule_union_map()
        total = 0
        for name in band.names:
            s = self.statements[name]
            around = rows_of(outer, s)
            own = [row for f in band.functions for row in rows_of(as_map([f]), s)]
            total += score(s, direction([*around, *own], len(around) + member))
        return total


def declare_stacks(tree: isl.Schedule) -> isl.Schedule:
    """The tree with a mark below each loop over threads, and below those inside of these."""

    def visit(node: isl.ScheduleNode, inside: bool) -> isl.ScheduleNode:
        if node.get_type() == MARK:
            inside = inside or _kind(node) == "thread"
        elif inside and not _has_threads(node):
            return _declare_stacks(node)
        for k in range(node.n_children()):
            node = visit(node.child(k), inside).parent()
        return node

    return visit(tree.get_root(), False).get_schedule()


def _has_threads(node: isl.ScheduleNode) -> bool:
    """Whether a loop over threads is below a node."""
    if node.get_type() == MARK and _kind(node) == "thread":
        return True
    return any(_has_threads(node.child(k)) for k in range(node.n_children()))


def _kind(mark: isl.ScheduleNode) -> LoopKind:
    return LoopMark.parse(mark.mark_get_id().get_name()).kind


def _insert(node: isl.ScheduleNode, function: isl.UnionPwAff, mark: LoopMark) -> isl.ScheduleNode:
    """A loop above a node, with what it is.

    What is said stands just above the loop, so that it is not said of one further down if isl
    leaves this one out; the mark in between is that of a plain one.
    """
    node = node.insert_mark(isl.Id(str(LoopMark())))
    node = make_atomic(node.insert_partial_schedule(joined([function])))
    return node.insert_mark(isl.Id(str(mark)))


def _declare_stacks(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """The subtree with a mark below each band, where a thread may keep locals."""
    for k in range(node.n_children()):
        node = _declare_stacks(node.child(k)).parent()
    if node.get_type() != BAND:
        return node
    node = make_atomic(node)
    return node.child(0).insert_mark(isl.Id("stack")).parent()


def _extent(node: isl.ScheduleNode, function: isl.UnionPwAff) -> int:
    """How many values a function has at most: from its least to its largest."""
    inside = function.intersect_domain(node.get_domain())
    return int(inside.max_val().to_python()) - int(inside.min_val().to_python()) + 1


def _round_up(count: int) -> int:
    """The power of two that is not less."""
    return 1 << (count - 1).bit_length()
