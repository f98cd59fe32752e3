"""DeformConv: a convolution whose windows are bent, each tap moved by an offset that is data.

What the taps see is interpolated as GridSample does it; then it is a product, as any convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import attribute_ints, given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed_all

Operands = Sequence[Tensor | None]


def expand_deform_conv(node: Node, inputs: Operands) -> Body:
    """X[n, c, h, w], W[m, c/groups, kh, kw], offset[n, 2*g*t, y, x], B[m], mask[n, g*t, y, x]

    A window has t = kh*kw taps, and g groups of channels share offsets. A tap outside of the image
    counts as 0, one at the border is interpolated with zeros.
    """
    c = Composer()
    x, weight, offset = (given(t) for t in inputs[:3])
    bias, mask = (*node.inputs[3:], "", "")[:2]
    for tensor, role in ((x, "X"), (weight, "W"), (offset, "offset")):
        require_rank(tensor, role, 4, 4)
    n, channels, *extents = fixed_all(x.shape, "a dimension of X")
    filters, per_group, *kernel = fixed_all(weight.shape, "a dimension of W")
    groups, shared = int(node.get("group", 1)), int(node.get("offset_group", 1))
    fits = per_group * groups == channels and channels % shared == 0 and filters % groups == 0
    require(fits, "channels", f"{per_group} * {groups}, a multiple of {shared}", channels,
            "make groups, channels and filters agree")  # fmt: skip
    taps, out = kernel[0] * kernel[1], fixed_all(offset.shape[2:], "a dimension of offset")
    require_shape(offset, "offset", (n, shared * taps * 2, *out))
    moves = c("Reshape", node.inputs[2], c.integers(n * shared, taps, 2, *out))
    grid = _grid(c, node, moves, kernel, extents, out, x.dtype)
    grid = c("Reshape", grid, c.integers(n * shared, taps * out[0], out[1], 2))
    image = c("Reshape", node.inputs[0], c.integers(n * shared, channels // shared, *extents))
    seen = c("GridSample", image, grid, mode="linear", padding_mode="zeros", align_corners=0)
    area = out[0] * out[1]
    seen = c("Reshape", seen, c.integers(n, shared, channels // shared, taps, area))
    if mask:
        shape = c.integers(n, shared, 1, taps, area)
        seen = c("Mul", seen, c("Reshape", mask, shape))
    columns = c("Reshape", seen, c.integers(n, groups, per_group * taps, area))
    rows = c("Reshape", node.inputs[1], c.integers(groups, filters // groups, per_group * taps))
    y = c("Reshape", c("MatMul", rows, columns), c.integers(n, filters, *out))
    if bias:
        y = c("Add", y, c("Reshape", bias, c.integers(filters, 1, 1)))
    return c.body(node.inputs, (y,))


def _grid(
    c: Composer, node: Node, moves: str, kernel: Sequence[int], extents: Sequence[int],
    out: Sequence[int], dtype: np.dtype,
) -> str:  # fmt: skip
    """Where each tap looks, as GridSample has it: -1 … 1 from edge to edge, x in front of y."""
    strides, dilations = (attribute_ints(node, a, 2, default=1) for a in ("strides", "dilations"))
    pads = attribute_ints(node, "pads", 4)
    parts = []
    for d in (1, 0):
        start = np.arange(out[d]) * strides[d] - pads[d]
        tap = np.indices(kernel)[d].reshape(-1, 1, 1) * dilations[d]
        regular = tap + (start[:, None] if d == 0 else start[None, :])
        place = c("Add", c("Gather", moves, c.constant(np.int64(d)), axis=2),
                  c.constant(regular, dtype))  # fmt: skip
        doubled = c("Add", place, c("Add", place, c.constant(1.0, dtype)))
        scaled = c("Mul", doubled, c.constant(1 / max(extents[d], 1), dtype))
        parts.append(c("Unsqueeze", c("Sub", scaled, c.constant(1.0, dtype)), c.integers(-1)))
    return c("Concat", *parts, axis=-1)
