"""MaxUnpool: what MaxPool took goes back to where it was taken from; all else is 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import (
    attribute_ints,
    constant_ints,
    given,
    require,
    require_rank,
    require_shape,
)
from polyc.graph.shapes.dims import fixed_all


def expand_max_unpool(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """X[n, c, …], I[n, c, …], the shape of Y -> Y[n, c, …]

    Positions count through all of Y, in the shape that the window gives; a larger one is filled up
    with zeros behind it.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", least=3)
    require_shape(inputs[1], "I", x.shape)
    n, channels, *extents = fixed_all(x.shape, "a dimension of X")
    rank = len(extents)
    kernel = attribute_ints(node, "kernel_shape", rank)
    strides, pads = attribute_ints(node, "strides", rank, 1), attribute_ints(node, "pads", 2 * rank)
    inner = [
        (extents[k] - 1) * strides[k] - pads[k] - pads[rank + k] + kernel[k] for k in range(rank)
    ]
    way_out = "make windows and pads fit"
    require(min(inner) > 0, "spatial extents of Y", "at least 1", tuple(inner), way_out)
    planes, area, count = n * channels, math.prod(inner), math.prod(extents)
    flat = c.integers(planes, count)
    first = c.constant(np.arange(planes)[:, None] * area, np.int64)
    places = c("Sub", c("Reshape", node.inputs[1], flat), first)
    empty = c.constant(np.broadcast_to(np.zeros((), x.dtype), (planes, area)), x.dtype)
    values = c("Reshape", node.inputs[0], flat)
    filled = c("ScatterElements", empty, places, values, axis=1)
    y = c("Reshape", filled, c.integers(n, channels, *inner))
    shape = (n, channels, *inner)
    if len(inputs) > 2 and inputs[2] is not None:
        wanted = constant_ints(inputs[2], "output_shape")
        require(
            len(wanted) == rank + 2, "length of output_shape", rank + 2, len(wanted), "correct it"
        )
        more = [w - s for w, s in zip(wanted, shape, strict=True)]
        y = c("Pad", y, c.integers(*[0] * (rank + 2), *more)) if any(more) else y
    return c.body(node.inputs, (y,))
