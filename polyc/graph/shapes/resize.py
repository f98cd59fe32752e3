"""Resize: how large each dimension becomes, and where its positions lie in the input's.

Sizes follow the standard's text of Resize: given sizes, possibly adjusted to keep the aspect
ratio, or floor(extent * scale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyc.graph.ir import Node, Shape, Tensor
from polyc.graph.shapes.checks import constant_value, given, require
from polyc.graph.shapes.dims import fixed_all, normalize_axes
from polyc.graph.shapes.rules import Inputs, shape_rule


@dataclass(frozen=True)
class Resized:
    """One dimension: its extents before and after, the scale that positions are computed with
    (not always their quotient), and the part of the input that a crop takes, as fractions."""

    old: int
    new: int
    scale: float
    crop: tuple[float, float] = (0.0, 1.0)

    @property
    def is_same(self) -> bool:
        return self.old == self.new and math.isclose(self.scale, 1) and self.crop == (0, 1)


def resolve_resize(node: Node, inputs: Inputs) -> tuple[Resized, ...]:
    """What a Resize does to each dimension of X; `inputs` are X, roi, scales, sizes.

    Raises RuleBroken for lists that do not fit, NotFixed for what is known only at run time.
    """
    shape = fixed_all(given(inputs[0]).shape, "a dimension of X")
    axes = normalize_axes(node.get("axes") or range(len(shape)), len(shape))
    scales = _listed(inputs[2], "scales", len(axes))
    sizes = _listed(inputs[3], "sizes", len(axes))
    require(
        (scales is None) != (sizes is None), "inputs scales and sizes", "one of them",
        "both or none", "leave one of them out",
    )  # fmt: skip
    extents = [shape[axis] for axis in axes]
    if scales is not None:
        way_out = "use finite scales above 0"
        fits = all(0 < s < math.inf for s in scales)
        require(fits, "scales", "positive numbers", scales, way_out)
        pairs = [(math.floor(n * s), s) for n, s in zip(extents, scales, strict=True)]
    else:
        pairs = _from_sizes(node, extents, [int(s) for s in sizes or ()])
    crops = _crops(node, inputs[1], len(axes))
    result = [Resized(n, n, 1.0) for n in shape]
    for axis, (new, scale), crop in zip(axes, pairs, crops, strict=True):
        result[axis] = Resized(shape[axis], new, scale, crop)
    for one in result:
        rule, way_out = "extent of a resized dimension", "an empty dimension has nothing to read"
        require(one.old > 0 or one.new == 0, rule, "at least 1", one.old, way_out)
    return tuple(result)


def _listed(tensor: Tensor | None, role: str, count: int) -> list[float] | None:
    """The numbers of an optional input; an empty list is an absent one."""
    if tensor is None or tensor.shape == (0,):
        return None
    values = constant_value(tensor, role).reshape(-1).tolist()
    require(len(values) == count, f"length of {role}", count, len(values), "one number per axis")
    return [float(v) for v in values]


def _from_sizes(
    node: Node, extents: Sequence[int], sizes: Sequence[int]
) -> list[tuple[int, float]]:
    require(min(sizes, default=0) >= 0, "sizes", "no negative size", sizes, "correct the sizes")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    scales = [s / n if n else 1.0 for s, n in zip(sizes, extents, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, scales, strict=True))
    scale = (min if policy == "not_larger" else max)(scales, default=1.0)
    return [(math.floor(scale * n + 0.5), scale) for n in extents]


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
