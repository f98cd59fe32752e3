"""Writing at positions that are data: ScatterElements, ScatterND, TensorScatter.

An element of the output asks who writes it, so that each is written once, by one statement, and
nothing is left to the order of run-time writes:

    p[i]  =  max over k of (k where index(I[k]) = i, else the least)   i is written by update p[i]
    y[i]  =  u[p[i]] where p[i] >= 0, else x[i]

    t[i]  =  sum over k of (u[k] where index(I[k]) = i, else 0)        reduction "add"
    y[i]  =  x[i] + t[i]

That looks at every index for every position along the axis, as sets have it. On a CPU the loop
over positions runs inside of the one over updates, and only where the index says
(`mapping/cpu/strategies/picked.py`, `codegen/bound_by_data.py`). Nobody looks where ScatterND's
indices follow from their places (`known_places.py`), or are those where a mask is true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import islpy as isl

from polyc.graph.ir import Node
from polyc.graph.shapes.checks import are_equal
from polyc.graph.shapes.dims import normalize_axis
from polyc.poly.affine import simplify
from polyc.poly.conditions import spell
from polyc.scop.expr import BOOL, INT64, Const, Expr, Load, Within, call, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    both,
    eq,
    function,
    ge,
    guarded,
    lt,
    maximum,
    minimum,
    select,
    sub,
    wrap_index,
)
from polyc.scop.lower.movement.known_places import find_writer
from polyc.scop.lower.numbering import row_major, steps_of
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import grid_iterators
from polyc.scop.scop import Reduction, identity

Hit = Callable[[Space], Expr]
"""Whether the update k of a space writes the position of that space."""

OPERATORS: dict[str, Reduction] = {"add": "add", "mul": "mul", "max": "max", "min": "min"}

modulo = function("mod")


def _writer(
    ctx: Lowering, node: Node, extents: dict[str, int], updates: dict[str, int], hit: Hit
) -> Ref:
    """p over `extents`: the number of the last update that writes there, or one below 0."""
    space = ctx.space(node, **extents, **updates)
    target = ctx.array(f"{node.outputs[0]}_writer", INT64, list(extents.values()))
    number = row_major(space, list(updates), list(updates.values()))
    nobody = Const(identity("max", INT64), INT64)
    ctx.reduce(node, space, target, list(extents), select(hit(space), number, nobody), "max")
    return target


def _combined(
    ctx: Lowering, node: Node, extents: dict[str, int], updates: dict[str, int], hit: Hit,
    update: Callable[[Space], Expr], operator: Reduction,
) -> Ref:  # fmt: skip
    """t over `extents`: op over all updates that write there."""
    space = ctx.space(node, **extents, **updates)
    element = update(space)
    neutral = Const(identity(operator, element.dtype), element.dtype)
    target = ctx.array(f"{node.outputs[0]}_total", element.dtype, list(extents.values()))
    ctx.reduce(node, space, target, list(extents), select(hit(space), element, neutral), operator)
    return target


@lowers("ScatterElements")
def lower_scatter_elements(ctx: Lowering, node: Node) -> None:
    """Y[I[i, j], j] = U[i, j] for axis 0; the rest of Y is X."""
    data, indices, updates = (ctx.ref(name) for name in node.inputs)
    axis = normalize_axis(node.get("axis", 0), data.rank)
    if 0 in indices.shape:
        ctx.bind(node.outputs[0], data)
        return
    at = grid_iterators(range(data.rank))
    along = [f"i{k}" if k != axis else "k" for k in range(data.rank)]
    positions = _positions(ctx, node, indices, data.shape[axis])
    count = {"k": indices.shape[axis]}
    extents = {f"i{k}": n for k, n in enumerate(indices.shape)} | {f"i{axis}": data.shape[axis]}

    def hit(space: Space) -> Expr:
        return eq(space.load(positions, *along), space.index(f"i{axis}"))

    space = ctx.grid(node, data.shape)
    old = space.load(data, *at)
    reduction = node.get("reduction", "none")
    inside = [
        f"i{k} < {spell(n)}"
        for k, n in enumerate(indices.shape)
        if k != axis and not are_equal(n, data.shape[k])
    ]
    value: Expr
    if reduction == "none":
        writer = _writer(ctx, node, extents, count, hit)
        source = ctx.whole(node, updates)
        found: Expr = space.load(writer, *at)
        if inside:  # else the index computed from it would be checked where it means nothing
            found = guarded(space.within(" and ".join(inside)), found, Const(-1, INT64))
        chosen = wrap_index(maximum(found, 0), space.number(count["k"]))
        new = space.gather(source, [*at[:axis], chosen, *at[axis + 1 :]])
        value = select(ge(found, 0), new, old)
    else:
        operator = OPERATORS[reduction]
        total = _combined(
            ctx, node, extents, count, hit, lambda s: s.load(updates, *along), operator
        )
        value = call(operator, old, space.load(total, *at))
    if inside:
        value = guarded(space.within(" and ".join(inside)), value, old)
    ctx.assign(node, space, ctx.result(node), at, value, empty=old)


def _positions(ctx: Lowering, node: Node, indices: Ref, extent: int) -> Ref:
    """The indices counted from the front; one that is out of range stops the run."""
    target = ctx.array(f"{node.outputs[0]}_positions", INT64, indices.shape)
    space = ctx.grid(node, indices.shape)
    found = cast(space.load(indices, *space.iterators), INT64)
    place = wrap_index(found, space.number(extent))
    ctx.assign(node, space, target, space.iterators, place)
    return target


@lowers("ScatterND")
def lower_scatter_nd(ctx: Lowering, node: Node) -> None:
    """Y[I[k…, 0], I[k…, 1], …, r…] = U[k…, r…]; the rest of Y is X."""
    data, indices, updates = (ctx.ref(name) for name in node.inputs)
    depth = indices.shape[-1]
    if 0 in updates.shape or 0 in data.shape:
        ctx.bind(node.outputs[0], data)
        return
    writer_of = find_writer(ctx, indices, data.shape)
    if writer_of is not None:
        _write_known(ctx, node, writer_of, depth)
        return
    places = _tuples(ctx, node, indices, data.shape)
    at = grid_iterators(range(data.rank))
    point, rest = at[:depth], at[depth:]
    source = ctx.whole(node, updates)
    count = {f"k{d}": n for d, n in enumerate(indices.shape[:-1])}

    def hit(space: Space) -> Expr:
        parts = [(space.load(places, *count, str(d)), i) for d, i in enumerate(point)]
        tests = [eq(place, space.index(i)) for place, i in parts]
        return reduce(both, tests) if tests else Const(True, BOOL)

    space = ctx.grid(node, data.shape)
    old = space.load(data, *at)
    extents = {i: data.shape[k] for k, i in enumerate(at)}
    reduction = node.get("reduction", "none")
    if reduction == "none":
        writer = _writer(ctx, node, {i: extents[i] for i in point}, count, hit)
        found = space.load(writer, *point)
        chosen = _divide(space, maximum(found, 0), indices.shape[:-1])
        value = select(ge(found, 0), space.gather(source, [*chosen, *rest]), old)
    else:
        operator = OPERATORS[reduction]
        total = _combined(
            ctx, node, extents, count, hit, lambda s: s.load(updates, *count, *rest), operator
        )
        value = call(operator, old, space.load(total, *at))
    ctx.assign(node, space, ctx.result(node), at, value, empty=old)


@lowers("AssignTrue")
def lower_assign_true(ctx: Lowering, node: Node) -> None:
    """Y[i…, r…] = U[t[i…] - 1, r…] where m[i…], else X[i…, r…]; t counts what is true up to i."""
    data, mask, totals, updates = (ctx.ref(name) for name in node.inputs)
    if 0 in updates.shape or 0 in data.shape:
        ctx.bind(node.outputs[0], data)
        return
    at = grid_iterators(range(data.rank))
    point, rest = at[: mask.rank], at[mask.rank :]
    source = ctx.whole(node, updates)
    space = ctx.grid(node, data.shape)
    old = space.load(data, *at)
    number = maximum(sub(space.load(totals, *point), 1), 0)
    place = wrap_index(number, space.number(updates.shape[0]))
    new: Expr = space.gather(source, [place, *rest])
    reduction = node.get("reduction", "none")
    new = new if reduction == "none" else call(OPERATORS[reduction], old, new)
    value = select(space.load(mask, *point), new, old)
    ctx.assign(node, space, ctx.result(node), at, value, empty=old)


def _write_known(ctx: Lowering, node: Node, writer: isl.PwMultiAff, depth: int) -> None:
    """Y[i…, r…] = U[writer(i…), r…] where somebody writes, else X[i…, r…]."""
    data, _, updates = (ctx.ref(name) for name in node.inputs)
    space = ctx.grid(node, data.shape)
    at = space.iterators
    point = space.map(at[:depth])  # S -> [i…]
    source = writer.pullback_pw_multi_aff(point).flat_range_product(space.map(at[depth:]))
    index = updates.map.pullback_pw_multi_aff(source)
    new: Expr = Load(updates.array, simplify(index, space.domain), updates.dtype)
    old = space.load(data, *at)
    reduction = node.get("reduction", "none")
    value = new if reduction == "none" else call(OPERATORS[reduction], old, new)
    inside = source.domain()
    if not space.domain.is_subset(inside):
        value = guarded(Within(inside.gist(space.domain)), value, old)
    ctx.assign(node, space, ctx.result(node), at, value)


def _tuples(ctx: Lowering, node: Node, indices: Ref, shape: Sequence[int]) -> Ref:
    """The indices counted from the front; one that is out of range stops the run."""
    target = ctx.array(f"{node.outputs[0]}_positions", INT64, indices.shape)
    for d in range(indices.shape[-1]):
        space = ctx.grid(node, indices.shape[:-1])
        found = cast(space.load(indices, *space.iterators, str(d)), INT64)
        place = wrap_index(found, space.number(shape[d]))
        ctx.assign(node, space, target, [*space.iterators, str(d)], place)
    return target


def _divide(space: Space, number: Expr, shape: Sequence[int]) -> list[Expr]:
    """The indices of the element of a shape that has this number."""
    found: list[Expr] = []
    for step, extent in zip(steps_of(shape), map(space.number, shape), strict=True):
        quotient = number if step == 1 else function("div")(number, space.number(step))
        found.append(wrap_index(modulo(quotient, extent), extent))
    return found


@lowers("TensorScatter")
def lower_tensor_scatter(ctx: Lowering, node: Node) -> None:
    """Y[b, …, s, …] = U[b, …, s - w[b], …] where that exists, else X[b, …, s, …].

    In circular mode s - w[b] is taken modulo the extent of the cache.
    """
    past, update = ctx.ref(node.inputs[0]), ctx.whole(node, ctx.ref(node.inputs[1]))
    axis = normalize_axis(node.get("axis", -2), past.rank)
    most, count = past.shape[axis], update.shape[axis]
    space = ctx.grid(node, past.shape)
    at = list(space.iterators)
    offset: Expr = space.index(at[axis])
    circular = node.get("mode", "linear") == "circular"
    if ctx.has(node, 2):
        where: Expr = space.load(ctx.ref(node.inputs[2]), at[0])
        if not circular:  # what does not fit stops the run
            where = wrap_index(where, space.number(most - count + 1))
        offset = sub(offset, where)
    if circular:
        offset = modulo(offset, space.number(most))
    old = space.load(past, *at)
    if count == 0:
        ctx.bind(node.outputs[0], past)
        return
    last, extent = space.number(count - 1), space.number(count)
    place = wrap_index(minimum(maximum(offset, 0), last), extent)
    new = space.gather(update, [*at[:axis], place, *at[axis + 1 :]])
    inside = both(ge(offset, 0), lt(offset, extent))
    ctx.assign(node, space, ctx.result(node), at, select(inside, new, old), empty=old)
