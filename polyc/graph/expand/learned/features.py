"""Operators of ai.onnx.ml on features: scaled, normalised, filled in, encoded, joined, chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from polyc.budget import require_table
from polyc.graph.compose import Composer
from polyc.graph.expand.learned.scores import as_floats
from polyc.graph.expand.learned.tables import as_rows, refuse, require_length
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed

Operands = Sequence[Tensor | None]


def expand_binarizer(node: Node, inputs: Operands) -> Body:
    """1 where x is more than the threshold, else 0, in the type of x."""
    c, dtype = Composer(), given(inputs[0]).dtype
    above = c("Greater", node.inputs[0], c.constant(node.get("threshold", 0.0), dtype))
    code = int(helper.np_dtype_to_tensor_dtype(dtype))
    return c.body(node.inputs, (c("Cast", above, to=code),))


def expand_feature_extractor(node: Node, inputs: Operands) -> Body:
    """x[…, n], i -> x[…, i]: of a vector, one row."""
    c, x = Composer(), given(inputs[0])
    at = c("Reshape", node.inputs[1], c.integers(-1))
    data = c("Unsqueeze", node.inputs[0], c.integers(0)) if x.rank == 1 else node.inputs[0]
    return c.body(node.inputs, (c("Gather", data, at, axis=-1),))


def expand_scaler(node: Node, inputs: Operands) -> Body:
    """float32: (x - offset) * scale, of each feature or all alike; doubles are scaled as such."""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 1, 2)
    scale, offset = node.get("scale", ()), node.get("offset", ())
    require_length(node, "offset", len(offset), len(scale))
    wanted = np.float64 if x.dtype == np.float64 else np.float32
    name = as_floats(c, node.inputs[0], x.dtype, wanted)
    shift, factor = (_for_features(c, node, x, "scale", v, wanted) for v in (offset, scale))
    scaled = c("Mul", c("Sub", name, shift), factor)
    return c.body(node.inputs, (as_floats(c, scaled, np.dtype(wanted)),))


def expand_imputer(node: Node, inputs: Operands) -> Body:
    """x, with what is the replaced value, which may be NaN, made that of the feature or of all."""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 1, 2)
    floats = x.dtype.kind == "f"
    name, kind = ("imputed_value_floats", "float") if floats else ("imputed_value_int64s", "int64")
    replaced = node.get(f"replaced_value_{kind}", 0)
    if not node.get(name):
        raise refuse(node, f"X is {x.dtype}, and {name} is not there")
    value = _for_features(c, node, x, name, node.attributes[name], x.dtype)
    if floats and np.isnan(replaced):
        found = c("IsNaN", node.inputs[0])
    else:
        found = c("Equal", node.inputs[0], c.constant(_as(node, replaced, x.dtype)))
    return c.body(node.inputs, (c("Where", found, value, node.inputs[0]),))


def _for_features(
    c: Composer, node: Node, x: Tensor, name: str, values: Sequence[Any], dtype: Any
) -> str:
    """Numbers for each feature, or one for all."""
    features = x.extents[-1]
    if not values:
        raise refuse(node, f"{name} is empty")
    if len(values) > 1:
        way_out = f"{name} has a number for each feature, or one for all: correct it"
        require(features == len(values), "features of X", len(values), features, way_out)
    return c.constant(_as(node, values, dtype))


def _as(node: Node, values: Any, dtype: Any) -> np.ndarray:
    """Numbers of an attribute in a type, if they are within its range."""
    array = np.asarray(values)
    if np.dtype(dtype).kind == "i" and array.size:
        limits = np.iinfo(dtype)
        if not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
            raise refuse(node, f"a value is none of {np.dtype(dtype)}")
    return array.astype(dtype)


def expand_normalizer(node: Node, inputs: Operands) -> Body:
    """float32, as x: each row divided by its largest element, its absolute or its squares' sum.

    A row of zeros stays. ONNX Runtime divides by the largest element as it is, by no absolute one.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 1, 2)
    name, last = as_floats(c, node.inputs[0], x.dtype), c.integers(-1)
    zero, one = (c.constant(np.float32(k)) for k in (0, 1))
    norm, parts = node.get("norm", "MAX"), name
    if norm == "MAX":
        least = c.constant(np.finfo(np.float32).min)
        size = c("ReduceMax", c("Where", c("IsNaN", name), least, name), last, keepdims=1)
    elif norm == "L1":
        size = c("ReduceSum", c("Abs", name), last, keepdims=1)
    else:
        parts = c("Mul", name, name)
        size = c("ReduceSum", parts, last, keepdims=1)
    empty = c("Equal", size, zero)
    shares = c("Div", parts, c("Where", empty, one, size))
    if norm == "L2":
        root = c("Sqrt", shares)
        shares = c("Where", c("Less", name, zero), c("Neg", root), root)
        shares = c("Where", empty, name, shares)
    return c.body(node.inputs, (shares,))


def expand_feature_vectorizer(node: Node, inputs: Operands) -> Body:
    """x[rows, a], y[rows, b], … -> float32[rows, all]: each cut, or filled up with zeros"""
    c, lengths = Composer(), node.get("inputdimensions", ())
    require_length(node, "inputdimensions", len(lengths), len(inputs))
    parts = []
    for length, name, x in zip(lengths, node.inputs, map(given, inputs), strict=True):
        rows, extent = as_rows(c, name, x)
        features = fixed(extent, "the number of features")
        part = as_floats(c, rows, x.dtype)
        if features > length:
            part = c("Slice", part, c.integers(0), c.integers(length), c.integers(1))
        elif features < length:
            part = c("Pad", part, c.integers(0, 0, 0, length - features))
        parts.append(part)
    return c.body(node.inputs, (c("Concat", *parts, axis=1),))


def expand_one_hot_encoder(node: Node, inputs: Operands) -> Body:
    """x[…] -> float32[…, categories]: 1 where x, as an integer, is the category"""
    c, x = Composer(), given(inputs[0])
    categories = np.asarray(node.get("cats_int64s", ()), np.int64)
    if not len(categories):
        raise refuse(node, f"X is {x.dtype}, and it has no cats_int64s")
    name = node.inputs[0]
    name = name if x.dtype == np.int64 else c("Cast", name, to=TensorProto.INT64)
    # Of equal categories ONNX Runtime knows the last one.
    known = np.array([v not in categories[k + 1 :] for k, v in enumerate(categories.tolist())])
    same = c("Equal", c("Unsqueeze", name, c.integers(-1)), c.constant(categories))
    if not known.all():
        same = c("And", same, c.constant(known))
    if not node.get("zeros", 1):
        return c.body(node.inputs, (_require_category(c, same, len(categories)),))
    return c.body(node.inputs, (c("Cast", same, to=TensorProto.FLOAT),))


def _require_category(c: Composer, same: str, count: int) -> str:
    """bool[…, categories] -> float32[…, categories]; an index beyond them where none is the same"""
    require_table(count * count, "the categories of a OneHotEncoder")
    number = c("Cast", same, to=TensorProto.INT64)
    found = c("ReduceMax", number, c.integers(-1), keepdims=0)
    missing = c("Equal", found, c.constant(np.int64(0)))
    at = c("ArgMax", number, axis=-1, keepdims=0)
    at = c("Where", missing, c.constant(np.int64(count)), at)
    return c("Gather", c.constant(np.eye(count), np.float32), at)
