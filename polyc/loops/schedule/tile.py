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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from polyc.loops.schedule.band import Band, as_map, has_band, joined, names_of
from polyc.loops.schedule.diagonal import skew_inner
from polyc.loops.schedule.direction import direction, is_carried, steps_along, stride_along, strides
from polyc.loops.schedule.inner import (
    Inner,
    Order,
    bundles_of,
    choose_deepest,
    choose_inner,
    insert_inner,
    leaf_order,
    moves_along,
    passing,
)
from polyc.loops.schedule.joint import join_tiles
from polyc.loops.schedule.parts import beside, insert_parts
from polyc.loops.schedule.places import asks_data, is_ended
from polyc.loops.schedule.products import Product, cache_sizes, find_products
from polyc.loops.schedule.short import move_short
from polyc.loops.schedule.sink import sink_last
from polyc.loops.schedule.strips import Lanes, insert_strip
from polyc.poly.tree import BAND, LEAF, MARK, NESTED, is_unrolled, make_atomic, mark_members
from polyc.scop.expr import calls_functions, walk
from polyc.scop.scop import Statement
from polyc.target.machine import Target

TILE = 32
LANES_TILE = 256
"""Iterations of a tile along its innermost loop: whole vectors, or long diagonals, and few loops
around them. On a core of an AMD EPYC (family 26), jacobi-2d (1300 x 1300, 100 steps) takes 93 ms
with 256, 99 with 128 and 169 with 32; seidel-2d (2000 x 2000, 20 steps) along diagonals 128 with
256 and 145 with 32.
"""
FEW = 4
"""Iterations of a tile along the first of two loops whose tiles a wavefront sums, if the second is
in lanes. isl takes seconds to minutes to generate the loops of wavefronts of tiles that are large,
or not equal, and half a second with 4 of these.
"""
SUMS_TILE = 256
"""Iterations of both loops whose tiles a wavefront sums, if lanes share sums along one of them: the
vectors of a row of a tile pay for adding up their lanes, and a tile of doubles is 512 KiB.
"""
CHAIN_TILE = 64
"""And if each iteration waits for the one before: two rows of a tile are in the L1 cache."""
IN_JOINT = 4
"""Into how many parts threads cut the rows of a joint tile, and tiles of its columns."""
STRIP = 2048
"""Iterations of a loop that one thread takes at a time, where there is one loop alone."""


@dataclass(frozen=True)
class Shaping:
    """What bands are shaped by: the statements, and what must stay in order.

    local: names of locals; wide: of those of which a tile would hold a matrix; left: of those that
    say whether a loop was left. in_strips: whether loops around others may run in lanes
    (`strips.py`).
    """

    statements: Mapping[str, Statement]
    order: Order
    target: Target
    local: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()
    in_strips: bool = False
    left: frozenset[str] = frozenset()
    parallel: list[str] = field(default_factory=list)  # how threads share, for people
    strips: dict[str, int] = field(default_factory=dict)  # loops around others: how many lanes
    alone: list[str] = field(default_factory=list)  # statements in no lanes
    boxed: list[str] = field(default_factory=list)  # products with boxes of results in registers

    def shape(self, tree: isl.Schedule) -> isl.Schedule:
        tree = join_tiles(tree, self.statements, self.order.validity)
        return self._visit(tree.get_root().child(0), False).get_schedule()

    def _visit(self, node: isl.ScheduleNode, shared: bool, cut: int = 1) -> isl.ScheduleNode:
        """The subtree shaped; `shared`: inside of a parallel loop. Gives the node at its place.

        cut: into how many parts tiles are cut, so that threads share a part of what they would.
        """
        if node.get_type() == BAND and not is_ended(node, self.statements, self.left):
            return self._band(node, shared, cut)
        if node.get_type() == MARK:
            node, cut = node.delete(), IN_JOINT
            return self._outer(node, Band.of(node, self.order.validity), shared, cut)
        shared = shared or node.get_type() == BAND
        for k in range(node.n_children()):
            node = self._visit(node.child(k), shared, cut).parent()
        return node

    def _band(self, node: isl.ScheduleNode, shared: bool, cut: int) -> isl.ScheduleNode:
        band = Band.of(node, self.order.validity)
        if has_band(node.child(0)):
            return self._outer(node, band, shared, cut)
        outer = node.get_prefix_schedule_union_map()
        products = find_products(outer, band, self.statements, self.order.validity, self.target)
        if products:
            return self._products(node, band, products, shared)
        node = move_short(node, band)
        band = Band.of(node, self.order.validity)
        single = len(band.order) == 1
        strips = self._strips_of_functions(node, band, shared)
        if strips is not None:
            return strips
        strip = single and band.coincident[0] and not shared
        if strip or (band.is_permutable and not single and self._has_reuse(node, band)):
            sizes = [STRIP] if strip else self._sizes(node, band, shared, cut)
            return self._tiled(node, band, (), sizes, shared)
        inner = choose_inner(node, band, self.statements, self.order, self.local)
        first = None if single else self._parallel_member(band, inner.order[:-1], shared)
        if first is not None and band.is_permutable:
            others = (k for k in inner.order if k != first)
            inner = replace(inner, order=[first, *others])
        node, marks = self._insert(node, band, inner)
        if first is not None:
            marks[inner.order.index(first)] = "parallel"
            self.parallel.append(f"loops of {_names(node)}")
        return _marked(node, marks)

    def _sizes(self, node: isl.ScheduleNode, band: Band, shared: bool, cut: int) -> list[int]:
        """The extents of a tile."""
        sizes = [TILE] * len(band.order)
        inner = choose_deepest(node, band, self.statements, self.order, self.wide)
        in_rows = self._runs_in_rows(node, band, inner.order[-1])
        in_lanes = any(group.lanes for group in inner.groups) and in_rows
        if len(sizes) > 2:
            sizes[inner.order[-1]] = LANES_TILE
        elif in_lanes:
            sizes[inner.order[-1]] = self._long(band)
        if not shared and any(band.coincident):
            sizes[band.coincident.index(True)] //= cut
        elif not shared:
            if len(sizes) == 2 and any(group.sums for group in inner.groups):
                return [SUMS_TILE, SUMS_TILE]
            if len(sizes) == 2 and not in_lanes:
                return [CHAIN_TILE, CHAIN_TILE]
            short = FEW if in_lanes and inner.order == [0, 1] else min(sizes[:2])
            sizes[:2] = [short, sizes[1] if short == FEW else short]
        return sizes

    def _long(self, band: Band) -> int:
        """Iterations of a loop in lanes inside of one other: two rows fit the L1 cache."""
        kinds = (e.dtype.itemsize for n in band.names for e in walk(self.statements[n].value))
        return 1 << (self.target.l1d // (2 * max(kinds))).bit_length() - 1

    def _products(
        self, node: isl.ScheduleNode, band: Band, products: Sequence[Product], shared: bool
    ) -> isl.ScheduleNode:
        """A band with products: tiles for the caches, and inside of them tiles for registers."""
        sizes = cache_sizes(products[0], band.order, self.target)
        if not shared and not any(band.coincident):  # see `_sizes`; whole boxes fit both
            boxes = math.lcm(*(products[0].step_of(member) for member in band.order[:2]))
            sizes[0] = sizes[1] = max(1, min(sizes[:2]) // boxes) * boxes
        self.boxed.extend(product.statement for product in products)
        return self._tiled(node, band, products, sizes, shared)

    def _tiled(
        self,
        node: isl.ScheduleNode,
        band: Band,
        products: Sequence[Product],
        sizes: Sequence[int],
        shared: bool,
    ) -> isl.ScheduleNode:
        """A band with no band below as tiles, and what is inside of them in parts."""
        # Boxes of results take so many iterations that a tile of a local is memory beside them;
        # strips have registers for it.
        in_strips = any(calls_functions(self.statements[name].value) for name in band.names)
        together = frozenset[str]() if products else self.local if in_strips else self.wide
        bundles = bundles_of(leaf_order(node), self.statements, together)
        if not products:
            held = node.get_prefix_schedule_union_map().intersect_domain(node.get_domain())
            time = held.flat_range_product(as_map(band.functions))
            bundles = beside(bundles, self.statements, held, time, self.order.validity)
        node, tile_marks = self._tile(node, band, sizes, shared)
        below = insert_parts(
            node.child(0), band, products, bundles, self.order.validity, self._plain
        )
        return mark_members(below.parent(), tile_marks)

    def _plain(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        """A band inside of a tile."""
        band = Band.of(node, self.order.validity)
        inner = choose_inner(node, band, self.statements, self.order, self.local)
        if not any(group.lanes for group in inner.groups):
            node, band, inner = skew_inner(node, band, inner, self.order.validity, self.statements)
        return _marked(*self._insert(node, band, inner))

    def _insert(
        self, node: isl.ScheduleNode, band: Band, inner: Inner
    ) -> tuple[isl.ScheduleNode, list[str]]:
        self.alone.extend(name for g in inner.groups if not g.lanes for name in g.names)
        return insert_inner(node, band, inner)

    def _outer(
        self, node: isl.ScheduleNode, band: Band, shared: bool, cut: int
    ) -> isl.ScheduleNode:
        """A band with others below it."""
        strips = self._strips(node, band, shared) if self.in_strips else None
        if strips is not None:
            return strips
        order, tile_marks = band.order, None
        if band.is_permutable and len(order) > 1 and self._has_reuse(node, band):
            node, tile_marks = self._tile(node, band, [TILE] * len(order), shared)
            shared = shared or "parallel" in tile_marks
            node = node.child(0)
        asked = asks_data(band.names, self.statements, self.left)
        sunk = None if asked else sink_last(node, band, self.statements, self.order.validity)
        if sunk is not None:
            node, band = sunk, Band.of(sunk, self.order.validity)
            order = band.order
        marks = ["" for _ in order]
        first = self._parallel_member(band, order, shared)
        if first is not None:
            if band.is_permutable:
                order = [first, *(k for k in order if k != first)]
            marks[order.index(first)] = "parallel"
            self.parallel.append(f"loops of {_names(node)}")
        node = make_atomic(band.insert(node, order))
        node = self._visit(node.child(0), shared or "parallel" in marks, cut).parent()
        node = mark_members(node, marks)
        return node if tile_marks is None else mark_members(node.parent(), tile_marks)

    def _strips(self, node: isl.ScheduleNode, band: Band, shared: bool) -> isl.ScheduleNode | None:
        """A loop around others in strips; None if it had better stay as it is."""
        lanes = Lanes(self.statements, self.order, self.local, self.target)
        return self._cut(node, band, shared, lanes.choose_strip(node, band))

    def _strips_of_functions(
        self, node: isl.ScheduleNode, band: Band, shared: bool
    ) -> isl.ScheduleNode | None:
        """A loop without others inside that calls functions in strips; None if it is no such."""
        lanes = Lanes(self.statements, self.order, self.local, self.target)
        return self._cut(node, band, shared, lanes.choose_strip_of_functions(node, band))

    def _cut(
        self, node: isl.ScheduleNode, band: Band, shared: bool, width: int
    ) -> isl.ScheduleNode | None:
        """A loop in strips of a width, which threads share if they share nothing yet."""
        if not width or asks_data(band.names, self.statements, self.left):
            return None
        node = make_atomic(insert_strip(node, band, width))
        self.strips[f"loops of {_names(node)}"] = width
        if shared or not band.coincident[0]:
            return node
        self.parallel.append(f"strips of {_names(node)}")
        return mark_members(node, ["parallel"])

    # -- choices ------------------------------------------------------------------------------

    def _parallel_member(self, band: Band, members: Sequence[int], shared: bool) -> int | None:
        """The coincident one of some members that threads share."""
        candidates = members if band.is_permutable else members[:1]
        return None if shared else next((k for k in candidates if band.coincident[k]), None)

    def _has_reuse(self, node: isl.ScheduleNode, band: Band) -> bool:
        """Whether tiles touch less than their points together do."""
        if not all(band.coincident) or self._crosses(band):
            return True
        for name in band.names:
            statement = self.statements[name]
            own = band.rows(statement)
            for member in band.order:
                moves = direction(own, member)
                for load in statement.loads:
                    if moves and any(moves) and not load.dynamic and _rests(load.index, moves):
                        return True
        return False

    def _runs_in_rows(self, node: isl.ScheduleNode, band: Band, member: int) -> bool:
        """Whether memory is walked along rows alone: its lines need not stay in the L1 cache."""
        outer = node.get_prefix_schedule_union_map()
        free = passing(band, self.statements, self.local)
        for s in (self.statements[name] for name in band.names):
            moves = moves_along(s, outer, band, member)
            if moves is not None and not {*strides(s, moves, free)} <= {0, 1, -1}:
                return False
        return not self._crosses(band)

    def _crosses(self, band: Band) -> bool:
        """Whether a statement walks matrices along rows in different members, as a transpose."""
        for name in band.names:
            s = self.statements[name]
            own = band.rows(s)
            moves = [m for k in band.order if (m := direction(own, k)) is not None and any(m)]
            along = set()
            for index in (s.write, *(load.index for load in s.loads)):
                steps = [steps_along(index, m) for m in moves]
                if sum(step is None or any(step) for step in steps) > 1:
                    along |= {k for k, m in enumerate(moves) if stride_along(index, m) == 1}
            if len(along) > 1:
                return True
        return False

    # -- tiles --------------------------------------------------------------------------------

    def _tile(
        self, node: isl.ScheduleNode, band: Band, sizes: Sequence[int], shared: bool
    ) -> tuple[isl.ScheduleNode, list[str]]:
        """A band of tile loops above the band, and how each of them is to run."""
        numbers = [band.functions[k].scale_down_val(isl.Val(sizes[k])).floor() for k in band.order]
        marks = ["" for _ in numbers]
        if not shared:
            first = next((k for k in band.order if band.coincident[k]), None)
            if first is not None:
                numbers = [numbers[first], *(n for k, n in enumerate(numbers) if k != first)]
                marks[0] = "parallel"
                self.parallel.append(f"tiles of {_names(node)}")
            else:
                numbers = [numbers[0].add(numbers[1]), *numbers[1:]]
                if self._is_free(node, numbers[0], numbers[1]):
                    marks[1] = "parallel"
                    self.parallel.append(f"wavefronts of tiles of {_names(node)}")
        node = node.insert_partial_schedule(joined(numbers))
        return make_atomic(node.band_set_permutable(1)), marks

    def _is_free(
        self, node: isl.ScheduleNode, front: isl.UnionPwAff, tiles: isl.UnionPwAff
    ) -> bool:
        """Whether no sum has parts in two tiles of a wavefront.

        What must stay in order goes forwards along both of the loops that it adds up; sums may go
        forwards along one, and backwards along the other.
        """
        domain = node.get_domain()
        sums = self.order.sums.intersect_domain(domain).intersect_range(domain)
        held = node.get_prefix_schedule_union_map().flat_range_product(as_map([front]))
        return not is_carried(sums, held, as_map([tiles]))


def _marked(node: isl.ScheduleNode, marks: Sequence[str]) -> isl.ScheduleNode:
    """A band with its members marked, if there is one."""
    return mark_members(node, marks) if marks else node


def _rests(index: isl.PwMultiAff, moves: Sequence[int]) -> bool:
    """Whether an access stays at its element along a direction."""
    return stride_along(index, moves) == 0


def _names(node: isl.ScheduleNode) -> str:
    return ", ".join(names_of(node))


def declare_scopes(tree: isl.Schedule) -> isl.Schedule:
    """The tree with a mark below each band where local arrays may be declared.

    And one around each nest that one thread does. Not above a parallel loop: what is
    declared there would be shared by its iterations. Nor inside of a vector, whose lanes have one
    variable together.
    """

    def visit(node: isl.ScheduleNode) -> isl.ScheduleNode:
        for k in range(node.n_children()):
            node = visit(node.child(k)).parent()
        if node.get_type() != BAND or is_unrolled(node) or _has_parallel(node):
            return node
        around = node.parent()
        if around.get_type() == MARK and around.mark_get_id().get_name() == "vector":
            return node
        return node.child(0).insert_mark(isl.Id("scope")).parent()

    def surround(node: isl.ScheduleNode) -> isl.ScheduleNode:
        if not _has_parallel(node):
            return node.insert_mark(isl.Id("scope"))
        if node.get_type() in NESTED:
            for k in range(node.n_children()):
                node = surround(node.child(k).child(0)).ancestor(2)
        return node

    return surround(visit(tree.get_root()).child(0)).get_schedule()


def _has_parallel(node: isl.ScheduleNode) -> bool:
    if node.get_type() == MARK and node.mark_get_id().get_name() == "parallel":
        return True
    if node.get_type() == LEAF:
        return False
    return any(_has_parallel(node.child(k)) for k in range(node.n_children()))
