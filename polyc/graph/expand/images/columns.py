"""Col2Im: blocks that overlap, added up into an image: each pixel gathers what falls on it.

Element k of block i falls on pixel s*i + d*k - pad, hence at most ceil(block / stride) elements
along an axis fall on a pixel:

    y[c, p]  =  sum over h of x[c, places[h, p]]       a place of a zero where fewer do

Nothing is multiplied, so that a NaN stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from polyc.budget import require_table
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
    image = constant_ints(given(inputs[1]), "image_shape")
    block = constant_ints(given(inputs[2]), "block_shape")
    rows, blocks = fixed_all(x.shape[1:], "a dimension of input but the first")
    rank, area = len(image), math.prod(block)
    way_out = "give positive extents"
    require(min((*image, *block), default=0) > 0, "image and block", "extents", block, way_out)
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
    require_table(area * math.prod(image), f"{node.op} {node.name!r}")
    hits = [
        _find_hits(n, k, count, stride, dilation, pad)
        for n, k, count, stride, dilation, pad in zip(
            image, block, counts, strides, dilations, pads[:rank], strict=True
        )
    ]
    places = _join(hits, tuple(block), tuple(counts))
    columns = c("Reshape", node.inputs[0], c.integers(0, rows // area, area * blocks))
    with_zero = c("Pad", columns, c.integers(0, 0, 0, 0, 0, 1))
    gathered = c("Gather", with_zero, c.constant(places, np.dtype(np.int64)), axis=2)
    return c.body(node.inputs, (c("ReduceSum", gathered, c.integers(2), keepdims=0),))


def _find_hits(
    pixels: int, block: int, count: int, stride: int, dilation: int, pad: int
) -> tuple[np.ndarray, np.ndarray]:
    """Along one axis: elements of a block, and blocks (-1 for none); both [hits, pixels]."""
    element = np.arange(block)[:, None]
    shift = np.arange(pixels) + pad - dilation * element
    hit = (shift % stride == 0) & (shift >= 0) & (shift < stride * count)
    order = np.argsort(~hit, axis=0, kind="stable")[: max(1, int(hit.sum(0).max(initial=0)))]
    found = np.where(hit, shift // stride, -1)
    elements = np.broadcast_to(element, shift.shape)
    return np.take_along_axis(elements, order, 0), np.take_along_axis(found, order, 0)


def _join(
    hits: Sequence[tuple[np.ndarray, np.ndarray]], block: tuple[int, ...], counts: tuple[int, ...]
) -> np.ndarray:
    """Places of all hits in flattened columns: [hits, pixels…]; the last is that of a zero."""
    rank = len(hits)
    spread = []
    for axis, pair in enumerate(hits):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = pair[0].shape
        spread.append([part.reshape(shape) for part in pair])
    elements = np.broadcast_arrays(*(e for e, _ in spread))
    blocks = np.broadcast_arrays(*(b for _, b in spread))
    absent = np.any([b < 0 for b in blocks], axis=0)
    element = np.ravel_multi_index(tuple(elements), block)
    place = np.ravel_multi_index(tuple(np.maximum(b, 0) for b in blocks), counts)
    flat = np.where(
        absent, math.prod(block) * math.prod(counts), element * math.prod(counts) + place
    )
    return flat.reshape(-1, *flat.shape[rank:])
