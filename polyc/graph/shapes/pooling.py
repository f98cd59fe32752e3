"""Pools over sliding windows and over whole images."""

from __future__ import annotations

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import given, require_rank
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.window import resolve_window


@shape_rule("MaxPool", "AveragePool", "LpPool")
def infer_pool(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …) -> Y (n, c, …) and, of MaxPool, the indices, which have the same shape"""
    x = given(inputs[0])
    require_rank(x, "X", least=3)
    kernel = tuple(int(k) for k in node.attributes["kernel_shape"])
    shape = (*x.shape[:2], *resolve_window(node, x.shape[2:], kernel).output)
    return (shape, shape)


@shape_rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def infer_global_pool(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, …) -> (n, c, 1, …)"""
    x = given(inputs[0])
    require_rank(x, "X", least=3)
    return ((*x.shape[:2], *(1 for _ in x.shape[2:])),)
