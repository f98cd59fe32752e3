"""Operators that look at a signal or image through a grid: Resize, pools, Fourier transforms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import (
    Context,
    Rules,
    constant,
    default,
    floats,
    input_at,
    refuse,
    to_inputs,
    trim,
    with_attributes,
    without_attributes,
)


def upsample_scales(node: Node, context: Context) -> list[Node]:
    """Upsample(x; height_scale=2, width_scale=3) -> Upsample(x; scales=(1, 1, 2, 3))."""
    scales = (1.0, 1.0, node.get("height_scale"), node.get("width_scale"))
    mode = {"bilinear": "linear"}.get(node.get("mode", "nearest"), "nearest")
    plain = without_attributes(node, "height_scale", "width_scale")
    return [with_attributes(plain, scales=scales, mode=mode)]


def upsample_to_resize(node: Node, context: Context) -> list[Node]:
    """Upsample(x, scales) -> Resize(x, scales), of the version that both have in common."""
    return [replace(node, op="Resize")]


def resize_from_corner(node: Node, context: Context) -> list[Node]:
    """Resize(x, scales) -> Resize(x, , scales; asymmetric, floor): what the first version did."""
    x, scales = node.inputs
    old = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return [with_attributes(replace(node, inputs=(x, "", scales)), **old)]


def drop_empty_resize_inputs(node: Node, context: Context) -> list[Node]:
    """Resize(x, roi[0], scales[0], sizes) -> Resize(x, , , sizes): empty meant absent."""
    if node.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        refuse(node, "tf_half_pixel_for_nn was removed from the standard")
    x, *rest = node.inputs
    kept = (
        "" if name in context.types and context.types[name].shape == (0,) else name for name in rest
    )
    return [replace(node, inputs=trim((x, *kept)))]


def norm_to_integer(node: Node, context: Context) -> list[Node]:
    """LpPool(x; p=2.0) -> LpPool(x; p=2)."""
    p = node.get("p", 2.0)
    if p != int(p):
        refuse(node, f"p={p} is not an integer")
    return [with_attributes(node, p=int(p))]


def grid_mode_name(node: Node, context: Context) -> list[Node]:
    """GridSample(x; mode="bilinear") -> GridSample(x; mode="linear")."""
    mode = node.get("mode", "bilinear")
    return [with_attributes(node, mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))]


def transform_axis_to_input(node: Node, context: Context) -> list[Node]:
    """DFT(x, length; axis=1) -> DFT(x, length, 1)."""
    axis = constant(context.fresh(node, "axis"), np.array(node.get("axis", 1), np.int64))
    inputs = (node.inputs[0], input_at(node, 1), axis.outputs[0])
    return [axis, replace(without_attributes(node, "axis"), inputs=inputs)]


RULES: Rules = {
    "DFT": ((20, transform_axis_to_input),),
    "GlobalLpPool": ((2, norm_to_integer),),
    "GridSample": ((20, grid_mode_name),),
    "LpPool": ((2, norm_to_integer),),
    "Resize": ((11, resize_from_corner), (13, drop_empty_resize_inputs)),
    "RoiAlign": ((16, default(coordinate_transformation_mode="output_half_pixel")),),
    "Upsample": ((7, upsample_scales), (9, to_inputs(scales=floats)), (10, upsample_to_resize)),
}
