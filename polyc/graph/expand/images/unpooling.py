"""MaxUnpool: what MaxPool took goes back to where it was taken from; all else is 0."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import (
    attribute_ints,
    given,
    known_extents,
    require,
    require_at_least,
    require_rank,
    require_shape,
)


def expand_max_unpool(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """X[n, c, …], I[n, c, …], the shape of Y -> Y[n, c, …]

    Positions count through all of Y, in the shape that the window gives; a larger one is filled up
    with zeros behind it.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", least=3)
    require_shape(inputs[1], "I", x.shape)
    extents = x.extents[2:]
    rank = len(extents)
    kernel = attribute_ints(node, "kernel_shape", rank)
    strides, pads = attribute_ints(node, "strides", rank, 1), attribute_ints(node, "pads", 2 * rank)
    more = [kernel[k] - pads[k] - pads[rank + k] - strides[k] for k in range(rank)]
    inner = [n * stride + m for n, stride, m in zip(extents, strides, more, strict=True)]
    way_out = "make windows and pads fit"
    for extent in inner:
        require_at_least(extent, 1, "spatial extents of Y", tuple(inner), way_out)
    first, channels, *seen = (c.extent(node.inputs[0], k) for k in range(x.rank))
    sides = [
        c("Add", c("Mul", n, c.integers(stride)), c.integers(m))
        for n, stride, m in zip(seen, strides, more, strict=True)
    ]
    planes, area, count = c("Mul", first, channels), _product(c, sides), _product(c, seen)
    flat = c("Concat", planes, count, axis=0)
    start = c("Unsqueeze", c("Mul", c.count_up(planes), area), c.integers(1))
    places = c("Sub", c("Reshape", node.inputs[1], flat), start)
    whole = c("Concat", planes, area, axis=0)
    empty = c("ConstantOfShape", whole, value=np.zeros(1, x.dtype))
    values = c("Reshape", node.inputs[0], flat)
    filled = c("ScatterElements", empty, places, values, axis=1)
    shape = c("Concat", first, channels, *sides, axis=0)
    y = c("Reshape", filled, shape)
    if len(inputs) > 2 and inputs[2] is not None:
        wanted = known_extents(inputs[2], "output_shape")
        rule = "length of output_shape"
        require(len(wanted) == rank + 2, rule, rank + 2, len(wanted), "correct it")
        behind = c("Sub", node.inputs[2], shape)
        y = c("Pad", y, c("Concat", c.integers(*[0] * (rank + 2)), behind, axis=0))
    return c.body(node.inputs, (y,))


def _product(c: Composer, extents: Sequence[str]) -> str:
    """The product of extents, as a list of one."""
    return reduce(partial(c, "Mul"), extents)
