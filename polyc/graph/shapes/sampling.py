"""Looking at an image at positions that are data: GridSample."""

from __future__ import annotations

from polyc.graph.ir import Node, Shape
from polyc.graph.shapes.checks import given, require, require_at_least, require_rank
from polyc.graph.shapes.dims import require_same
from polyc.graph.shapes.rules import Inputs, shape_rule


@shape_rule("GridSample")
def infer_grid_sample(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """X (n, c, h, w), grid (n, y, x, 2) -> (n, c, y, x)"""
    x, grid = given(inputs[0]), given(inputs[1])
    require_rank(x, "X", least=3)
    require_rank(grid, "grid", x.rank, x.rank)
    require_same(x.shape[0], grid.shape[0], "batch of X and grid", "use one grid for each image")
    spatial = x.rank - 2
    way_out = "one coordinate for each spatial dimension of X"
    require(grid.shape[-1] == spatial, "last dimension of grid", spatial, grid.shape[-1], way_out)
    shape = (x.shape[0], x.shape[1], *grid.shape[1:-1])
    rule, way_out = "spatial extents of X", "there is nothing to read"
    for extent in x.shape[2:] if 0 not in shape else ():
        require_at_least(extent, 1, rule, x.shape[2:], way_out)
    return (shape,)
