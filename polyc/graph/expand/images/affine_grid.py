"""AffineGrid: a product of an affine map of each batch with the places of an image's elements.

    grid[n, h, w]  =  theta[n] (x_w, y_h, 1)        x, y from -1 to 1

The standard's own definition in terms of other operators drops a batch of 1 in two dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import (
    given,
    known_extents,
    require,
    require_at_least,
    require_shape,
)


def expand_affine_grid(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """theta[n, r, r + 1], size[n, c, d1…dr] -> grid[n, d1…dr, r], for r = 2 or 3

    The last dimension of the image is the first of the coordinates.
    """
    c = Composer()
    theta, size = given(inputs[0]), known_extents(given(inputs[1]), "size")
    rank = len(size) - 2
    require(rank in (2, 3), "length of size", "4 or 5", len(size), "images have 2 or 3 dimensions")
    require_shape(theta, "theta", (size[0], rank, rank + 1))
    for extent in size:
        require_at_least(extent, 0, "size", size, "correct the size")
    aligned = bool(node.get("align_corners", 0))
    between = c.integers(*range(1, rank + 1))
    columns = [
        c("Unsqueeze", c("Gather", node.inputs[0], c.constant(np.int64(k)), axis=2), between)
        for k in range(rank + 1)
    ]  # [n, 1…, rank]
    grid = columns[rank]
    for k in range(rank):
        one, axis = c.integers(0), rank - 1 - k
        count = c("Slice", node.inputs[1], c.integers(2 + axis), c.integers(3 + axis), one)
        places = _places(c, count, aligned, theta.dtype)
        others = [d for d in range(rank + 2) if d != axis + 1]
        grid = c("Add", grid, c("Mul", c("Unsqueeze", places, c.integers(*others)), columns[k]))
    return c.body(node.inputs, (grid,))


def _places(c: Composer, extent: str, aligned: bool, dtype: np.dtype) -> str:
    """Where elements are between -1 and 1: from end to end, or half a step off."""
    one, to = c.integers(1), int(helper.np_dtype_to_tensor_dtype(dtype))
    twice = c("Mul", c.count_up(extent), c.integers(2))
    if aligned:
        count = c("Max", c("Sub", extent, one), one)
    else:
        twice, count = c("Add", twice, one), extent
    share = c("Div", *(c("Cast", part, to=to) for part in (twice, count)))
    return c("Sub", share, c.constant(1.0, dtype))
