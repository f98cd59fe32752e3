"""Det: elimination with the largest element of the column in front, step by step.

    p  =  argmax |A[:, 0]|        det A  =  ± A[p, 0] · det (A' - A'[:, 0] A[p] / A[p, 0])

where A' has the first row in the place of row p, and the sign changes if they are two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed_all

MOST_ROWS = 256
"""Each row is a score of nodes."""


def expand_det(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """x[…, n, n] -> […]"""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", least=2)
    *lead, n, columns = fixed_all(x.shape, "a dimension of X")
    require(n == columns, "last dimensions of X", "a square", (n, columns), "give square matrices")
    require(n <= MOST_ROWS, "rows of X", f"at most {MOST_ROWS}", n, "use smaller matrices")
    whole = c("Reshape", node.inputs[0], c.integers(int(np.prod(lead)), n, n))
    zero, one = c.constant(np.zeros(()), x.dtype), c.constant(np.ones(()), x.dtype)
    result = c("Expand", one, c.integers(int(np.prod(lead))))
    for size in range(n, 0, -1):
        column = c("Gather", whole, c.constant(np.int64(0)), axis=2)  # [batch, size]
        place = c("ArgMax", c("Abs", column), axis=1, keepdims=1)
        pivot = c("GatherElements", column, place, axis=1)  # [batch, 1]
        first = c("Equal", place, c.constant(np.int64(0)))
        signed = c("Where", first, pivot, c("Neg", pivot))
        result = c("Mul", result, c("Squeeze", signed, c.integers(1)))
        if size > 1:
            whole = _eliminate(c, whole, place, pivot, zero, size)
    return c.body(node.inputs, (c("Reshape", result, c.integers(*lead)),))


def _eliminate(c: Composer, whole: str, place: str, pivot: str, zero: str, size: int) -> str:
    """The matrix without its first column and the pivot's row: [batch, size - 1, size - 1]"""
    one, end = c.integers(1), c.integers(size)
    upper = c("Gather", whole, c.integers(0), axis=1)  # [batch, 1, size]
    chosen = c("Unsqueeze", c("GatherND", whole, place, batch_dims=1), one)
    rest = c("Slice", whole, one, end, one)
    is_chosen = c("Equal", c.constant(np.arange(1, size), np.int64), place)
    rest = c("Where", c("Unsqueeze", is_chosen, c.integers(2)), upper, rest)
    left = c("Slice", rest, c.integers(0), one, c.integers(2))
    right, above = (c("Slice", part, one, end, c.integers(2)) for part in (rest, chosen))
    divisor = c("Unsqueeze", pivot, c.integers(2))
    factor = c("Where", c("Equal", divisor, zero), zero, c("Div", left, divisor))
    return c("Sub", right, c("Mul", factor, above))
