"""Operators whose results have sizes that are data: NonZero, Compress, Unique.

What they find is as long as it can be, and counted; then a Trim cuts the rest off. The number is a
size that the call finds (`types/found.py`), or else cuts when it is there (`graph/run_time.py`).
Where the p-th true element of a row is, is asked for each p:

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
from polyc.graph.shapes import infer_node
from polyc.graph.shapes.checks import (
    are_equal,
    given,
    require_at_least,
    require_at_most,
    require_rank,
)
from polyc.graph.shapes.dims import normalize_axis
from polyc.types.sizes import Extent, bounds

Operands = Sequence[Tensor | None]


def find_true(c: Composer, flags: str, may_be_empty: bool, wanted: str = "") -> tuple[str, str]:
    """flags[rows, n] -> places[rows, wanted], counts[rows]; by default what the only row has.

    Places beyond a row's count are those of nothing, from 0 to n - 1. n is no plain 0, but may be
    a size that is.
    """
    totals, counts = _count_true(c, flags, may_be_empty)
    wanted = wanted or c("Found", counts, c.extent(flags, 1), domain=INTERNAL)
    return c("Places", totals, wanted, domain=INTERNAL), counts


def _count_true(c: Composer, flags: str, may_be_empty: bool) -> tuple[str, str]:
    """flags[rows, n] -> how many are true up to each, and in all: [rows, n], [rows]."""
    numbers = c("Cast", flags, to=TensorProto.INT64)
    totals = c("CumSum", numbers, c.constant(np.int64(1)))
    if not may_be_empty:
        return totals, c("Gather", totals, c.constant(np.int64(-1)), axis=1)
    return totals, c("ReduceSum", numbers, c.integers(1), keepdims=0)


def expand_count(node: Node, inputs: Operands) -> Body:
    """How many of all booleans are true, as a size; counted as NonZero does: both are one size."""
    c, x = Composer(), given(inputs[0])
    found = c.integers(0)
    if x.size != 0:
        flags = c("Reshape", node.inputs[0], c.integers(1, -1))
        _, counts = _count_true(c, flags, bounds(x.size)[0] < 1)
        found = c("Found", counts, c.extent(flags, 1), domain=INTERNAL)
    ones = c.integers(*[1] * node.attributes["rank"])
    return c.body(node.inputs, (c("Reshape", found, ones),))


def expand_computed(node: Node, inputs: Operands) -> Body:
    """Numbers that become whole ones, and each of them a size."""
    c, (x,), most = Composer(), node.inputs, node.attributes["most"]
    whole = c("Reshape", c("Cast", x, to=TensorProto.INT64), c.integers(-1))
    sizes = [
        c("Found", c("Gather", whole, c.integers(k)), domain=INTERNAL, most=bound)
        for k, bound in enumerate(most)
    ]
    shape = c.integers(*given(inputs[0]).extents)
    listed = c("Cast", c("Concat", *sizes, axis=0), to=node.attributes["to"])
    return c.body(node.inputs, (c("Reshape", listed, shape),))


def trim(c: Composer, x: str, count: str, axis: int = 0) -> str:
    """The first `count` slices of x along an axis."""
    return c("Trim", x, count, domain=INTERNAL, axis=axis)


def expand_trim(node: Node, inputs: Operands) -> Body:
    """A Trim whose count is known, or a size that the call finds: a Slice."""
    c, (data, count), axis = Composer(), node.inputs, node.get("axis", 0)
    found = c("Found", count, c.extent(data, axis), domain=INTERNAL)
    return c.body(node.inputs, (c("Slice", data, c.integers(0), found, c.integers(axis)),))


def expand_scatter_true(node: Node, inputs: Operands) -> Body:
    """ScatterND at the places where a mask is true: each reads the update of its number."""
    c = Composer()
    x, places, updates, mask = (given(t) for t in inputs)
    plain = Node(node.name, "ScatterND", node.inputs[:3], node.outputs, node.attributes)
    infer_node(plain, (x, places, updates))
    covers = 0 < mask.rank <= x.rank and all(
        are_equal(n, m) for n, m in zip(x.shape, mask.shape, strict=False)
    )
    if places.is_constant or not covers or mask.size == 0:
        return c.body(node.inputs, (c("ScatterND", *plain.inputs, **plain.attributes),))
    is_true = _is_true(c, node.inputs[3], mask.dtype)
    flags = c("Reshape", is_true, c.integers(1, -1))
    totals, _ = _count_true(c, flags, bounds(mask.size)[0] < 1)
    numbers = c("Reshape", totals, c("Shape", node.inputs[3]))
    operands = (node.inputs[0], is_true, numbers, node.inputs[2])
    return c.body(node.inputs, (c("AssignTrue", *operands, domain=INTERNAL, **plain.attributes),))


def expand_non_zero(node: Node, inputs: Operands) -> Body:
    """x[a, b] -> int64[2, count]: indices of what is not 0, in order; of a scalar [0, count]."""
    c, x = Composer(), given(inputs[0])
    size, data = x.size, node.inputs[0]
    if size == 0:
        return c.body(node.inputs, (c.constant(np.zeros((x.rank, 0)), np.int64),))
    flags = c("Reshape", _is_true(c, data, x.dtype), c.integers(1, -1))
    places, counts = find_true(c, flags, bounds(size)[0] < 1)
    if not x.rank:
        nothing = c.constant(np.zeros((0, 1)), np.int64)
        return c.body(node.inputs, (trim(c, nothing, counts, 1),))
    if x.rank > 1:
        steps = [c.integers(1)]
        for axis in range(x.rank - 1, 0, -1):
            steps.append(c("Mul", steps[-1], c.extent(data, axis)))
        column = c.integers(1)
        divided = c("Div", places, c("Unsqueeze", c("Concat", *steps[::-1], axis=0), column))
        places = c("Mod", divided, c("Unsqueeze", c("Shape", data), column))
    return c.body(node.inputs, (trim(c, places, counts, 1),))


def _is_true(c: Composer, x: str, dtype: np.dtype) -> str:
    if dtype == np.bool_:
        return x
    return c("Not", c("Equal", x, c.constant(np.zeros(()), dtype)))


def expand_compress(node: Node, inputs: Operands) -> Body:
    """The slices of x along an axis, by default the elements, whose condition is true."""
    c, x, condition = Composer(), given(inputs[0]), given(inputs[1])
    require_rank(condition, "condition", 1, 1)
    data, axis, extents = node.inputs[0], node.get("axis"), x.shape
    if axis is None:
        data, axis, extents = c("Reshape", data, c.integers(-1)), 0, (x.size,)
    axis = normalize_axis(axis, len(extents))
    length = condition.shape[0]
    require_at_most(length, extents[axis], "length of condition", "shorten it")
    if length == 0:
        nothing = c.constant(np.zeros(0), np.int64)
        return c.body(node.inputs, (c("Gather", data, nothing, axis=axis),))
    flags = c("Reshape", node.inputs[1], c.integers(1, -1))  # as NonZero has it
    places, counts = find_true(c, flags, bounds(length)[0] < 1)
    kept = c("Gather", data, c("Reshape", places, c.integers(-1)), axis=axis)
    return c.body(node.inputs, (trim(c, kept, counts, axis),))


def expand_unique(node: Node, inputs: Operands) -> Body:
    """Values that differ, where each is first, which one each element is, and how often it is.

    With an axis: slices that differ. Each is compared with each, as TopK does it; equal ones count
    for the first of them. NaNs are equal, and larger than all numbers.
    """
    c, x = Composer(), given(inputs[0])
    data, axis, extents = node.inputs[0], node.get("axis"), x.shape
    if axis is None:
        data, axis, extents = c("Reshape", data, c.integers(-1)), 0, (x.size,)
    axis = normalize_axis(axis, len(extents))
    if extents[axis] == 0:
        none = c.constant(np.zeros(0), np.int64)
        return c.body(node.inputs, (data, none, none, none))
    order = (axis, *(k for k in range(len(extents)) if k != axis))
    turned = c("Transpose", data, perm=order) if axis else data
    width: Extent = math.prod(extents[k] for k in order[1:])
    n = c.extent(turned, 0)
    if width == 0:  # slices without elements are equal, as are those of one zero
        zero = c.constant(np.zeros((1, 1)), x.dtype)
        rows, width = c("Expand", zero, c.extents(n, 1)), 1
    else:
        require_at_least(width, 1, "elements of a slice", width, "let sizes begin at 1")
        rows = c("Reshape", turned, c.extents(n, -1))
    if x.dtype == np.bool_:
        rows = c("Cast", rows, to=TensorProto.UINT8)
    same, less = _compare_rows(c, rows, n, width == 1, x.dtype.kind == "f")
    here = c.count_up(n)
    column = c("Unsqueeze", here, c.integers(1))
    end, none = c("Squeeze", n, c.integers(0)), c.constant(np.int64(0))
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


def _compare_rows(
    c: Composer, rows: str, n: str, are_single: bool, is_float: bool
) -> tuple[str, str]:
    """same[i, j]: row i equals row j; less[i, j]: row j comes before row i, by the first element
    in which they differ. are_single: rows are of one element."""
    mine, other = (c("Unsqueeze", rows, c.integers(axis)) for axis in (1, 0))
    equal = c("Equal", mine, other)
    if is_float:
        both = c("And", c("IsNaN", mine), c("IsNaN", other))
        equal = c("Or", equal, both)
    if are_single:
        same = c("Squeeze", equal, c.integers(2))
        left, right = rows, c("Transpose", rows, perm=(1, 0))
    else:
        width = c.extent(rows, 1)
        along, end = c.count_up(width), c("Squeeze", width, c.integers(0))
        apart = c("ReduceMin", c("Where", equal, end, along), c.integers(2), keepdims=0)
        same = c("Equal", apart, end)
        # The matrix of first differences is symmetric, so that the other row's is the transpose.
        where = c("Min", apart, c("Sub", end, c.constant(np.int64(1))))
        left = c("GatherElements", rows, where, axis=1)
        right = c("Transpose", left, perm=(1, 0))
    less = c("Less", right, left)
    if is_float:
        less = c("Or", less, c("And", c("IsNaN", left), c("Not", c("IsNaN", right))))
    return same, less
