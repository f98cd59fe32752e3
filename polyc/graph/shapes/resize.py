"""Resize: how large each dimension becomes, and where its positions lie in the input's.

Sizes follow the standard's text of Resize: given sizes, possibly adjusted to keep the aspect
ratio, or floor(extent * scale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.ir import Node, Shape, Tensor
from polyc.graph.shapes.checks import (
    FIX_SIZES,
    are_equal,
    constant_value,
    given,
    known_extents,
    require,
    require_at_least,
)
from polyc.graph.shapes.dims import normalize_axes
from polyc.graph.shapes.ratios import Ratio, as_ratio
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.types.estimate import estimate
from polyc.types.sizes import Size, divide


@dataclass(frozen=True)
class Resized:
    """One dimension: its extents before and after, the scale that positions are computed with
    (not always their quotient), and the part of the input that a crop takes, as fractions.

    of_call: the scale is the quotient of the extents as a call has them, and `scale` an estimate.
    """

    old: int
    new: int
    scale: float
    crop: tuple[float, float] = (0.0, 1.0)
    of_call: bool = False

    @property
    def is_same(self) -> bool:
        plain = math.isclose(self.scale, 1) and not self.of_call
        return are_equal(self.old, self.new) and plain and self.crop == (0, 1)

    @property
    def is_open(self) -> bool:
        """Whether one of its extents is known only at run time."""
        return isinstance(self.old, Size) or isinstance(self.new, Size)


def resolve_resize(node: Node, inputs: Inputs) -> tuple[Resized, ...]:
    """What a Resize does to each dimension of X; `inputs` are X, roi, scales, sizes.

    Raises RuleBroken for lists that do not fit, NotFixed for what is known only at run time.
    """
    shape = given(inputs[0]).extents
    axes = normalize_axes(node.get("axes") or range(len(shape)), len(shape))
    scales = _listed(inputs[2], "scales", len(axes))
    sizes = None
    if inputs[3] is not None and inputs[3].shape != (0,):
        sizes = known_extents(inputs[3], "sizes")
        way_out = "one number per axis"
        require(len(sizes) == len(axes), "length of sizes", len(axes), len(sizes), way_out)
    require(
        (scales is None) != (sizes is None), "inputs scales and sizes", "one of them",
        "both or none", "leave one of them out",
    )  # fmt: skip
    extents = [shape[axis] for axis in axes]
    pairs: Sequence[tuple[int, float | None]]
    if scales is not None:
        pairs = [_from_scale(n, s) for n, s in zip(extents, scales, strict=True)]
    else:
        pairs = _from_sizes(node, extents, cast("Sequence[int]", sizes or ()))
    crops = _crops(node, inputs[1], len(axes))
    result = [Resized(n, n, 1.0) for n in shape]
    for axis, (new, scale), crop in zip(axes, pairs, crops, strict=True):
        known = scale if scale is not None else estimate(new) / max(estimate(shape[axis]), 1)
        result[axis] = Resized(shape[axis], new, known, crop, scale is None)
    for one in result:
        rule, way_out = "extent of a resized dimension", "an empty dimension has nothing to read"
        if one.new != 0 and not one.is_same:
            require_at_least(one.old, 1, rule, one.old, way_out)
    return tuple(result)


def _from_scale(extent: int, scale: float | Ratio) -> tuple[int, float | None]:
    """What an extent becomes, and the scale if it is known.

    By one that is the quotient of two sizes what is meant; only a call can compute it.
    """
    if isinstance(scale, Ratio):
        new = scale.of(extent)
        if new is None:
            raise NotFixed(f"{extent} times {scale.above}/{scale.below}", FIX_SIZES)
        return cast(int, new), None
    way_out = "use finite scales above 0"
    require(0 < scale < math.inf, "scales", "positive numbers", scale, way_out)
    return _scaled(extent, scale), scale


def _scaled(extent: int, scale: float) -> int:
    """floor(extent * scale); of a size, by the simple fraction that the scale is the float of."""
    if not isinstance(extent, Size):
        return math.floor(extent * scale)
    fraction = Fraction(scale).limit_denominator(64)
    if np.float32(float(fraction)) != np.float32(scale):
        raise NotFixed(f"{extent} times {scale}, which is no simple fraction", FIX_SIZES)
    return cast(int, extent * fraction.numerator // fraction.denominator)


def _listed(tensor: Tensor | None, role: str, count: int) -> list[float | Ratio] | None:
    """The numbers of an optional input; an empty list is an absent one."""
    if tensor is None or tensor.shape == (0,):
        return None
    known = tensor.entries is None
    values = constant_value(tensor, role) if tensor.entries is None else tensor.entries
    listed = values.reshape(-1).tolist()
    require(len(listed) == count, f"length of {role}", count, len(listed), "one number per axis")
    return [float(v) if known else _simplest(as_ratio(v)) for v in listed]


def _simplest(ratio: Ratio) -> float | Ratio:
    """A ratio as a number, if it is one."""
    if isinstance(ratio.above, Size) or isinstance(ratio.below, Size):
        return ratio
    return ratio.above / ratio.below


def _from_sizes(
    node: Node, extents: Sequence[int], sizes: Sequence[int]
) -> list[tuple[int, float | None]]:
    for size in sizes:
        require_at_least(size, 0, "sizes", sizes, "correct the sizes")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if any(isinstance(n, Size) for n in (*extents, *sizes)):
        if policy != "stretch":
            raise NotFixed(f"the scale of {policy}, which the largest quotient decides", FIX_SIZES)
        return [(s, _quotient(s, n)) for s, n in zip(sizes, extents, strict=True)]
    scales = [s / n if n else 1.0 for s, n in zip(sizes, extents, strict=True)]
    if policy == "stretch":
        return [*zip(sizes, scales, strict=True)]
    scale = (min if policy == "not_larger" else max)(scales, default=1.0)
    return [(math.floor(scale * n + 0.5), scale) for n in extents]


def _quotient(size: int, extent: int) -> float | None:
    """The scale of one dimension, if it is known."""
    if isinstance(size, int) and isinstance(extent, int):
        return size / extent if extent else 1.0
    if are_equal(size, extent):
        return 1.0
    larger, smaller = divide(size, extent), divide(extent, size)
    if isinstance(larger, int):
        return float(larger)
    return 1 / smaller if isinstance(smaller, int) else None


def _crops(node: Node, roi: Tensor | None, count: int) -> list[tuple[float, float]]:
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    if mode != "tf_crop_and_resize":
        return [(0.0, 1.0)] * count
    require(roi is not None, "input roi", "starts and ends", "none", f"{mode} needs it")
    values = np.asarray(constant_value(given(roi), "roi"), np.float64).reshape(-1).tolist()
    require(len(values) == 2 * count, "length of roi", 2 * count, len(values), "correct roi")
    return list(zip(values[:count], values[count:], strict=True))


@shape_rule("Resize")
def infer_resize(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (1, 3, 4, 4), scales (1, 1, 2, 0.6) -> (1, 3, 8, 2)"""
    return (tuple(d.new for d in resolve_resize(node, inputs)),)
