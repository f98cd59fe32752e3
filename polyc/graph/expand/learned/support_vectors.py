"""SVMClassifier and SVMRegressor: kernels with support vectors, sums of them, and votes.

Each pair of classes has a score, in which the vectors of these two classes count. It is a vote for
one of both; with what a model says about probabilities it is also the share of 1 that one of both
has, and shares of pairs become shares of classes by an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from onnx import TensorProto

from polyc.budget import require_table
from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.expand.learned.scores import (
    add_opposite,
    as_floats,
    find_largest,
    is_positive,
    name_classes,
    transform,
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
from polyc.graph.steps import Loop

Operands = Sequence[Tensor | None]

_FLOAT = np.dtype(np.float32)
_MOST_COUPLED = 32
"""Classes whose shares are coupled: a step of the iteration is written out for each of them."""
_ROUNDS = 100


def expand_svm_regressor(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> float32[rows, 1]; for one class 1 or -1, by the sign"""
    c, supports = Composer(), int(node.get("n_supports", 0))
    coefficients, rho = (read_list(node, name, np.float32) for name in ("coefficients", "rho"))
    require_length(node, "rho", len(rho), 1)
    if supports:
        require_length(node, "coefficients", len(coefficients), supports)
        x = _kernels(c, node, inputs, supports)
    else:
        x = _read_features(c, node, inputs, len(coefficients))
    total = c("MatMul", x, c.constant(coefficients[:, None]))
    total = c("Add", total, c.constant(rho))
    if node.get("one_class", 0):
        above = c("Greater", total, c.constant(np.float32(0)))
        total = c("Where", above, *(c.constant(np.float32(sign)) for sign in (1, -1)))
    return c.body(node.inputs, (total,))


def expand_svm_classifier(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> the label of each row's class, float32[rows, …]

    Scores are shares of classes where there are probabilities; else those of pairs of classes, of
    a single pair both; of a linear model those of classes.
    """
    c = Composer()
    labels = read_labels(node, "classlabels_ints")
    counts = np.asarray(node.get("vectors_per_class", ()), np.int64)
    if not counts.sum():
        number, scores = _choose_linear(c, node, inputs, len(labels))
        return c.body(node.inputs, (name_classes(c, labels, number), scores))
    require_length(node, "vectors_per_class", len(counts), len(labels))
    if len(labels) < 2:
        raise refuse(node, "it has one class, and support vectors tell several apart")
    pairs = list(combinations(range(len(labels)), 2))
    scores = _score_pairs(c, node, inputs, counts, pairs)
    number = _count_votes(c, scores, pairs, len(labels))
    scores = as_floats(c, scores, np.dtype(np.float64))
    kind = node.get("post_transform", "NONE")
    slopes, shifts = (read_list(node, name, np.float32) for name in ("prob_a", "prob_b"))
    if len(slopes) or len(shifts):
        require_length(node, "prob_a", len(slopes), len(pairs))
        require_length(node, "prob_b", len(shifts), len(pairs))
        shares = _couple(c, node, _shares_of_pairs(c, scores, slopes, shifts), pairs, len(labels))
        scores = transform(c, kind, shares)
    elif len(labels) > 2:
        scores = transform(c, kind, scores)
    else:
        # ONNX Runtime takes a score that is to be transformed for a share, and leaves it so.
        scores = add_opposite(c, kind, scores, kind != "NONE")
    return c.body(node.inputs, (name_classes(c, labels, number), scores))


def _read_features(c: Composer, node: Node, inputs: Operands, features: int) -> str:
    """float32[rows, features]; raises RuleBroken for another number of features"""
    x = given(inputs[0])
    name, extent = as_rows(c, node.inputs[0], x)
    way_out = "a support vector has a number for each feature: correct the attributes"
    require(extent == features, "features of X", features, extent, way_out)
    return as_floats(c, name, x.dtype)


def _kernels(c: Composer, node: Node, inputs: Operands, supports: int) -> str:
    """x[rows, features] -> float32[rows, vectors]: what each is to each support vector"""
    table = read_list(node, "support_vectors", np.float32)
    features, rest = divmod(len(table), supports)
    if rest or not features:
        raise refuse(node, f"support_vectors has {len(table)} numbers for {supports} vectors")
    vectors = table.reshape(supports, features)
    kind = node.get("kernel_type", "LINEAR")
    parameters = read_list(node, "kernel_params", np.float32)
    if len(parameters) or kind != "LINEAR":
        require_length(node, "kernel_params", len(parameters), 3)
    x = _read_features(c, node, inputs, features)
    if kind == "RBF":
        away = c("Sub", c("Unsqueeze", x, c.integers(1)), c.constant(vectors))
        square = c("ReduceSum", c("Mul", away, away), c.integers(2), keepdims=0)
        return c("Exp", c("Mul", square, c.constant(-parameters[0])))
    product = c("MatMul", x, c.constant(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return product
    gamma, shift, degree = (c.constant(value) for value in parameters)
    inner = c("Add", c("Mul", product, gamma), shift)
    return c("Pow", inner, degree) if kind == "POLY" else c("Tanh", inner)


def _choose_linear(c: Composer, node: Node, inputs: Operands, classes: int) -> tuple[str, str]:
    """A model without support vectors: coefficients[class, feature], and one rho for all."""
    coefficients, rho = (read_list(node, name, np.float32) for name in ("coefficients", "rho"))
    features, rest = divmod(len(coefficients), classes)
    if rest or not features:
        raise refuse(node, f"{len(coefficients)} coefficients are not those of {classes} classes")
    if not len(rho):
        raise refuse(node, "rho is empty")
    x = _read_features(c, node, inputs, features)
    table = np.ascontiguousarray(coefficients.reshape(classes, features).T)
    scores = c("Add", c("MatMul", x, c.constant(table)), c.constant(rho[0]))
    number = find_largest(c, scores)
    if classes == 2:
        # Of two classes ONNX Runtime takes the second wherever the larger score is high enough.
        most, shares = c("ReduceMax", scores, c.integers(1), keepdims=1), (coefficients >= 0).all()
        least = np.nextafter(_FLOAT.type(0.5), _FLOAT.type(0)) if shares else 0.0
        number = c("Max", number, is_positive(c, most, least, _FLOAT))
    change = node.get("post_transform", "NONE")
    return number, transform(c, change, scores) if classes > 1 else scores


def _score_pairs(
    c: Composer,
    node: Node,
    inputs: Operands,
    counts: np.ndarray,
    pairs: Sequence[tuple[int, int]],
) -> str:
    """x[rows, features] -> float64[rows, pairs]; sums are of doubles, as in ONNX Runtime

    coefficients[k, v] of a vector of class i belong to the pair of i and class k, or k + 1 from i
    on: a class has no pair with itself.
    """
    vectors, classes = int(counts.sum()), len(counts)
    coefficients, rho = (read_list(node, name, np.float32) for name in ("coefficients", "rho"))
    require_length(node, "coefficients", len(coefficients), (classes - 1) * vectors)
    require_length(node, "rho", len(rho), len(pairs))
    require_table(vectors * len(pairs), f"{node.op} {node.name!r}")
    table = coefficients.reshape(classes - 1, vectors)
    ends = np.cumsum(counts)
    own = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    of_pairs = np.zeros((vectors, len(pairs)), np.float64)
    for k, (i, j) in enumerate(pairs):
        of_pairs[own[i], k] = table[j - 1, own[i]]
        of_pairs[own[j], k] = table[i, own[j]]
    kernels = c("Cast", _kernels(c, node, inputs, vectors), to=TensorProto.DOUBLE)
    return c("Add", c("MatMul", kernels, c.constant(of_pairs)), c.constant(rho, np.float64))


def _count_votes(c: Composer, scores: str, pairs: Sequence[tuple[int, int]], classes: int) -> str:
    """float64[rows, pairs] -> int64[rows]: the first class of those with most votes"""
    first, second = (
        np.array([[side == k for k in range(classes)] for side in sides], np.float32)
        for sides in zip(*pairs, strict=True)
    )
    above = c("Greater", scores, c.constant(np.float64(0)))
    votes = c("MatMul", c("Cast", above, to=TensorProto.FLOAT), c.constant(first - second))
    return find_largest(c, c("Add", votes, c.constant(second.sum(axis=0))))


def _shares_of_pairs(c: Composer, scores: str, slopes: np.ndarray, shifts: np.ndarray) -> str:
    """float32[rows, pairs]: the share of the first of both classes, which is never quite 0 or 1"""
    inner = c("Add", c("Mul", scores, c.constant(slopes)), c.constant(shifts))
    shares = c("Sigmoid", c("Neg", inner))
    return c("Clip", shares, *(c.constant(np.float32(end)) for end in (1e-7, 1 - 1e-7)))


def _couple(
    c: Composer, node: Node, shares: str, pairs: Sequence[tuple[int, int]], classes: int
) -> str:
    """float32[rows, pairs] -> float32[rows, classes]

    Shares p of classes for which the sum of (r_ji p_i - r_ij p_j)^2 is least, which is p Q p. One
    class after the other is set so that it is less, until all of Qp are nearly p Q p, at most 100
    times: this is the second method of Wu, Lin and Weng (2004), as libsvm and ONNX Runtime have it.
    Rows that are done stay as they are.
    """
    if classes > _MOST_COUPLED:
        raise UnsupportedOp(
            f"{node.op} {node.name!r}: probabilities of {classes} classes are not compiled, but of "
            f"at most {_MOST_COUPLED}; export the model without probabilities"
        )
    q = _pair_matrix(c, shares, pairs, classes)
    one, two = c.constant(np.float32(1)), c.constant(np.float32(2))
    rows = [c("Squeeze", _cut(c, q, 1, i), c.integers(1)) for i in range(classes)]
    own = [_cut(c, row, 1, i) for i, row in enumerate(rows)]
    start = c.extents(c.extent(shares, 0), classes)
    begin = c("Expand", c.constant(np.float32(1 / classes)), start)
    loop = Loop(c, c.constant(np.int64(_ROUNDS)), [begin])
    p = before = loop.states[0]
    product = c("ReduceSum", c("Mul", q, c("Unsqueeze", p, c.integers(1))), c.integers(2),
                keepdims=0)  # fmt: skip
    total = c("ReduceSum", c("Mul", p, product), c.integers(1), keepdims=1)
    error = c("ReduceMax", c("Abs", c("Sub", product, total)), c.integers(1), keepdims=1)
    done = c("Less", error, c.constant(np.float32(0.005 / classes)))
    for i, (row, diagonal) in enumerate(zip(rows, own, strict=True)):
        mine = _cut(c, product, 1, i)
        step = c("Div", c("Sub", total, mine), diagonal)
        scale = c("Add", step, one)
        more = c("Add", c("Mul", step, diagonal), c("Mul", mine, two))
        total = c("Add", total, c("Mul", step, more))
        total = c("Div", c("Div", total, scale), scale)
        product = c("Div", c("Add", product, c("Mul", row, step)), scale)
        here = c.constant(np.arange(classes) == i)
        p = c("Div", c("Where", here, c("Add", p, step), p), scale)
    ((shares_of_classes,), _) = loop.finish([c("Where", done, before, p)], [], [])
    return shares_of_classes


def _pair_matrix(c: Composer, shares: str, pairs: Sequence[tuple[int, int]], classes: int) -> str:
    """float32[rows, pairs] of r_ij -> Q[rows, i, j]: -r_ji r_ij; on its diagonal sums of r_ji^2"""
    number = np.zeros((classes, classes), np.int64)
    for k, (i, j) in enumerate(pairs):
        number[i, j] = number[j, i] = k
    below = np.tri(classes, k=-1, dtype=bool)
    each = c("Gather", shares, c.constant(number), axis=1)  # [rows, i, j]
    r = c("Where", c.constant(below), c("Sub", c.constant(np.float32(1)), each), each)
    other = c("Where", c.constant(below.T), c("Sub", c.constant(np.float32(1)), each), each)
    diagonal = np.eye(classes, dtype=bool)
    square = c("Where", c.constant(diagonal), c.constant(np.float32(0)), c("Mul", other, other))
    total = c("ReduceSum", square, c.integers(2), keepdims=1)
    return c("Where", c.constant(diagonal), total, c("Neg", c("Mul", other, r)))


def _cut(c: Composer, x: str, axis: int, k: int) -> str:
    """The element k along an axis, which stays with an extent of 1."""
    return c("Slice", x, c.integers(k), c.integers(k + 1), c.integers(axis))
