"""DeformConv: a convolution whose windows are bent, each tap moved by an offset that is data.

What the taps see is interpolated as GridSample does it; then it is a product, as any convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import attribute_ints, given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed, fixed_all

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
    channels = fixed(x.shape[1], "channels of X")
    filters, per_group, *kernel = fixed_all(weight.shape, "a dimension of W")
    groups, shared = int(node.get("group", 1)), int(node.get("offset_group", 1))
    fits = per_group * groups == channels and channels % shared == 0 and filters % groups == 0
    require(fits, "channels", f"{per_group} * {groups}, a multiple of {shared}", channels,
            "make groups, channels and filters agree")  # fmt: skip
    taps = kernel[0] * kernel[1]
    require_shape(offset, "offset", (x.shape[0], shared * taps * 2, *offset.shape[2:]))
    n, _, h, w = (c.extent(node.inputs[0], k) for k in range(4))
    out = [c.extent(node.inputs[2], k) for k in (2, 3)]
    images, tall = c("Mul", n, c.integers(shared)), c("Mul", out[0], c.integers(taps))
    moves = c("Reshape", node.inputs[2], c.extents(images, taps, 2, *out))
    grid = _grid(c, node, moves, kernel, (h, w), out, x.dtype)
    grid = c("Reshape", grid, c.extents(images, tall, out[1], 2))
    image = c("Reshape", node.inputs[0], c.extents(images, channels // shared, h, w))
    seen = c("GridSample", image, grid, mode="linear", padding_mode="zeros", align_corners=0)
    area = c("Mul", *out)
    seen = c("Reshape", seen, c.extents(n, shared, channels // shared, taps, area))
    if mask:
        seen = c("Mul", seen, c("Reshape", mask, c.extents(n, shared, 1, taps, area)))
    columns = c("Reshape", seen, c.extents(n, groups, per_group * taps, area))
    rows = c("Reshape", node.inputs[1], c.integers(groups, filters // groups, per_group * taps))
    y = c("Reshape", c("MatMul", rows, columns), c.extents(n, filters, *out))
    if bias:
        y = c("Add", y, c("Reshape", bias, c.integers(filters, 1, 1)))
    return c.body(node.inputs, (y,))


def _grid(
    c: Composer, node: Node, moves: str, kernel: Sequence[int], extents: Sequence[str],
    out: Sequence[str], dtype: np.dtype,
) -> str:  # fmt: skip
    """Where each tap looks, as GridSample has it: -1 … 1 from edge to edge, x in front of y."""
    strides, dilations = (attribute_ints(node, a, 2, default=1) for a in ("strides", "dilations"))
    pads = attribute_ints(node, "pads", 4)
    to = int(helper.np_dtype_to_tensor_dtype(dtype))
    parts = []
    for d in (1, 0):
        start = c("Mul", c.count_up(out[d]), c.constant(np.int64(strides[d])))
        start = c("Unsqueeze", start, c.integers(1 - d))
        tap = np.indices(kernel)[d].reshape(-1, 1, 1) * dilations[d] - pads[d]
        regular = c("Cast", c("Add", start, c.constant(tap, np.int64)), to=to)
        place = c("Add", c("Gather", moves, c.constant(np.int64(d)), axis=2), regular)
        doubled = c("Add", place, c("Add", place, c.constant(1.0, dtype)))
        size = c("Cast", c("Max", extents[d], c.integers(1)), to=to)
        scaled = c("Div", doubled, size)
        parts.append(c("Unsqueeze", c("Sub", scaled, c.constant(1.0, dtype)), c.integers(-1)))
    return c("Concat", *parts, axis=-1)
