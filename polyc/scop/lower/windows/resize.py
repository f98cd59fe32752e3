"""Resize: one dimension after the other, each a weighted sum of a few neighbours.

    t[i, o]  =  w[o, 0] * x[i, s(o)] + w[o, 1] * x[i, s(o) + 1]         linear along the last one

Where positions are floor((p * o + b) / q), which they are but for rounding whenever a scale is a
simple fraction, accesses are quasi-affine; else they come from a table of constants. Resizing to
the nearest element is a view then, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.resize import Resized, resolve_resize
from polyc.poly.conditions import spell
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering, counts, lowers
from polyc.scop.lower.functions import (
    FLOAT64,
    add,
    constant,
    function,
    is_float,
    mul,
    select,
    wrap_index,
)
from polyc.scop.lower.movement.views import view
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import accumulate_into
from polyc.scop.lower.windows.open_resize import find_open, write_tables
from polyc.scop.lower.windows.resampling import Samples, find_floor, find_samples
from polyc.types.estimate import estimate
from polyc.types.sizes import Extent, Size

FLOAT32 = np.dtype(np.float32)

MOST_TERMS = 8
"""Longer sums are reductions; shorter ones are one formula, which fuses with what reads it."""

round_even = function("round")


def _resolve(ctx: Lowering, node: Node) -> tuple[Resized, ...]:
    inputs = [ctx.type(name) if name else None for name in node.inputs]
    inputs += [None] * (4 - len(inputs))
    return resolve_resize(node, inputs)


@counts("Resize")
def count_neighbours(ctx: Lowering, node: Node) -> list[Extent]:
    """How many an output has, where these are the more the smaller an image becomes."""
    changed = [one for one in _resolve(ctx, node) if one.is_open and not one.is_same]
    return [find_open(node, one).taps for one in changed]


@lowers("Resize")
def lower_resize(ctx: Lowering, node: Node) -> None:
    """The dimensions that change, those that shrink most first, so that less is left to do."""
    resized = _resolve(ctx, node)
    ref = ctx.ref(node.inputs[0])
    axes = [k for k, one in enumerate(resized) if not one.is_same]
    axes.sort(key=lambda k: estimate(resized[k].new) / max(estimate(resized[k].old), 1))
    nearest = node.get("mode", "nearest") == "nearest"
    result = ctx.type(node.outputs[0])
    if 0 in result.extents:
        ctx.result(node)
        return
    for k in axes:
        kind = ref.dtype if nearest else _sum_type(ref.dtype)
        finish = _round_to(result.dtype if nearest or k == axes[-1] else kind)
        if resized[k].is_open:
            ref = _resize_open(ctx, node, ref, k, resized[k], kind, finish)
            continue
        samples = find_samples(node, resized[k])
        seen = None
        if nearest and not samples.outside.any():
            seen = _nearest(ref, k, resized[k], samples)
        if seen is None:
            sums = _sums(ctx, node, ref, k, resized[k], samples, kind)
            seen = _interpolate(ctx, node, sums, finish)
        ref = seen
    ctx.bind(result.name, ref)


def _sum_type(dtype: np.dtype) -> np.dtype:
    """The type of weighted sums: integers of more than 16 bits need a double's precision."""
    wide = dtype == FLOAT64 or (dtype.kind in "iu" and dtype.itemsize > 2)
    return FLOAT64 if wide else FLOAT32


def _round_to(dtype: np.dtype) -> Callable[[Expr], Expr]:
    """The conversion back: to integers the nearest one, within the type's range."""

    def finish(total: Expr) -> Expr:
        rounded = is_float(total) and dtype.kind in "iu"
        return cast(round_even(total) if rounded else total, dtype)

    return finish


def _slopes(one: Resized) -> list[Fraction]:
    """What a step of one output may be in the input."""
    spans = [(one.old, one.new), (one.old - 1, one.new - 1)]
    exact = [Fraction(a, b) for a, b in spans if a > 0 and b > 0]
    return [*exact, Fraction(1 / one.scale).limit_denominator(64)]


def _inside(formula: str, positions: np.ndarray, extent: int) -> str:
    """The formula, held between the first and the last element where it leaves them."""
    if positions.max() >= extent:
        formula = f"min({formula}, {extent - 1})"
    return f"max(0, {formula})" if positions.min() < 0 else formula


def _nearest(ref: Ref, axis: int, one: Resized, samples: Samples) -> Ref | None:
    """A view; None where no formula says which element is read."""
    positions = samples.positions[:, 0]
    formula = find_floor(positions, _slopes(one), f"i{axis}")
    if formula is None:
        return None
    at = [f"i{k}" for k in range(ref.rank)]
    at[axis] = _inside(formula, positions, one.old)
    return ref.through(view(at, ref.rank), _with_extent(ref.shape, axis, one.new))


def _resize_open(
    ctx: Lowering,
    node: Node,
    ref: Ref,
    axis: int,
    one: Resized,
    kind: np.dtype,
    finish: Callable[[Expr], Expr],
) -> Ref:
    """Along a dimension whose extents are known only at run time."""
    mode = find_open(node, one)
    start = mode.start(f"i{axis}")
    last = spell(one.old - 1)

    def reached(tap: int | str) -> str:
        return f"max(0, min({start} + {tap}, {last}))"

    if mode.is_nearest and start is not None:
        at = [f"i{k}" for k in range(ref.rank)]
        at[axis] = reached(0)
        return ref.through(view(at, ref.rank), _with_extent(ref.shape, axis, one.new))
    tables = write_tables(ctx, node, mode, start is None, kind)
    if start is None:
        ref = ctx.whole(node, ref)
    at_tap = None if start is None else reached
    places, weights, outside = tables.places, tables.weights, tables.outside
    sums = Sums(ref, axis, one.old, one.new, mode.taps, at_tap, places, weights, kind, outside)
    return _interpolate(ctx, node, sums, finish)


@dataclass(frozen=True)
class Sums:
    """Weighted sums along one dimension of a tensor, which has `extent` elements, and then `new`.

    position: the formula of a neighbour's position; None: they are all in `places`, a table
    [taps, new]. `weights`, [taps, new], is None for sums of one element that is taken as it is.
    outside: whether the result is the extrapolation value, bool[new], if it is somewhere.
    """

    ref: Ref
    axis: int
    extent: int
    new: int
    taps: int
    position: Callable[[int | str], str] | None
    places: Ref | None
    weights: Ref | None
    kind: np.dtype
    outside: Ref | None = None

    def term(self, space: Space, tap: int | str) -> Expr:
        """The weighted neighbour `tap`: a number, or an iterator."""
        at: list[str | Expr] = [f"i{k}" for k in range(self.ref.rank)]
        if self.position is None:
            assert self.places is not None
            found = space.load(self.places, str(tap), f"i{self.axis}")
            at[self.axis] = wrap_index(found, space.number(self.extent))
        else:
            at[self.axis] = self.position(tap)
        element = cast(space.gather(self.ref, at), self.kind)
        if self.weights is None:
            return element
        return mul(space.load(self.weights, str(tap), f"i{self.axis}"), element)


def _sums(
    ctx: Lowering, node: Node, ref: Ref, axis: int, one: Resized, samples: Samples, kind: np.dtype
) -> Sums:
    """The sums of a table, without neighbours that never count."""
    used = [t for t in range(samples.weights.shape[1]) if samples.weights[:, t].any()]
    positions, weights = samples.positions[:, used], samples.weights[:, used].astype(kind)
    neighbours = bool((np.diff(positions, axis=1) == 1).all())
    start = find_floor(positions[:, 0], _slopes(one), f"i{axis}") if neighbours else None
    places = None
    if start is None:
        places = ctx.constant(f"{node.name}_positions", np.clip(positions, 0, one.old - 1).T)
        ref = ctx.whole(node, ref)
    factors = None if (weights == 1).all() else ctx.constant(f"{node.name}_weights", weights.T)

    def reached(tap: int | str) -> str:
        column = positions if isinstance(tap, str) else positions[:, tap]
        return _inside(f"{start} + {tap}", column, one.old)

    at_tap = None if start is None else reached
    outside = None
    if samples.outside.any():
        outside = ctx.constant(f"{node.name}_outside", samples.outside)
    taps = positions.shape[1]
    return Sums(ref, axis, one.old, one.new, taps, at_tap, places, factors, kind, outside)


def _interpolate(ctx: Lowering, node: Node, sums: Sums, finish: Callable[[Expr], Expr]) -> Ref:
    """A temporary that holds the sums: a formula of a few neighbours, or a reduction."""

    def done(space: Space, total: Expr) -> Expr:
        if sums.outside is not None:
            fill = constant(node.get("extrapolation_value", 0.0), sums.kind)
            total = select(space.load(sums.outside, f"i{sums.axis}"), fill, total)
        return finish(total)

    shape = _with_extent(sums.ref.shape, sums.axis, sums.new)
    dtype = finish(constant(0, sums.kind)).dtype
    target = ctx.array(f"{node.outputs[0]}_{sums.axis}", dtype, shape)
    grid = ctx.grid(node, shape)
    if isinstance(sums.taps, Size) or sums.taps > MOST_TERMS:
        space = ctx.space(node, **grid.extents, t=sums.taps)
        value = sums.term(space, "t")
        accumulate_into(ctx, node, target, space, grid.iterators, value, "add", done)
        return target
    terms = [sums.term(grid, t) for t in range(sums.taps)]
    ctx.assign(node, grid, target, grid.iterators, done(grid, reduce(add, terms)))
    return target


def _with_extent(shape: Sequence[int], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])
