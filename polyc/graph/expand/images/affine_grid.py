"""AffineGrid: a product of an affine map of each batch with the places of an image's elements.

    grid[n, h, w]  =  theta[n] (x_w, y_h, 1)        x, y from -1 to 1

The standard's own definition in terms of other operators drops a batch of 1 in two dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyc.budget import require_table
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import constant_ints, given, require, require_shape


def expand_affine_grid(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """theta[n, r, r + 1], size[n, c, d1…dr] -> grid[n, d1…dr, r], for r = 2 or 3"""
    c = Composer()
    theta, size = given(inputs[0]), constant_ints(given(inputs[1]), "size")
    rank = len(size) - 2
    require(rank in (2, 3), "length of size", "4 or 5", len(size), "images have 2 or 3 dimensions")
    require_shape(theta, "theta", (size[0], rank, rank + 1))
    extents = all(n >= 0 for n in size)
    require(extents, "size", "no negative extent", size, "correct the size")
    require_table(math.prod(size[2:]) * (rank + 1), f"{node.op} {node.name!r}")
    aligned = bool(node.get("align_corners", 0))
    axes = [_places(n, aligned) for n in size[2:]]
    # The last dimension of the image comes first among the coordinates.
    coordinates = np.meshgrid(*axes, indexing="ij")[::-1]
    places = np.stack([*coordinates, np.ones(size[2:])], axis=-1).reshape(-1, rank + 1)
    maps = c("Transpose", node.inputs[0], perm=(0, 2, 1))
    rows = c("MatMul", c.constant(places, theta.dtype), maps)  # [n, d1 * … * dr, rank]
    shape = c.integers(size[0], *size[2:], rank)
    return c.body(node.inputs, (c("Reshape", rows, shape),))


def _places(count: int, aligned: bool) -> np.ndarray:
    """Where elements are between -1 and 1: from end to end, or half a step off."""
    if aligned:
        return np.linspace(-1, 1, count)
    return (2 * np.arange(count) + 1) / max(count, 1) - 1
