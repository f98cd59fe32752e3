"""Writing at positions that are data: ScatterElements, ScatterND, TensorScatter.

An element of the output asks who writes it, so that each is written once, by one statement, and
nothing is left to the order of run-time writes:

    p[i]  =  max over k of (k where index(I[k]) = i, else -1)          i is written by update p[i]
    y[i]  =  u[p[i]] where p[i] >= 0, else x[i]

    t[i]  =  sum over k of (u[k] where index(I[k]) = i, else 0)        reduction "add"
    y[i]  =  x[i] + t[i]

That looks at every index for every position along the axis, in a loop that vectorises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.scop.expr import INT64, Const, Expr, call, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    add,
    both,
    constant,
    eq,
    function,
    ge,
    guarded,
    lt,
    maximum,
    minimum,
    mul,
    select,
    sub,
    wrap_index,
)
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import grid_iterators
from polyc.scop.scop import Reduction, identity

Hit = Callable[[Space], Expr]
"""Whether the update k of a space writes the position of that space."""

OPERATORS: dict[str, Reduction] = {"add": "add", "mul": "mul", "max": "max", "min": "min"}

modulo = function("mod")


def _writer(ctx: Lowering, node: Node, extents: dict[str, int], updates: int, hit: Hit) -> Ref:
    """p over `extents`: the last update that writes there, or -1."""
    space = ctx.space(node, **extents, k=updates)
    target = ctx.array(f"{node.outputs[0]}_writer", INT64, list(extents.values()))
    # -1 where nobody writes, not the least integer, which is what a maximum starts from
    ctx.reduce(node, space, target, list(extents), select(hit(space), space.index("k"), -1), "max")
    return target


def _combined(
    ctx: Lowering, node: Node, extents: dict[str, int], updates: int, hit: Hit,
    update: Callable[[Space], Expr], operator: Reduction,
) -> Ref:  # fmt: skip
    """t over `extents`: op over all updates that write there."""
    space = ctx.space(node, **extents, k=updates)
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
    count = indices.shape[axis]
    extents = {f"i{k}": n for k, n in enumerate(indices.shape)} | {f"i{axis}": data.shape[axis]}

    def hit(space: Space) -> Expr:
        return eq(space.load(positions, *along), space.index(f"i{axis}"))

    space = ctx.grid(node, data.shape)
    old = space.load(data, *at)
    reduction = node.get("reduction", "none")
    inside = [f"i{k} < {n}" for k, n in enumerate(indices.shape) if k != axis and n < data.shape[k]]
    value: Expr
    if reduction == "none":
        writer = _writer(ctx, node, extents, count, hit)
        source = ctx.whole(node, updates)
        found: Expr = space.load(writer, *at)
        if inside:  # else the index computed from it would be checked where it means nothing
            found = guarded(space.within(" and ".join(inside)), found, Const(-1, INT64))
        chosen = wrap_index(maximum(found, 0), count)
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
    ctx.assign(node, space, target, space.iterators, wrap_index(found, extent))
    return target


@lowers("ScatterND")
def lower_scatter_nd(ctx: Lowering, node: Node) -> None:
    """Y[I[k, 0], I[k, 1], …, r…] = U[k, r…]; the rest of Y is X. All k count as one dimension."""
    data, indices, updates = (ctx.ref(name) for name in node.inputs)
    depth, count = indices.shape[-1], math.prod(indices.shape[:-1])
    if 0 in updates.shape or 0 in data.shape:
        ctx.bind(node.outputs[0], data)
        return
    places = _row_major_positions(ctx, node, indices, data.shape)
    at = grid_iterators(range(data.rank))
    point, rest = at[:depth], at[depth:]
    linear = _row_major(point, data.shape)
    source = ctx.whole(node, updates)
    flat = _split_index("k", indices.shape[:-1])

    def hit(space: Space) -> Expr:
        return eq(space.load(places, *flat), space.index(linear))

    space = ctx.grid(node, data.shape)
    old = space.load(data, *at)
    extents = {i: data.shape[k] for k, i in enumerate(at)}
    reduction = node.get("reduction", "none")
    if reduction == "none":
        writer = _writer(ctx, node, {i: extents[i] for i in point}, count, hit)
        found = space.load(writer, *point)
        chosen = _divide(maximum(found, 0), indices.shape[:-1])
        value = select(ge(found, 0), space.gather(source, [*chosen, *rest]), old)
    else:
        operator = OPERATORS[reduction]
        total = _combined(
            ctx, node, extents, count, hit, lambda s: s.load(updates, *flat, *rest), operator
        )
        value = call(operator, old, space.load(total, *at))
    ctx.assign(node, space, ctx.result(node), at, value, empty=old)


def _row_major_positions(ctx: Lowering, node: Node, indices: Ref, shape: Sequence[int]) -> Ref:
    """The tuples of indices as numbers: where the element or slice lies in row-major order."""
    depth = indices.shape[-1]
    target = ctx.array(f"{node.outputs[0]}_positions", INT64, indices.shape[:-1])
    space = ctx.grid(node, indices.shape[:-1])
    place: Expr = constant(0, INT64)
    for d in range(depth):
        found = cast(space.load(indices, *space.iterators, str(d)), INT64)
        place = add(mul(place, shape[d]), wrap_index(found, shape[d]))
    ctx.assign(node, space, target, space.iterators, place)
    return target


def _row_major(iterators: Sequence[str], shape: Sequence[int]) -> str:
    """i0, i1 of (5, 4) -> "4*i0 + 1*i1", as a number of the first dimensions alone."""
    extents = shape[: len(iterators)]
    steps = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    return " + ".join(f"{s}*{i}" for s, i in zip(steps, iterators, strict=True))


def _split_index(iterator: str, shape: Sequence[int]) -> list[str]:
    """The indices of the element number k of a shape."""
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [
        f"floor(({iterator} mod {step * n})/{step})" for step, n in zip(steps, shape, strict=True)
    ]


def _divide(number: Expr, shape: Sequence[int]) -> list[Expr]:
    """The same for a number that is data."""
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [
        wrap_index(modulo(function("div")(number, step), n), n)
        for step, n in zip(steps, shape, strict=True)
    ]


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
            where = wrap_index(where, most - count + 1)
        offset = sub(offset, where)
    if circular:
        offset = modulo(offset, most)
    old = space.load(past, *at)
    if count == 0:
        ctx.bind(node.outputs[0], past)
        return
    place = wrap_index(minimum(maximum(offset, 0), count - 1), count)
    new = space.gather(update, [*at[:axis], place, *at[axis + 1 :]])
    inside = both(ge(offset, 0), lt(offset, count))
    ctx.assign(node, space, ctx.result(node), at, select(inside, new, old), empty=old)
