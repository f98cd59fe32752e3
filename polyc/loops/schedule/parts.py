"""The parts of a tile: loops of their own for statements, and for boxes of results in registers.

    for i: for j: t[i] += A[i, j] * x[j];  if j == n - 1: y[i] = t[i]

    ->   for i: for j: t[i] += A[i, j] * x[j];         for i: y[i] = t[i]

A product works on a box of results at a time, while what is summed runs inside:

    band i, j, k  ->  band floor(i/9), floor(j/24)
                      └ sequence
                        ├ filter  { its box is whole }  band k (keep) ─ i (unroll) ─ j (vector)
                        └ filter  { what is left }      band i, j, k

Whole boxes are told from others by their corners, so loops inside of them have constant bounds and
no conditions. What is left of a box is cut once more, into boxes of one vector, then into vectors
with idle lanes, and what is left of rows that are equally long into boxes of one row. The parts of
a tile run one after another where dependences allow it; those that wait for each other in turns
stay together, as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as pairs_of

import islpy as isl

from polyc.analysis.dependences import maps
from polyc.loops.schedule.band import Band, as_map, joined, names_of
from polyc.loops.schedule.direction import equal_values
from polyc.loops.schedule.inner import in_sequence, leaf_order, only
from polyc.loops.schedule.products import Product
from polyc.poly.tree import make_atomic
from polyc.scop.scop import Statement

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Box:
    """Results that a product keeps in registers at a time: a tile of it, or a part of one.

    Of width 1 are those that fill no vector: all columns that are left, with idle lanes.
    """

    product: Product
    height: int
    width: int


@dataclass(frozen=True)
class Part:
    """Some instances of statements; those of one product in whole boxes, or others."""

    instances: isl.UnionSet
    box: Box | None = None


Shape = Callable[[isl.ScheduleNode], isl.ScheduleNode]
"""Shapes the band at a node that holds no boxes; gives the node that stands there then."""


def beside(
    bundles: Sequence[tuple[str, ...]],
    statements: Mapping[str, Statement],
    held: isl.UnionMap,
    time: isl.UnionMap,
    validity: isl.UnionMap,
) -> list[tuple[str, ...]]:
    """The bundles, those in one that touch an array in the same iterations.

    held, time  # S -> when, in the loops around a band, and in it as well. What is read comes from
    memory once, what one hands the other in an iteration is a register, and what is written in
    turns, as the even and the odd elements of a row, goes there once. Sums stay apart, each with
    its lanes, and so does what one iteration hands another.
    """
    ranges = {name: each.range() for name, _, each in maps(time)}
    here = validity.intersect_domain(time.domain()).intersect_range(time.domain())
    carried = here.intersect(equal_values(held)).subtract(equal_values(time))
    waiting = {(source, target) for source, target, _ in maps(carried)}

    def touched(names: Sequence[str]) -> set[str]:
        loads = {x.array for name in names for x in statements[name].loads if x.index.dim(OUT)}
        return loads | {statements[n].array for n in names if statements[n].write.dim(OUT)}

    def fits(one: Sequence[str], other: Sequence[str]) -> bool:
        names = (*one, *other)
        return (
            waiting.isdisjoint(pairs_of(names, names))
            and bool(touched(one) & touched(other))
            and bool(ranges[one[0]].is_equal(ranges[other[0]]))
        )

    found: list[tuple[str, ...]] = []
    for bundle in bundles:
        for one in [*reversed(found)]:
            if fits(one, bundle):
                found.remove(one)
                bundle = (*one, *bundle)
        found.append(bundle)
    return found


def insert_parts(
    node: isl.ScheduleNode,
    band: Band,
    products: Sequence[Product],
    bundles: Sequence[tuple[str, ...]],
    validity: isl.UnionMap,
    shape: Shape,
) -> isl.ScheduleNode:
    """The band at a node, which is inside of a tile, in parts; gives the node at its place.

    bundles: the statements, those together that have to share their loops.
    """
    domain = node.get_domain()
    held = node.get_prefix_schedule_union_map().intersect_domain(domain)
    depth, inside = node.get_tree_depth(), set(band.order)
    order = leaf_order(node)
    node = node.cut()
    if products:
        first = products[0]
        inside = {first.rows, first.lanes, *first.summed}
        boxes = [band.functions[k] for k in band.order if k not in inside]
        boxes.append(_floor(band.functions[first.rows], first.height))
        boxes.append(_floor(band.functions[first.lanes], first.width))
        held = held.flat_range_product(as_map(boxes))
        node = node.insert_partial_schedule(joined(boxes))
        node = make_atomic(node.band_set_permutable(1)).child(0)
    parts = _parts(domain, band, products, bundles)
    parts = _ordered(parts, held, validity.intersect_domain(domain).intersect_range(domain))
    filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(parts))
    for part in parts:
        filters = filters.add(part.instances)
    if len(parts) > 1:
        node = node.insert_sequence(filters)
    for k, part in enumerate(parts):
        leaf = node.child(k).child(0) if len(parts) > 1 else node
        if part.box is None:
            leaf = _plain(leaf, band, [m for m in band.order if m in inside], order, shape)
        else:
            leaf = _box(leaf, band, part.box)
        node = leaf.ancestor(2) if len(parts) > 1 else leaf
    return node.ancestor(node.get_tree_depth() - depth)


def _floor(function: isl.UnionPwAff, size: int) -> isl.UnionPwAff:
    return function.scale_down_val(isl.Val(size)).floor()


def _own(function: isl.UnionPwAff, instances: isl.UnionSet) -> isl.UnionPwAff:
    """The function on the statements of some instances alone, whatever the instances are."""
    return function.intersect_domain(instances.universe())


# -- whole boxes ----------------------------------------------------------------------------------


def _parts(
    domain: isl.UnionSet,
    band: Band,
    products: Sequence[Product],
    bundles: Sequence[tuple[str, ...]],
) -> list[Part]:
    """What stands in whole boxes, statement by statement, and what does not."""
    parts: list[Part] = []
    left = domain
    for product in products:
        for box in _boxes(product, only(domain, [product.statement])):
            own = only(left, [product.statement])
            whole = own.intersect(_whole(only(domain, [product.statement]), band, box))
            whole = whole.coalesce()
            if not whole.is_empty():
                parts.append(Part(whole, box))
                left = left.subtract(whole).coalesce()
    for names in bundles:
        rest = only(left, names)
        if not rest.is_empty():
            parts.append(Part(rest))
    return parts


def _boxes(product: Product, domain: isl.UnionSet) -> Iterator[Box]:
    """The boxes that a product is cut into: what is left of one becomes some of the next.

    8 x 48  ->  8 x 16, and where all columns are as long  ->  8 x 1
            ->  1 x 48  ->  1 x 16  ->  1 x 1                  where all rows are as long
    """
    rows, columns = (_is_even(domain, moves) for moves in product.moves)
    for height in (product.height, 1) if rows else (product.height,):
        widths = (product.width, product.vector, 1 if rows and columns else product.vector)
        for width in dict.fromkeys(widths):
            yield Box(product, height, width)


def _is_even(domain: isl.UnionSet, moves: Sequence[int]) -> bool:
    """Whether a loop has the same bounds wherever the other loops are."""
    points = isl.Set.from_union_set(domain)
    if sorted(moves) != [*[0] * (len(moves) - 1), 1]:
        return False
    k = moves.index(1)
    alone = points.eliminate(SET, 0, k).eliminate(SET, k + 1, len(moves) - k - 1)
    return bool(points.eliminate(SET, k, 1).intersect(alone).is_subset(points))


def _whole(domain: isl.UnionSet, band: Band, box: Box) -> isl.UnionSet:
    """# S: points all of whose box is in the domain, if this is convex; else none.

    A box is whole if its four corners are there.
    """
    points = isl.Set.from_union_set(domain)
    if points.n_basic_set() != 1 or points.get_basic_set_list().get_at(0).dim(isl.dim_type.div):
        return isl.UnionSet("{ }")
    found = points
    for place in pairs_of((0, box.height - 1), (0, box.width - 1)):
        corner = _corner(points.get_space(), band, box, place)
        found = found.intersect(points.preimage_multi_aff(corner))
    return isl.UnionSet.from_set(found)


def _corner(space: isl.Space, band: Band, box: Box, place: tuple[int, int]) -> isl.MultiAff:
    """# S -> S: the instance at a place of the box of another."""
    result, product = isl.MultiAff.identity(space.map_from_set()), box.product
    members = (product.rows, product.lanes)
    for member, size, at, moves in zip(
        members, (box.height, box.width), place, product.moves, strict=True
    ):
        value = _affine(band.functions[member], product.statement)
        value = value.set_tuple_id(IN, space.get_tuple_id(SET))
        begin = value.scale_down_val(isl.Val(size)).floor().scale_val(isl.Val(size))
        steps = begin.sub(value).add_constant_val(isl.Val(at))
        for position, move in enumerate(moves):
            moved = result.get_aff(position).add(steps.scale_val(isl.Val(move)))
            result = result.set_aff(position, moved)
    return result


def _affine(function: isl.UnionPwAff, statement: str) -> isl.Aff:
    parts = function.get_pw_aff_list()
    for k in range(parts.n_pw_aff()):
        part = parts.get_at(k)
        if part.get_domain_space().get_tuple_name(SET) == statement:
            ((_, aff),) = part.get_pieces()
            return aff
    raise AssertionError(f"{statement} is not in its band")


# -- the order of parts ---------------------------------------------------------------------------


def _ordered(parts: Sequence[Part], held: isl.UnionMap, validity: isl.UnionMap) -> list[Part]:
    """The parts of a tile in an order in which they can run; those in a cycle are joined."""
    inside = validity.intersect(equal_values(held))
    reached = {
        k: {
            n
            for n, other in enumerate(parts)
            if n != k and not _between(inside, part, other).is_empty()
        }
        for k, part in enumerate(parts)
    }
    for middle, start in pairs_of(reached, reached):
        if middle in reached[start]:
            reached[start] |= reached[middle]
    done: list[Part] = []
    left = list(reached)
    while left:
        k = next(k for k in left if all(k not in reached[n] or n in reached[k] for n in left))
        together = [n for n in left if n == k or (n in reached[k] and k in reached[n])]
        done.append(_join([parts[n] for n in together]))
        left = [n for n in left if n not in together]
    return done


def _between(relation: isl.UnionMap, source: Part, sink: Part) -> isl.UnionMap:
    return relation.intersect_domain(source.instances).intersect_range(sink.instances)


def _join(parts: Sequence[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    whole = isl.UnionSet("{ }")
    for part in parts:
        whole = whole.union(part.instances)
    return Part(whole.coalesce())


# -- loops ----------------------------------------------------------------------------------------


def _box(leaf: isl.ScheduleNode, band: Band, box: Box) -> isl.ScheduleNode:
    """What is summed, around a box of constant extents; gives the node at its place."""
    instances, product = leaf.get_domain(), box.product

    def insert(node: isl.ScheduleNode, function: isl.UnionPwAff, mark: str) -> isl.ScheduleNode:
        own = isl.MultiUnionPwAff.from_union_pw_aff(_own(function, instances))
        node = node.insert_partial_schedule(own)
        if mark:
            node = node.insert_mark(isl.Id(mark)).child(0)
        return node.child(0)

    rows, lanes = band.functions[product.rows], band.functions[product.lanes]
    depth = leaf.get_tree_depth()
    if box.height < product.height:
        leaf = insert(leaf, _floor(rows, box.height), "")
    if 1 < box.width < product.width:
        leaf = insert(leaf, _floor(lanes, box.width), "")
    for n, k in enumerate(product.summed):
        leaf = insert(leaf, band.functions[k], "" if n else "hold")
    leaf = insert(leaf, _within(rows, box.height), "unroll")
    leaf = insert(leaf, lanes if box.width == 1 else _within(lanes, box.width), "vector")
    return leaf.ancestor(leaf.get_tree_depth() - depth)


def _within(function: isl.UnionPwAff, size: int) -> isl.UnionPwAff:
    """Where a value stands in its tile."""
    return function.sub(_floor(function, size).scale_val(isl.Val(size)))


def _plain(
    leaf: isl.ScheduleNode,
    band: Band,
    members: Sequence[int],
    order: Sequence[str],
    shape: Shape,
) -> isl.ScheduleNode:
    """The loops of what is in no whole box, as they would be without any."""
    instances = leaf.get_domain()
    functions = [_own(band.functions[k], instances) for k in members]
    leaf = leaf.insert_partial_schedule(joined(functions)).band_set_permutable(1)
    names = [name for name in order if name in names_of(leaf)]
    return shape(in_sequence(leaf.child(0), instances, names, band.short).parent())
