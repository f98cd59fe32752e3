"""Col2Im: blocks that overlap, added up into an image, as a transposed convolution.

A kernel of ones and zeros sends row k of each channel's block to tap k:

    y[c, s*i + d*k]  +=  sum over r of x[c, r, i] * (1 where r = k, else 0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyc.element_types import is_float
from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import (
    attribute_ints,
    constant_ints,
    given,
    require,
    require_rank,
)
from polyc.graph.shapes.dims import fixed_all


def expand_col2im(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """x[n, c * block, blocks], image_shape, block_shape -> y[n, c, image…]"""
    c = Composer()
    x = given(inputs[0])
    require_rank(x, "input", 3, 3)
    if not is_float(x.dtype):
        raise UnsupportedOp(f"Col2Im {node.name!r} adds {x.dtype}; insert a Cast to float32")
    image = constant_ints(given(inputs[1]), "image_shape")
    block = constant_ints(given(inputs[2]), "block_shape")
    batch, rows, blocks = fixed_all(x.shape, "a dimension of input")
    rank, area = len(image), math.prod(block)
    require(len(block) == rank, "length of block_shape", rank, len(block), "one extent each")
    way_out = "each channel has as many rows as a block has elements"
    require(rows % area == 0, "rows of input", f"a multiple of {area}", rows, way_out)
    strides = attribute_ints(node, "strides", rank, default=1)
    dilations = attribute_ints(node, "dilations", rank, default=1)
    pads = attribute_ints(node, "pads", 2 * rank)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, block, strict=True)]
    room = [n + pads[k] + pads[rank + k] - reach[k] for k, n in enumerate(image)]
    counts = [r // s + 1 for r, s in zip(room, strides, strict=True)]
    require(
        math.prod(counts) == blocks, "number of blocks", math.prod(counts), blocks, "correct it"
    )
    channels = rows // area
    grid = c("Reshape", node.inputs[0], c.integers(batch, rows, *counts))
    taps = np.eye(area).reshape(area, 1, *block)
    kernel = c.constant(np.tile(taps, (channels, *[1] * (rank + 1))), x.dtype)
    y = c(
        "ConvTranspose", grid, kernel, group=channels, strides=strides, dilations=dilations,
        pads=pads, output_padding=tuple(r % s for r, s in zip(room, strides, strict=True)),
    )  # fmt: skip
    return c.body(node.inputs, (y,))
