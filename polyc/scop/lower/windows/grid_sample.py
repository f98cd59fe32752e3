"""GridSample: an image interpolated at positions that are data.

    x[n, o, d]     =  position of output o along dimension d, from the grid's -1 … 1
    p[n, o, d, t]  =  its neighbour t there, -1 where padding gives zeros
    w[n, o, d, t]  =  the weight of that neighbour
    y[n, c, o]     =  sum over t of w[n, o, 0, t0] * w[n, o, 1, t1] * image[n, c, p0, p1]

Positions and weights are computed once for all channels.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    absolute,
    add,
    both,
    constant,
    either,
    eq,
    function,
    ge,
    gt,
    lt,
    maximum,
    minimum,
    mul,
    select,
    sub,
    wrap_index,
)
from polyc.scop.lower.space import Ref
from polyc.scop.lower.totals import accumulate_into

INT32 = np.dtype(np.int32)
FLOAT32 = np.dtype(np.float32)
CUBIC = -0.75
"""The coefficient of the cubic filter; the standard leaves no choice."""

Number: TypeAlias = "Expr | int | float"
"""What is known when compiling, or computed of sizes."""

floor, modulo, round_even = function("floor"), function("mod"), function("round")


@lowers("GridSample")
def lower_grid_sample(ctx: Lowering, node: Node) -> None:
    """Positions and weights of each dimension, then the sums over all neighbours."""
    source, grid = ctx.whole(node, ctx.ref(node.inputs[0])), ctx.ref(node.inputs[1])
    spatial = source.shape[2:]
    taps = {"nearest": 1, "linear": 2, "cubic": 4}[node.get("mode", "linear")]
    shape = (grid.shape[0], *grid.shape[1:-1], len(spatial), taps)
    kind = grid.dtype if grid.dtype.kind == "f" else FLOAT32
    places = ctx.array(f"{node.outputs[0]}_places", INT32, shape)
    weights = ctx.array(f"{node.outputs[0]}_weights", kind, shape)
    for d, extent in enumerate(spatial):
        _write_samples(ctx, node, grid, d, extent, places, weights)

    result = ctx.result(node)
    kept = {"n": shape[0], "c": source.shape[1]}
    kept |= {f"o{k}": n for k, n in enumerate(grid.shape[1:-1])}
    names = [f"t{d}" for d in range(len(spatial))] if taps > 1 else []
    space = ctx.space(node, **kept, **dict.fromkeys(names, taps))
    outputs = [i for i in kept if i not in ("n", "c")]
    own = names or ["0"] * len(spatial)
    found = [space.load(places, "n", *outputs, str(d), t) for d, t in enumerate(own)]
    inside = [
        wrap_index(cast(maximum(p, 0), INT64), space.number(n))
        for p, n in zip(found, spatial, strict=True)
    ]
    element = space.gather(source, ["n", "c", *inside])
    exists = reduce(both, [ge(p, 0) for p in found])
    factors: list[Expr] = [space.load(weights, "n", *outputs, str(d), t) for d, t in enumerate(own)]
    value = select(exists, cast(element, kind), constant(0, kind))
    if not names:
        ctx.assign(node, space, result, list(kept), cast(value, result.dtype))
        return
    term = mul(reduce(mul, factors), value)
    accumulate_into(ctx, node, result, space, list(kept), term, "add")


def _write_samples(
    ctx: Lowering, node: Node, grid: Ref, d: int, extent: int, places: Ref, weights: Ref
) -> None:
    """Neighbours and weights along one dimension; the grid's coordinates are in reverse order."""
    kind, taps = weights.dtype, weights.shape[-1]
    dims = {"n": grid.shape[0]} | {f"o{k}": n for k, n in enumerate(grid.shape[1:-1])}
    start = ctx.space(node, **dims)
    at = list(start.iterators)
    x = ctx.array(f"{node.outputs[0]}_x{d}", kind, list(dims.values()))
    given = cast(start.load(grid, *at, str(weights.shape[-2] - 1 - d)), kind)
    ctx.assign(node, start, x, at, _position(node, given, start.number(extent, kind)))
    for t in range(taps):
        space = ctx.space(node, **dims)
        here = space.load(x, *at)
        base = floor(here)
        offset = t - (1 if taps == 4 else 0)
        place = _keep_inside(node, add(base, offset), space.number(extent, kind))
        ctx.assign(node, space, places, [*at, str(d), str(t)], cast(place, INT32))
        space = ctx.space(node, **dims)
        here = space.load(x, *at)
        weight = _weight(taps, sub(here, floor(here)), offset, kind)
        ctx.assign(node, space, weights, [*at, str(d), str(t)], weight)


def _less(a: Number, b: float) -> Number:
    """a - b, computed now if it can be."""
    return a - b if isinstance(a, int | float) else sub(a, b)


def _borders(node: Node, extent: Number) -> tuple[float, Number]:
    """What -1 and 1 are: the centres of the outermost elements, or their outer edges."""
    low, rest = (0.0, 1.0) if node.get("align_corners", 0) else (-0.5, 0.5)
    return low, _less(extent, rest)


def _position(node: Node, given: Expr, extent: Number) -> Expr:
    """-1 … 1 to elements; a position that is outside is moved as the padding says."""
    low, high = _borders(node, extent)
    span = _less(high, low)
    half = span / 2 if isinstance(span, int | float) else mul(span, 0.5)
    x: Expr = add(mul(add(given, 1), half), low)
    if node.get("mode", "linear") == "nearest":
        x = round_even(x)
    padding = node.get("padding_mode", "zeros")
    if padding == "zeros":
        return x
    moved: Expr = minimum(maximum(x, 0), _less(extent, 1))
    if padding == "reflection":
        moved = _reflect(x, low, span)
    return select(either(lt(x, low), gt(x, high)), moved, x)


def _reflect(x: Expr, low: float, span: Number) -> Expr:
    """A triangle wave between the borders, which are `span` apart."""
    lowest = constant(low, x.dtype)
    if isinstance(span, int | float):
        return _wave(x, low, span, 2 * span) if span else lowest
    return select(eq(span, 0), lowest, _wave(x, low, span, mul(span, 2)))


def _wave(x: Expr, low: float, span: Number, period: Number) -> Expr:
    phase = modulo(sub(x, low), period)
    return add(sub(span, absolute(sub(phase, span))), low)


def _keep_inside(node: Node, place: Expr, extent: Number) -> Expr:
    """A neighbour that exists, or -1 where it counts as zero; the place is a whole number."""
    padding = node.get("padding_mode", "zeros")
    if padding == "zeros":
        inside = both(ge(place, 0), lt(place, extent))
        return select(inside, place, constant(-1, place.dtype))
    if padding == "reflection":
        low, high = _borders(node, extent)
        turned = function("trunc")(_reflect(place, low, _less(high, low)))
        place = select(either(lt(place, low), gt(place, high)), turned, place)
    return minimum(maximum(place, 0), _less(extent, 1))


def _weight(taps: int, fraction: Expr, offset: int, kind: np.dtype) -> Expr:
    """The filter at the distance between a position and its neighbour."""
    if taps == 1:
        return constant(1, kind)
    if taps == 2:
        return fraction if offset else sub(1, fraction)
    d = absolute(sub(fraction, offset))
    a = CUBIC
    if offset in (0, 1):
        return add(mul(mul(sub(mul(d, a + 2), a + 3), d), d), 1)
    return sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a)
