"""Resize along dimensions whose extents are known only at run time: tables that are computed.

    x(o) = (o + 1/2) * old/new - 1/2          the position of output o, half_pixel
    y[o] = sum of max(0, 1 - |x(o) - p|) * x[p] over the two neighbours p

A scale p/q that is known makes the position of the first neighbour a quasi-affine formula, as it is
for extents that are known; else positions are computed into a table, as weights always are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.ir import Node
from polyc.graph.shapes.checks import FIX_SIZES
from polyc.graph.shapes.resize import Resized
from polyc.scop.expr import INT64, Const, Expr, cast
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.functions import (
    FLOAT64,
    absolute,
    add,
    div,
    eq,
    function,
    le,
    lt,
    maximum,
    mul,
    select,
    sub,
)
from polyc.scop.lower.space import Ref, Space

ceil = function("ceil")
floor = function("floor")

LARGEST_DIVISOR = 64
"""Of a scale that is taken for a simple fraction."""


@dataclass(frozen=True)
class OpenMode:
    """How one dimension is resized: the node's attributes, and the scale, if it is a fraction."""

    one: Resized
    mode: str
    coordinates: str
    rounding: str
    coefficient: float
    fraction: Fraction | None

    @property
    def is_nearest(self) -> bool:
        return self.mode == "nearest"

    @property
    def taps(self) -> int:
        return {"nearest": 1, "linear": 2, "cubic": 4}[self.mode]

    def start(self, o: str) -> str | None:
        """The position of the first neighbour of output o, if a formula says it.

        x = a*o/d + b/d, all whole numbers; so is what is rounded
        """
        if self.fraction is None:
            return None
        p, q = self.fraction.numerator, self.fraction.denominator
        # (o + 1/2) * q/p - 1/2  or  o * q/p, over 2 p
        shift = 0 if self.coordinates == "asymmetric" else q - p
        if not self.is_nearest:  # the last whole number in front of x, and for cubic one before
            shift, back = shift + 2 * p - 1, 1 if self.mode == "linear" else 2
            return f"floor(({2 * q}*{o} + {shift})/{2 * p}) - {back}"
        shift += {
            "round_prefer_floor": p - 1,
            "round_prefer_ceil": p,
            "floor": 0,
            "ceil": 2 * p - 1,
        }[self.rounding]
        return f"floor(({2 * q}*{o} + {shift})/{2 * p})"

    def coordinate(self, space: Space) -> Expr:
        """The position of output i in the input, as `resampling.find_coordinates` computes it."""
        old, new = (_number(space, n) for n in (self.one.old, self.one.new))
        scale = div(new, old) if self.one.of_call else _constant(self.one.scale)
        width = new if self.one.of_call else mul(scale, old)
        y: Expr = cast(space.index("i"), FLOAT64)
        is_one = eq(width, 1.0)
        match self.coordinates:
            case "align_corners":
                return select(is_one, _constant(0), div(mul(y, sub(old, 1.0)), sub(width, 1.0)))
            case "asymmetric":
                return div(y, scale)
        x = sub(div(add(y, 0.5), scale), 0.5)
        if self.coordinates == "pytorch_half_pixel":
            return select(is_one, _constant(-0.5), x)
        if self.coordinates == "half_pixel_symmetric":
            return add(mul(div(old, 2.0), sub(1.0, div(new, width))), x)
        return x

    def position(self, space: Space, tap: int) -> Expr:
        """The position of a neighbour, as a float."""
        x = self.coordinate(space)
        if self.is_nearest:
            match self.rounding:
                case "round_prefer_floor":
                    return ceil(sub(x, 0.5))
                case "round_prefer_ceil":
                    return floor(add(x, 0.5))
            return floor(x) if self.rounding == "floor" else ceil(x)
        return add(ceil(x), float(tap - self.taps // 2))

    def weight(self, space: Space, tap: int) -> Expr:
        """The weight of a neighbour, by its distance."""
        d = absolute(sub(self.position(space, tap), self.coordinate(space)))
        if self.mode == "linear":
            return maximum(sub(1.0, d), 0.0)
        a = self.coefficient
        near = add(mul(sub(mul(a + 2, d), a + 3), mul(d, d)), 1.0)
        far = sub(mul(add(mul(sub(mul(a, d), 5 * a), d), 8 * a), d), 4 * a)
        return select(le(d, 1.0), near, select(lt(d, 2.0), far, _constant(0)))


def find_open(node: Node, one: Resized) -> OpenMode:
    """How a dimension is resized; NotFixed for what only known extents allow."""
    coordinates = node.get("coordinate_transformation_mode", "half_pixel")
    refused = {
        "tf_crop_and_resize": coordinates == "tf_crop_and_resize",
        "exclude_outside": bool(node.get("exclude_outside")),
        "antialias": bool(node.get("antialias")) and (one.of_call or one.scale < 1),
    }
    for what, is_asked in refused.items():
        if is_asked:
            raise NotFixed(f"{what} along {one.old} elements, which become {one.new}", FIX_SIZES)
    mode = node.get("mode", "nearest")
    fraction = None
    if not one.of_call and coordinates in ("half_pixel", "asymmetric"):
        simple = Fraction(one.scale).limit_denominator(LARGEST_DIVISOR)
        fraction = simple if np.float32(float(simple)) == np.float32(one.scale) else None
    rounding = node.get("nearest_mode", "round_prefer_floor")
    return OpenMode(one, mode, coordinates, rounding, node.get("cubic_coeff_a", -0.75), fraction)


def write_tables(
    ctx: Lowering, node: Node, mode: OpenMode, has_places: bool, kind: np.dtype
) -> tuple[Ref | None, Ref | None]:
    """The positions of neighbours, [taps, new], if they are asked for, and their weights."""
    shape = (mode.taps, mode.one.new)
    places = ctx.array(f"{node.name}_positions", INT64, shape) if has_places else None
    weights = None if mode.is_nearest else ctx.array(f"{node.name}_weights", kind, shape)
    for tap in range(mode.taps):
        if places is not None:
            space = ctx.space(node, i=mode.one.new)
            last = sub(_number(space, mode.one.old), 1.0)
            inside = maximum(function("min")(mode.position(space, tap), last), 0.0)
            ctx.assign(node, space, places, [str(tap), "i"], cast(inside, INT64))
        if weights is not None:
            space = ctx.space(node, i=mode.one.new)
            value = cast(mode.weight(space, tap), kind)
            ctx.assign(node, space, weights, [str(tap), "i"], value)
    return places, weights


def _number(space: Space, extent: int) -> Expr:
    found = space.number(extent, FLOAT64)
    return _constant(found) if isinstance(found, int) else found


def _constant(value: float) -> Expr:
    return Const(float(value), FLOAT64)
