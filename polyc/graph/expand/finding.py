"""Operators whose results have sizes that are data: NonZero, Compress, Unique.

What they find is as long as it can be, and counted; then a Trim cuts the rest off, when the model
runs (`graph/run_time.py`). Where the p-th true element of a row is, is asked for each p:

    r[i]      =  number of true elements up to i            (a running total)
    place[p]  =  the least i with r[i] > p                  (a binary search, log2(n) gathers)

so that each element is written once, in parallel, and nothing is left to the order of writes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import constant_int, given, require, require_rank
from polyc.graph.shapes.dims import fixed, fixed_all, normalize_axis

Operands = Sequence[Tensor | None]


def find_true(c: Composer, flags: str, extents: tuple[int, int], wanted: int) -> tuple[str, str]:
    """flags[rows, n] -> places[rows, wanted], counts[rows]; extents are (rows, n).

    Places beyond a row's count are those of nothing, from 0 to n - 1. n and wanted are positive.
    """
    totals = c("CumSum", c("Cast", flags, to=TensorProto.INT64), c.constant(np.int64(1)))
    counts = c("Gather", totals, c.constant(np.int64(extents[1] - 1)), axis=1)
    return c("Places", totals, domain=INTERNAL, wanted=wanted), counts


def trim(c: Composer, x: str, count: str, axis: int = 0) -> str:
    """The first `count` slices of x along an axis."""
    return c("Trim", x, count, domain=INTERNAL, axis=axis)


def expand_trim(node: Node, inputs: Operands) -> Body:
    """A Trim whose count is known: a Slice."""
    c = Composer()
    count = constant_int(given(inputs[1]), "count")
    axis = c.integers(node.get("axis", 0))
    return c.body(
        node.inputs, (c("Slice", node.inputs[0], c.integers(0), c.integers(count), axis),)
    )


def expand_non_zero(node: Node, inputs: Operands) -> Body:
    """x[a, b] -> int64[2, count]: indices of what is not 0, in order; of a scalar [0, count]."""
    c, x = Composer(), given(inputs[0])
    shape = fixed_all(x.shape, "a dimension of X")
    size = math.prod(shape)
    if size == 0:
        return c.body(node.inputs, (c.constant(np.zeros((len(shape), 0)), np.int64),))
    flags = c("Reshape", _is_true(c, node.inputs[0], x.dtype), c.integers(1, size))
    places, counts = find_true(c, flags, (1, size), size)
    if not shape:
        nothing = c.constant(np.zeros((0, 1)), np.int64)
        return c.body(node.inputs, (trim(c, nothing, counts, 1),))
    steps = np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))])[:, None]
    divided = c("Div", places, c.constant(steps, np.int64))
    indices = c("Mod", divided, c.constant(np.array(shape)[:, None], np.int64))
    return c.body(node.inputs, (trim(c, indices, counts, 1),))


def _is_true(c: Composer, x: str, dtype: np.dtype) -> str:
    if dtype == np.bool_:
        return x
    return c("Not", c("Equal", x, c.constant(np.zeros(()), dtype)))


def expand_compress(node: Node, inputs: Operands) -> Body:
    """The slices of x along an axis, by default the elements, whose condition is true."""
    c, x, condition = Composer(), given(inputs[0]), given(inputs[1])
    require_rank(condition, "condition", 1, 1)
    data, axis, extents = node.inputs[0], node.get("axis"), fixed_all(x.shape, "a dimension")
    if axis is None:
        data, axis, extents = c("Reshape", data, c.integers(-1)), 0, (math.prod(extents),)
    axis = normalize_axis(axis, len(extents))
    length = fixed(condition.shape[0], "the length of condition")
    fits, way_out = length <= extents[axis], "shorten it"
    require(fits, "length of condition", f"at most {extents[axis]}", length, way_out)
    if length == 0:
        nothing = c.constant(np.zeros(0), np.int64)
        return c.body(node.inputs, (c("Gather", data, nothing, axis=axis),))
    flags = c("Unsqueeze", node.inputs[1], c.integers(0))
    places, counts = find_true(c, flags, (1, length), length)
    kept = c("Gather", data, c("Reshape", places, c.integers(-1)), axis=axis)
    return c.body(node.inputs, (trim(c, kept, counts, axis),))


def expand_unique(node: Node, inputs: Operands) -> Body:
    """Values that differ, where each is first, which one each element is, and how often it is.

    With an axis: slices that differ. Each is compared with each, as TopK does it; equal ones count
    for the first of them. NaNs are equal, and larger than all numbers.
    """
    c, x = Composer(), given(inputs[0])
    extents, axis = fixed_all(x.shape, "a dimension of X"), node.get("axis")
    data = node.inputs[0]
    if axis is None:
        data, axis, extents = c("Reshape", data, c.integers(-1)), 0, (math.prod(extents),)
    axis = normalize_axis(axis, len(extents))
    n = extents[axis]
    if n == 0:
        none = c.constant(np.zeros(0), np.int64)
        return c.body(node.inputs, (data, none, none, none))
    order = (axis, *(k for k in range(len(extents)) if k != axis))
    turned = c("Transpose", data, perm=order) if axis else data
    width = math.prod(extents[k] for k in order[1:])
    rows = c("Reshape", turned, c.integers(n, width))
    if width == 0:  # slices without elements are equal, as are those of one zero
        rows, width = c.constant(np.zeros((n, 1)), x.dtype), 1
    if x.dtype == np.bool_:
        rows = c("Cast", rows, to=TensorProto.UINT8)
    same, less = _compare_rows(c, rows, n, width, x.dtype.kind == "f")
    here = c.constant(np.arange(n), np.int64)
    column = c.constant(np.arange(n)[:, None], np.int64)
    end, none = c.constant(np.int64(n)), c.constant(np.int64(0))
    leaders = c("ReduceMin", c("Where", same, here, end), c.integers(1), keepdims=0)
    is_first = c("Equal", leaders, here)
    if node.get("sorted", 1):
        ahead = c("And", less, is_first)
    else:
        ahead = c("And", c("Less", here, c("Unsqueeze", leaders, c.integers(1))), is_first)
    inverse = _count(c, ahead, 1)
    mine = c("Equal", inverse, column)  # [group, element]
    firsts = c("Where", c("And", mine, is_first), here, none)
    places = c("ReduceMax", firsts, c.integers(1), keepdims=0)
    total = _count(c, is_first, 0)
    values = c("Gather", data, places, axis=axis)
    results = (trim(c, values, total, axis), trim(c, places, total), inverse,
               trim(c, _count(c, mine, 1), total))  # fmt: skip
    return c.body(node.inputs, results)


def _count(c: Composer, flags: str, axis: int) -> str:
    numbers = c("Cast", flags, to=TensorProto.INT64)
    return c("ReduceSum", numbers, c.integers(axis), keepdims=0)


def _compare_rows(c: Composer, rows: str, n: int, width: int, is_float: bool) -> tuple[str, str]:
    """same[i, j]: row i equals row j; less[i, j]: row j comes before row i, by the first element
    in which they differ."""
    mine, other = (c("Unsqueeze", rows, c.integers(axis)) for axis in (1, 0))
    equal = c("Equal", mine, other)
    if is_float:
        both = c("And", c("IsNaN", mine), c("IsNaN", other))
        equal = c("Or", equal, both)
    if width == 1:
        same = c("Reshape", equal, c.integers(n, n))
        at = c("Reshape", rows, c.integers(n, 1))
        left, right = at, c("Reshape", rows, c.integers(1, n))
    else:
        along, end = c.constant(np.arange(width), np.int64), c.constant(np.int64(width))
        apart = c("ReduceMin", c("Where", equal, end, along), c.integers(2), keepdims=0)
        same = c("Equal", apart, end)
        # The matrix of first differences is symmetric, so that the other row's is the transpose.
        where = c("Min", apart, c.constant(np.int64(max(width - 1, 0))))
        left = c("GatherElements", rows, where, axis=1)
        right = c("Transpose", left, perm=(1, 0))
    less = c("Less", right, left)
    if is_float:
        less = c("Or", less, c("And", c("IsNaN", left), c("Not", c("IsNaN", right))))
    return same, less
