"""LinearClassifier and LinearRegressor: a product with coefficients, and what is done with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.learned.scores import (
    add_opposite,
    as_floats,
    find_largest,
    is_positive,
    name_classes,
    transform,
    transform_one,
)
from polyc.graph.expand.learned.tables import (
    as_rows,
    read_labels,
    read_list,
    refuse,
    require_length,
)
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require

Operands = Sequence[Tensor | None]

_FLOAT = np.dtype(np.float32)


def expand_linear_regressor(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> float32[rows, targets]"""
    c, targets = Composer(), int(node.get("targets", 1))
    intercepts = read_list(node, "intercepts", np.float32)
    if len(intercepts) not in (0, targets):
        require_length(node, "intercepts", len(intercepts), targets)
    total = _multiply(c, node, inputs, targets, intercepts)
    change = transform if targets > 1 else transform_one
    return c.body(node.inputs, (change(c, node.get("post_transform", "NONE"), total),))


def expand_linear_classifier(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> the label of each row's class, float32[rows, classes]

    A single score is that of the second of two classes.
    """
    c, kind = Composer(), node.get("post_transform", "NONE")
    labels = read_labels(node, "classlabels_ints")
    intercepts = read_list(node, "intercepts", np.float32)
    targets = len(intercepts) or len(labels)
    total = _multiply(c, node, inputs, targets, intercepts)
    if targets > 1:
        require_length(node, "the list of labels", len(labels), targets)
        number, scores = find_largest(c, total), transform(c, kind, total)
        return c.body(node.inputs, (name_classes(c, labels, number), scores))
    require_length(node, "the list of labels", len(labels), 2)
    number, scores = is_positive(c, total, 0.0, _FLOAT), add_opposite(c, kind, total, True)
    return c.body(node.inputs, (name_classes(c, labels, number), scores))


def _multiply(
    c: Composer, node: Node, inputs: Operands, targets: int, intercepts: np.ndarray
) -> str:
    """x[rows, features] -> float32[rows, targets]"""
    coefficients = read_list(node, "coefficients", np.float32)
    x, extent = as_rows(c, node.inputs[0], given(inputs[0]))
    features = extent if isinstance(extent, int) else len(coefficients) // targets
    way_out = "there is a coefficient for each feature and target: correct the attribute"
    require(extent == features, "features of X", features, extent, way_out)
    # ONNX Runtime passes over coefficients behind the last one that it needs.
    if not 0 < features * targets <= len(coefficients):
        wanted = f"those of {targets} targets and {features} features"
        raise refuse(node, f"{len(coefficients)} coefficients are less than {wanted}")
    table = coefficients[: features * targets].reshape(targets, features).T
    x = as_floats(c, x, given(inputs[0]).dtype)
    total = c("MatMul", x, c.constant(np.ascontiguousarray(table)))
    return c("Add", total, c.constant(intercepts)) if len(intercepts) else total
