"""What expressions begin with: graph inputs, constants, and arrays made from a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.graph.builder import Operand, Value, apply, as_integers, constant_value, input_value


def input(name: str, shape: Sequence[int | str], dtype: Any = "float32") -> Value:
    """A graph input: ("x", ("N", 8)) -> x: float32[N, 8]; a string is a size known at run time.

    Or a sum of such sizes: "past + n".
    """
    return input_value(name, shape, dtype)


def constant(array: Any, name: str | None = None) -> Value:
    """A constant with the element type of `array`; without a name it gets one in the graph."""
    return constant_value(array, name or "")


def full(shape: Sequence[int] | Value, value: float, dtype: Any = "float32") -> Value:
    """An array whose elements are all `value`."""
    return apply("ConstantOfShape", [as_integers(shape)], value=np.array([value], dtype))


def arange(start: float, limit: float, delta: float = 1, dtype: Any = "int64") -> Value:
    """[start, start + delta, …], up to but without `limit`."""
    return apply("Range", [constant_value(v, dtype=dtype) for v in (start, limit, delta)])


def shape_of(x: Operand, start: int = 0, end: int | None = None) -> Value:
    """x[2, 3, 4] -> [2, 3, 4] of int64, or the part of it from `start` up to `end`."""
    return apply("Shape", [x], start=start, end=end)


def size_of(x: Operand) -> Value:
    """x[2, 3] -> 6, a scalar of int64."""
    return apply("Size", [x])
