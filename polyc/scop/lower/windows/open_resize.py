"""Resize along dimensions whose extents are known only at run time: tables that are computed.

    x(o) = (o + 1/2) * old/new - 1/2          the position of output o, half_pixel
    y[o] = sum of max(0, 1 - |x(o) - p|) * x[p] over the two neighbours p

A scale p/q that is known makes the position of the first neighbour a quasi-affine formula, as it is
for extents that are known; else positions are computed into a table, as weights always are. Where
an antialiased image becomes smaller, each output has more neighbours, and weights are divided by
their sum; so they are where neighbours outside do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.ir import Node
from polyc.graph.shapes.checks import FIX_SIZES
from polyc.graph.shapes.resize import Resized
from polyc.poly.conditions import spell
from polyc.scop.expr import BOOL, INT64, Const, Expr, cast
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.functions import (
    FLOAT64,
    absolute,
    add,
    both,
    div,
    either,
    eq,
    function,
    ge,
    gt,
    le,
    lt,
    maximum,
    mul,
    select,
    sub,
)
from polyc.scop.lower.space import Ref, Space
from polyc.types.sizes import Size, bounds

ceil = function("ceil")
floor = function("floor")

LARGEST_DIVISOR = 64
"""Of a scale that is taken for a simple fraction."""

MOST_IDLE = 256
"""Neighbours of an antialiased output where calls differ in how many of them have a weight."""


@dataclass(frozen=True)
class OpenMode:
    """How one dimension is resized: the node's attributes, and the scale, if it is a fraction.

    shrinks: an antialiased image becomes smaller, or may; excludes: what is outside has no weight.
    """

    one: Resized
    mode: str
    coordinates: str
    rounding: str
    coefficient: float
    fraction: Fraction | None
    shrinks: bool
    excludes: bool

    @property
    def is_nearest(self) -> bool:
        return self.mode == "nearest"

    @property
    def reach(self) -> int:
        """How far a filter that is not stretched reaches, in elements."""
        return 2 if self.mode == "cubic" else 1

    @cached_property
    def taps(self) -> int:
        """How many neighbours an output has: 2 * reach, as often as the filter is stretched."""
        if self.is_nearest:
            return 1
        if not self.shrinks:
            return 2 * self.reach
        old, new = self.one.old, self.one.new
        if not self.one.of_call:
            return 2 * math.ceil(self.reach / self.one.scale)
        if not isinstance(new, Size):
            # Those of the stretched filter, and enough where it is not stretched.
            return 2 * (-(-self.reach * old // new) + self.reach - 1)
        # As many as there are where the result is smallest; elsewhere some have no weight.
        ratio = max(bounds(old)[1] / max(bounds(new)[0], 1), 1)
        if 2 * self.reach * ratio > MOST_IDLE:
            raise NotFixed(f"antialias along {old} elements, which become {new}", FIX_SIZES)
        return 2 * self.reach * math.ceil(ratio)

    @property
    def divides(self) -> bool:
        """Whether weights are divided by their sum."""
        return not self.is_nearest and (self.shrinks or self.excludes)

    def start(self, o: str) -> str | None:
        """The position of the first neighbour of output o, if a formula says it.

        x = a*o/d + b/d, all whole numbers; so is what is rounded
        """
        if self.fraction is None:
            return None
        p, q = self.fraction.numerator, self.fraction.denominator
        # (o + 1/2) * q/p - 1/2, o * q/p  or  (o + 1/2) * q/p, over 2 p
        shift = {"asymmetric": 0, "tf_half_pixel_for_nn": q}.get(self.coordinates, q - p)
        if not self.is_nearest:  # the last whole number in front of x, and for cubic one before
            return f"floor(({2 * q}*{o} + {shift + 2 * p - 1})/{2 * p}) - {self.taps // 2}"
        shift += {
            "round_prefer_floor": p - 1,
            "round_prefer_ceil": p,
            "floor": 0,
            "ceil": 2 * p - 1,
        }[self.rounding]
        return f"floor(({2 * q}*{o} + {shift})/{2 * p})"

    def scale(self, space: Space) -> Expr:
        if not self.one.of_call:
            return _constant(self.one.scale)
        return div(_number(space, self.one.new), _number(space, self.one.old))

    def coordinate(self, space: Space) -> Expr:
        """The position of output i in the input, as `resampling.find_coordinates` computes it."""
        old, new = (_number(space, n) for n in (self.one.old, self.one.new))
        scale = self.scale(space)
        width = new if self.one.of_call else mul(scale, old)
        y: Expr = cast(space.index("i"), FLOAT64)
        is_one = eq(width, 1.0)
        match self.coordinates:
            case "align_corners":
                return select(is_one, _constant(0), div(mul(y, sub(old, 1.0)), sub(width, 1.0)))
            case "asymmetric":
                return div(y, scale)
            case "tf_half_pixel_for_nn":
                return div(add(y, 0.5), scale)
            case "tf_crop_and_resize":
                (start, end), last = self.one.crop, sub(old, 1.0)
                middle = mul(last, (start + end) / 2)
                step = div(mul(last, end - start), sub(width, 1.0))
                return select(is_one, middle, add(mul(y, step), mul(last, start)))
        x = sub(div(add(y, 0.5), scale), 0.5)
        if self.coordinates == "pytorch_half_pixel":
            return select(is_one, _constant(-0.5), x)
        if self.coordinates == "half_pixel_symmetric":
            return add(mul(div(old, 2.0), sub(1.0, div(new, width))), x)
        return x

    def position(self, space: Space, tap: str) -> Expr:
        """The position of a neighbour, whose number is a formula, as a float."""
        x = self.coordinate(space)
        if self.is_nearest:
            match self.rounding:
                case "round_prefer_floor":
                    return ceil(sub(x, 0.5))
                case "round_prefer_ceil":
                    return floor(add(x, 0.5))
            return floor(x) if self.rounding == "floor" else ceil(x)
        number = space.index(f"{tap} - ({spell(self.taps // 2)})")
        return add(ceil(x), cast(number, FLOAT64))

    def weight(self, space: Space, tap: str) -> Expr:
        """The weight of a neighbour, by its distance."""
        position = self.position(space, tap)
        d = absolute(sub(position, self.coordinate(space)))
        if self.shrinks:
            d = mul(d, function("min")(self.scale(space), 1.0))
        value = self._filtered(d)
        if not self.excludes:
            return value
        inside = both(ge(position, 0.0), lt(position, _number(space, self.one.old)))
        return select(inside, value, _constant(0))

    def _filtered(self, d: Expr) -> Expr:
        if self.mode == "linear":
            return maximum(sub(1.0, d), 0.0)
        a = self.coefficient
        near = add(mul(sub(mul(a + 2, d), a + 3), mul(d, d)), 1.0)
        far = sub(mul(add(mul(sub(mul(a, d), 5 * a), d), 8 * a), d), 4 * a)
        return select(le(d, 1.0), near, select(lt(d, 2.0), far, _constant(0)))

    def is_outside(self, space: Space) -> Expr:
        """Whether the position of output i is none of the input's."""
        x = self.coordinate(space)
        return either(lt(x, 0.0), gt(x, sub(_number(space, self.one.old), 1.0)))


def find_open(node: Node, one: Resized) -> OpenMode:
    """How a dimension is resized."""
    coordinates = node.get("coordinate_transformation_mode", "half_pixel")
    mode = node.get("mode", "nearest")
    fraction = None
    if not one.of_call and coordinates in ("half_pixel", "asymmetric", "tf_half_pixel_for_nn"):
        simple = Fraction(one.scale).limit_denominator(LARGEST_DIVISOR)
        fraction = simple if np.float32(float(simple)) == np.float32(one.scale) else None
    return OpenMode(
        one,
        mode,
        coordinates,
        node.get("nearest_mode", "round_prefer_floor"),
        node.get("cubic_coeff_a", -0.75),
        fraction,
        bool(node.get("antialias")) and (one.of_call or one.scale < 1),
        bool(node.get("exclude_outside")),
    )


@dataclass(frozen=True)
class Tables:
    """Positions of neighbours and their weights, both [taps, new]; outside, bool[new].

    Each is None where it is not needed.
    """

    places: Ref | None
    weights: Ref | None
    outside: Ref | None


def write_tables(
    ctx: Lowering, node: Node, mode: OpenMode, has_places: bool, kind: np.dtype
) -> Tables:
    """The tables of one dimension; positions if they are asked for."""
    places = weights = outside = None
    extent = mode.one.new
    if has_places:
        places = ctx.array(f"{node.name}_positions", INT64, (mode.taps, extent))
        for space, tap in _spaces(ctx, node, mode):
            last = sub(_number(space, mode.one.old), 1.0)
            inside = maximum(function("min")(mode.position(space, tap), last), 0.0)
            ctx.assign(node, space, places, [tap, "i"], cast(inside, INT64))
    if not mode.is_nearest:
        weights = _write_weights(ctx, node, mode, kind)
    if mode.coordinates == "tf_crop_and_resize":
        outside = ctx.array(f"{node.name}_outside", BOOL, (extent,))
        space = ctx.space(node, i=extent)
        ctx.assign(node, space, outside, ["i"], mode.is_outside(space))
    return Tables(places, weights, outside)


def _spaces(ctx: Lowering, node: Node, mode: OpenMode) -> Iterator[tuple[Space, str]]:
    """Where the tables of neighbours are written: one by one if they are few."""
    if mode.divides:
        yield ctx.space(node, t=mode.taps, i=mode.one.new), "t"
        return
    for tap in range(mode.taps):
        yield ctx.space(node, i=mode.one.new), str(tap)


def _write_weights(ctx: Lowering, node: Node, mode: OpenMode, kind: np.dtype) -> Ref:
    """The weights; where it says so, each divided by the sum of those of its output.

    w[t, i] = filter(|position - x|)     total[i] += w[t, i]     weights[t, i] = w[t, i] / total[i]
    """
    shape = (mode.taps, mode.one.new)
    weights = ctx.array(f"{node.name}_weights", kind, shape)
    if not mode.divides:
        for space, tap in _spaces(ctx, node, mode):
            ctx.assign(node, space, weights, [tap, "i"], cast(mode.weight(space, tap), kind))
        return weights
    whole = ctx.array(f"{node.name}_filter", FLOAT64, shape)
    total = ctx.array(f"{node.name}_totals", FLOAT64, shape[1:])
    at = ["t", "i"]
    extents = dict(zip(at, shape, strict=True))
    space = ctx.space(node, **extents)
    ctx.assign(node, space, whole, at, mode.weight(space, "t"))
    space = ctx.space(node, **extents)
    ctx.reduce(node, space, total, ["i"], space.load(whole, *at), "add")
    space = ctx.space(node, **extents)
    found = space.load(total, "i")
    divisor = select(eq(found, 0.0), _constant(1), found)
    ctx.assign(node, space, weights, at, cast(div(space.load(whole, *at), divisor), kind))
    return weights


def _number(space: Space, extent: int) -> Expr:
    found = space.number(extent, FLOAT64)
    return _constant(found) if isinstance(found, int) else found


def _constant(value: float) -> Expr:
    return Const(float(value), FLOAT64)
