"""Tensors that come from attributes, sizes or ranges instead of data."""

from __future__ import annotations

import math

import numpy as np

from polyc.budget import require_table
from polyc.errors import InvalidModel, UnsupportedOp
from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import (
    constant_scalar,
    given,
    known_extents,
    known_scalar,
    require,
    require_rank,
)
from polyc.graph.shapes.ratios import Ratio, as_ratio
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.graph.shapes.signature import element_type
from polyc.types.sizes import Size, greatest


def find_constant(node: Node) -> np.ndarray:
    """The value of a Constant: its attribute `value`, or a number or list as float32, int64, text.

    Raises InvalidModel unless exactly one attribute says it, UnsupportedOp for a sparse one.
    """
    title = f"Constant {node.name!r}"
    if len(node.attributes) != 1:
        names = ", ".join(sorted(node.attributes)) or "none"
        raise InvalidModel(f"{title}: expected exactly one value attribute, got {names}; keep one")
    ((name, value),) = node.attributes.items()
    if name == "sparse_value":
        raise UnsupportedOp(f"{title}: sparse_value is not supported; store the value dense")
    if name == "value":
        return np.asarray(value)
    kinds = {"float": np.float32, "int": np.int64, "string": object}
    return np.array(value, dtype=kinds[name.removeprefix("value_").removesuffix("s")])


def find_fill(node: Node) -> np.ndarray:
    """What a ConstantOfShape repeats: the only element of `value`, as a scalar; default 0.0f."""
    value = np.asarray(node.get("value", np.zeros(1, np.float32)))
    require(value.size == 1, "number of elements of value", 1, value.size, "give one element")
    return value.reshape(())


def resolve_shape_span(rank: int, start: int, end: int | None) -> range:
    """The dimensions that a Shape reads: rank 4, start -3, end 9 -> range(1, 4)."""
    return range(*slice(start, end).indices(rank))


@shape_rule("Constant", dtype=lambda node, inputs: find_constant(node).dtype)
def infer_constant(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """the value's shape"""
    return (find_constant(node).shape,)


@shape_rule("ConstantOfShape", dtype=lambda node, inputs: find_fill(node).dtype)
def infer_constant_of_shape(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """shape (2, 3) -> (2, 3)"""
    shape = known_extents(given(inputs[0]), "input")
    sizes = all(d >= 0 for d in shape)
    require(sizes, "the shape to fill", "no negative size", shape, "correct the shape")
    return (shape,)


@shape_rule("Range")
def infer_range(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """start 1, limit 8, delta 3 -> (3,): max(ceil((limit - start) / delta), 0) elements"""
    roles = zip(inputs, ("start", "limit", "delta"), strict=True)
    start, limit, delta = (known_scalar(given(t), role) for t, role in roles)
    require(delta != 0, "delta", "not 0", delta, "use a positive or negative step")
    if isinstance(start, int | Size):
        return ((greatest(-((start - limit) // delta), 0),),)
    if any(isinstance(number, Ratio) for number in (start, limit, delta)):
        first, last, step = map(as_ratio, (start, limit, delta))
        return ((greatest(((last - first) / step).ceil(), 0),),)
    count = (limit - start) / delta
    require(math.isfinite(count), "(limit - start) / delta", "finite", count, "correct the inputs")
    return ((max(math.ceil(count), 0),),)


@shape_rule("Shape")
def infer_shape(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """rank 4, start 1 -> (3,)"""
    span = resolve_shape_span(given(inputs[0]).rank, node.get("start", 0), node.get("end"))
    return ((len(span),),)


@shape_rule("Size")
def infer_size(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """a scalar"""
    return ((),)


def _eye_type(node: Node, inputs: Inputs) -> np.dtype:
    code = node.get("dtype")
    return given(inputs[0]).dtype if code is None else element_type(int(code))


@shape_rule("EyeLike", dtype=_eye_type)
def infer_eye_like(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(m, n) -> (m, n)"""
    require_rank(given(inputs[0]), "input", 2, 2)
    return (given(inputs[0]).shape,)


def _mel_type(node: Node, inputs: Inputs) -> np.dtype:
    return element_type(int(node.get("output_datatype", 1)))


@shape_rule("MelWeightMatrix", dtype=_mel_type)
def infer_mel_weight_matrix(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """num_mel_bins 8, dft_length 16 -> (9, 8); the value is known, since all inputs must be"""
    roles = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge", "upper_edge")
    bins, length, *_ = (constant_scalar(given(t), r) for t, r in zip(inputs, roles, strict=True))
    require(bins >= 1 and length >= 1, "sizes", "at least 1", (bins, length), "correct the inputs")
    require_table((length // 2 + 1) * bins, f"{node.op} {node.name!r}")
    return ((length // 2 + 1, bins),)
