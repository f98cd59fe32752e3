"""What classifiers and regressors do with their scores: transforms, a second score, labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from polyc.graph.compose import Composer
from polyc.graph.naming import ML_DOMAIN

_NEARLY_ZERO = 1e-7
"""What SOFTMAX_ZERO takes for zero."""


def transform(c: Composer, kind: str, scores: str) -> str:
    """scores[rows, two or more]: float32, as the attribute post_transform says."""
    if kind == "LOGISTIC":
        return c("Sigmoid", scores)
    if kind == "SOFTMAX":
        return c("Softmax", scores, axis=-1)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(c, scores)
    return transform_one(c, kind, scores)


def transform_one(c: Composer, kind: str, score: str) -> str:
    """Of a single score ONNX Runtime changes nothing but by PROBIT."""
    return _probit(c, score) if kind == "PROBIT" else score


def add_opposite(c: Composer, kind: str, score: str, of_one: bool) -> str:
    """score[rows, 1] of the second of two classes  ->  the scores of both

    of_one: the score is a share of 1, and so is the other one.
    """
    if kind == "PROBIT":
        score, of_one = _probit(c, score), True  # ONNX Runtime leaves the second one unwritten
    if of_one and kind != "LOGISTIC":
        opposite = c("Sub", c.constant(np.float32(1)), score)
        return c("Concat", opposite, score, axis=1)
    both = c("Concat", c("Neg", score), score, axis=1)
    return c("Sigmoid", both) if kind == "LOGISTIC" else both


def name_classes(c: Composer, labels: Sequence[int] | Sequence[str], number: str) -> str:
    """number[rows] of a class, int64  ->  its label: the last step alone makes text"""
    if isinstance(labels[0], str):
        keys = list(range(len(labels)))
        encoder = {"keys_int64s": keys, "values_strings": list(labels)}
        return c("LabelEncoder", number, domain=ML_DOMAIN, **encoder)
    if list(labels) == list(range(len(labels))):
        return number
    return c("Gather", c.constant(labels, np.int64), number)


def is_positive(c: Composer, score: str, threshold: float, dtype: np.dtype) -> str:
    """score[rows, 1]  ->  int64[rows]: 1 where it is more than the threshold, else 0"""
    above = c("Greater", score, c.constant(threshold, dtype))
    return c("Squeeze", c("Cast", above, to=TensorProto.INT64), c.integers(1))


def find_largest(c: Composer, scores: str) -> str:
    """scores[rows, classes]  ->  int64[rows]: the first class of the largest score"""
    return c("ArgMax", scores, axis=1, keepdims=0)


def as_floats(c: Composer, x: str, dtype: np.dtype, wanted: type = np.float32) -> str:
    """x in another type of floats, if it has another one"""
    if dtype == wanted:
        return x
    code = TensorProto.FLOAT if wanted is np.float32 else TensorProto.DOUBLE
    return c("Cast", x, to=code)


def _softmax_zero(c: Composer, scores: str) -> str:
    """A softmax over scores other than zero.

    Zeros are no part of the sum, and stay: ONNX Runtime multiplies them by a factor of their own.
    """
    most = c("ReduceMax", scores, c.integers(1), keepdims=1)
    zero = c("LessOrEqual", c("Abs", scores), c.constant(np.float32(_NEARLY_ZERO)))
    parts = c("Exp", c("Sub", scores, most))
    total = c("Where", zero, c.constant(np.float32(0)), parts)
    total = c("ReduceSum", total, c.integers(1), keepdims=1)
    kept = c("Mul", scores, c("Exp", c("Neg", most)))
    return c("Div", c("Where", zero, kept, parts), total)


def _probit(c: Composer, share: str) -> str:
    """The quantile of the normal distribution, by the formula that ONNX Runtime has for it.

    sqrt(2) erfinv(2p - 1), and erfinv(y) is sign(y) sqrt(sqrt(v^2 - l/a) - v) with l = ln(1 - y^2),
    a = 0.147 and v = 2/(pi a) + l/2.
    """

    def number(value: float) -> str:
        return c.constant(np.float32(value))

    y = c("Sub", c("Mul", share, number(2)), number(1))
    inside = c("Mul", c("Sub", number(1), y), c("Add", number(1), y))
    logarithm = c("Log", inside)
    v = c("Add", c("Mul", logarithm, number(0.5)), number(2 / (3.14159 * 0.147)))
    under = c("Sub", c("Mul", v, v), c("Mul", logarithm, number(1 / 0.147)))
    size = c("Sqrt", c("Sub", c("Sqrt", under), v))
    negative = c("Less", y, number(0))
    signed = c("Where", negative, c("Neg", size), size)
    return c("Mul", signed, number(1.41421356))
