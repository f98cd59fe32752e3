"""Reductions, arg-reductions and scans along axes."""

from __future__ import annotations

from collections.abc import Sequence

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import constant_ints, constant_scalar, given, require, require_rank
from polyc.graph.shapes.dims import normalize_axes, normalize_axis
from polyc.graph.shapes.rules import Inputs, shape_rule

REDUCTIONS = (
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
    "ReduceLogSumExp ReduceSumSquare"
)


def resolve_reduce_axes(
    axes: Sequence[int] | None, rank: int, noop_with_empty_axes: bool
) -> tuple[int, ...]:
    """The axes that a Reduce* removes, ascending: (-1, 0), rank 3 -> (0, 2).

    None and the empty list mean all axes, or no axis with `noop_with_empty_axes`.
    """
    if not axes:
        return () if noop_with_empty_axes else tuple(range(rank))
    return tuple(sorted(normalize_axes(axes, rank)))


def compute_reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """(2, 3, 4), axes (1,) -> (2, 1, 4) with keepdims, else (2, 4)."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


@shape_rule(*REDUCTIONS.split())
def infer_reduce(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, axes) -> s with the axes made 1, or left out where keepdims is 0"""
    data, axes = given(inputs[0]), inputs[1]
    listed = None if axes is None else constant_ints(axes, "axes")
    resolved = resolve_reduce_axes(listed, data.rank, bool(node.get("noop_with_empty_axes", 0)))
    return (compute_reduced_shape(data.shape, resolved, bool(node.get("keepdims", 1))),)


@shape_rule("ArgMax", "ArgMin")
def infer_arg_reduce(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s) -> s with one axis made 1, or left out where keepdims is 0"""
    data = given(inputs[0])
    require_rank(data, "data", least=1)
    axis = normalize_axis(node.get("axis", 0), data.rank)
    way_out = "the position of an extreme needs at least one element"
    require(data.shape[axis] != 0, f"extent of axis {axis}", "at least 1", 0, way_out)
    return (compute_reduced_shape(data.shape, (axis,), bool(node.get("keepdims", 1))),)


@shape_rule("CumSum", "CumProd")
def infer_scan(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(s, axis) -> s"""
    data, axis = given(inputs[0]), given(inputs[1])
    require_rank(data, "x", least=1)
    if axis.value is not None:
        normalize_axis(constant_scalar(axis, "axis"), data.rank)
    return (data.shape,)
