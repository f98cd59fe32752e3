"""NonMaxSuppression: of boxes that overlap, those of the best score.

Boxes of a class are looked at from the best score on; one is kept unless it overlaps one that is
kept. First the candidates are found, those above the threshold, and counted. How many there are is
a size that the call finds, or else what follows is compiled for their number, rounded up to a power
of two. They are sorted, and a recurrence walks them (`Greedy`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from polyc.graph.compose import Composer
from polyc.graph.expand.finding import find_true, trim
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import given, require_rank, require_shape
from polyc.types.sizes import Extent

Operands = Sequence[Tensor | None]


def expand_suppression(node: Node, inputs: Operands) -> Body:
    """boxes[b, n, 4], scores[b, classes, n], at most, overlap, score -> int64[count, 3]

    The rows of the result are (batch, class, box), in the order of classes and falling scores.
    """
    c = Composer()
    boxes, scores = given(inputs[0]), given(inputs[1])
    require_rank(boxes, "boxes", 3, 3)
    require_rank(scores, "scores", 3, 3)
    batch, _, n = scores.shape
    require_shape(boxes, "boxes", (batch, n, 4))
    data, rated = node.inputs[:2]
    most, threshold, least = (*node.inputs[2:], "", "", "")[:3]
    if not most or scores.size == 0:  # by default no box is selected
        return c.body(node.inputs, (c.constant(np.zeros((0, 3)), np.int64),))
    flat = c("Reshape", rated, c.extents(-1, c.extent(rated, 2)))
    flags, wanted = _find_candidates(c, flat, least, n)
    places, counts = find_true(c, flags, True, wanted)
    valid = c("Less", c.count_up(wanted), c("Unsqueeze", counts, c.integers(1)))
    lowest = c.constant(np.asarray(-np.inf), scores.dtype)
    scored = c("Where", valid, c("GatherElements", flat, places, axis=1), lowest)
    _, order = c.several("TopK", 2, scored, wanted, axis=1)
    places = c("GatherElements", places, order, axis=1)
    sides = _corners(c, data, rated, bool(node.get("center_point_box", 0)))
    sides = [c("GatherElements", side, places, axis=1) for side in sides]
    threshold = threshold or c.constant(np.zeros(1, np.float32))
    area = c("Mul", c("Sub", sides[2], sides[0]), c("Sub", sides[3], sides[1]))
    kept = c("Greedy", valid, *sides, area, threshold, domain=INTERNAL)
    rank = c("CumSum", c("Cast", kept, to=TensorProto.INT64), c.constant(np.int64(1)))
    kept = c("And", kept, c("LessOrEqual", rank, c("Reshape", most, c.integers(1, 1))))
    chosen, number = find_true(c, c("Reshape", kept, c.integers(1, -1)), True)
    chosen = c("Reshape", chosen, c.integers(-1, 1))
    row, per_batch = c("Div", chosen, wanted), c.extent(rated, 1)
    box = c("Gather", c("Reshape", places, c.integers(-1)), chosen)
    table = c("Concat", c("Div", row, per_batch), c("Mod", row, per_batch), box, axis=1)
    return c.body(node.inputs, (trim(c, table, number),))


def _find_candidates(c: Composer, scores: str, least: str, n: Extent) -> tuple[str, str]:
    """(which of scores[rows, n] are candidates, the most of a row: int64[1])"""
    if not least:
        everyone = c("Expand", c.constant(np.ones((1, 1), np.bool_)), c("Shape", scores))
        return everyone, c.extent(scores, 1)
    flags = c("Greater", scores, c("Reshape", least, c.integers(1, 1)))
    numbers = c("Cast", flags, to=TensorProto.INT64)
    counts = c("ReduceSum", numbers, c.integers(1), keepdims=0)
    count = c("ReduceMax", counts, c.integers(0))
    found = [count, c.extent(scores, 1)]
    if isinstance(n, int):
        found.append(_round_up(c, count, n))
    return flags, c("Found", *found, domain=INTERNAL)


def _round_up(c: Composer, count: str, n: int) -> str:
    """A number rounded up to a power of two, but at most n."""
    sizes = c.constant([min(1 << k, n) for k in range(n.bit_length() + 1)], np.int64)
    enough = c("Where", c("LessOrEqual", count, sizes), sizes, c.constant(np.int64(n)))
    return c("ReduceMin", enough, c.integers(0))


def _corners(c: Composer, boxes: str, scores: str, center: bool) -> list[str]:
    """The lower and upper ends of all boxes along two axes, for each class: 4 times [rows, n].

    Two corners in any order, or (x, y, width, height) of the centre.
    """
    whole, flat = c("Shape", scores), c.extents(-1, c.extent(scores, 2))
    parts = []
    for k in range(4):
        part = c("Unsqueeze", c("Gather", boxes, c.constant(np.int64(k)), axis=2), c.integers(1))
        parts.append(c("Reshape", c("Expand", part, whole), flat))
    if not center:
        a0, b0, a1, b1 = parts
        return [c("Min", a0, a1), c("Min", b0, b1), c("Max", a0, a1), c("Max", b0, b1)]
    half = c.constant(np.float32(0.5))
    middle, reach = parts[:2], [c("Mul", p, half) for p in parts[2:]]
    pairs = list(zip(middle, reach, strict=True))
    return [*(c("Sub", m, r) for m, r in pairs), *(c("Add", m, r) for m, r in pairs)]
