"""Det: elimination with the largest element of the column in front, step by step.

    p  =  argmax |A[:, 0]|        det A  =  ± A[p, 0] · det (A' - A'[:, 0] A[p] / A[p, 0])

where A' has the first row in the place of row p, and the sign changes if they are two. All steps
are alike: the smaller matrix of the next one stands in the upper left corner of one as large as
before, and what is behind it is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed_all
from polyc.graph.steps import Loop

FEW_ROWS = 4
"""Rows up to which the steps are written out: so little that one kernel is faster than a loop."""


def expand_det(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """x[…, n, n] -> […]"""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", least=2)
    n, columns = fixed_all(x.shape[-2:], "the size of a matrix")
    require(n == columns, "last dimensions of X", "a square", (n, columns), "give square matrices")
    lead = c("Shape", node.inputs[0], start=0, end=-2)
    batch = c("ReduceProd", lead, c.integers(0), keepdims=1)
    whole = c("Reshape", node.inputs[0], c.extents(batch, n, n))
    result = c("Expand", c.constant(np.ones(()), x.dtype), batch)
    if n <= FEW_ROWS:
        for k in range(n):
            step = c.constant(np.int64(k))
            whole, result = _eliminate(c, whole, result, step, n, x.dtype)
    else:
        loop = Loop(c, c.constant(np.int64(n)), [whole, result])
        matrix, product = loop.states
        states = _eliminate(c, matrix, product, loop.step, n, x.dtype)
        (_, result), _ = loop.finish(states, (), ())
    return c.body(node.inputs, (c("Reshape", result, lead),))


def _eliminate(
    c: Composer, whole: str, result: str, step: str, n: int, dtype: np.dtype
) -> tuple[str, str]:
    """(the matrix without its first column and the pivot's row, the product of pivots with it).

    Both matrices are [batch, n, n], of which the first has n - step rows and columns that count.
    """
    zero, one, end = c.constant(np.zeros(()), dtype), c.integers(1), c.integers(n)
    column = c("Gather", whole, c.constant(np.int64(0)), axis=2)  # [batch, n]
    counts = c("Less", c.constant(np.arange(n)), c("Sub", c.constant(np.int64(n)), step))
    size = c("Where", counts, c("Abs", column), c.constant(-np.ones(()), dtype))
    place = c("ArgMax", size, axis=1, keepdims=1)
    pivot = c("GatherElements", column, place, axis=1)  # [batch, 1]
    first = c("Equal", place, c.constant(np.int64(0)))
    signed = c("Where", first, pivot, c("Neg", pivot))
    result = c("Mul", result, c("Squeeze", signed, one))
    if n == 1:
        return whole, result
    upper = c("Gather", whole, c.integers(0), axis=1)  # [batch, 1, n]
    chosen = c("Unsqueeze", c("GatherND", whole, place, batch_dims=1), one)
    rest = c("Slice", whole, one, end, one)
    is_chosen = c("Equal", c.constant(np.arange(1, n)), place)
    rest = c("Where", c("Unsqueeze", is_chosen, c.integers(2)), upper, rest)
    left = c("Slice", rest, c.integers(0), one, c.integers(2))
    right, above = (c("Slice", part, one, end, c.integers(2)) for part in (rest, chosen))
    divisor = c("Unsqueeze", pivot, c.integers(2))
    factor = c("Where", c("Equal", divisor, zero), zero, c("Div", left, divisor))
    smaller = c("Sub", right, c("Mul", factor, above))  # [batch, n - 1, n - 1]
    return c("Pad", smaller, c.integers(0, 0, 0, 0, 1, 1), zero), result
