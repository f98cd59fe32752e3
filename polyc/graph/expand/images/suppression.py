"""NonMaxSuppression: of boxes that overlap, those of the best score.

Boxes of a class are looked at from the best score on; one is kept unless it overlaps one that is
kept. First the candidates are found, those above the threshold, and counted. What is left is
compiled for their number, rounded up to a power of two: a triangle of overlaps, and a recurrence
that walks it (`Greedy`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from polyc.graph.compose import Composer
from polyc.graph.expand.finding import find_true, trim
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import constant_int, given, require, require_rank
from polyc.graph.shapes.dims import fixed_all

Operands = Sequence[Tensor | None]


def expand_suppression(node: Node, inputs: Operands) -> Body:
    """boxes[b, n, 4], scores[b, classes, n], at most, overlap, score -> int64[count, 3]

    The rows of the result are (batch, class, box), in the order of classes and falling scores.
    """
    c = Composer()
    boxes, scores = given(inputs[0]), given(inputs[1])
    require_rank(boxes, "boxes", 3, 3)
    require_rank(scores, "scores", 3, 3)
    batch, classes, n = fixed_all(scores.shape, "a dimension of scores")
    fits = fixed_all(boxes.shape, "a dimension of boxes") == (batch, n, 4)
    require(fits, "shape of boxes", (batch, n, 4), boxes.shape, "as many as there are scores")
    most, overlap, least = (*node.inputs[2:], "", "", "")[:3]
    rows = batch * classes
    if not most or rows * n == 0:  # by default no box is selected
        return c.body(node.inputs, (c.constant(np.zeros((0, 3)), np.int64),))
    flat = c("Reshape", node.inputs[1], c.integers(rows, n))
    if least:
        flags = c("Greater", flat, c("Reshape", least, c.integers(1, 1)))
        count = _round_up(c, flags, n)
    else:
        flags = c.constant(np.ones((rows, n), np.bool_))
        count = c.constant(np.int64(n))
    overlap = overlap or c.constant(np.zeros(1, np.float32))
    operands = (node.inputs[0], flat, flags, count, most, overlap)
    center = int(node.get("center_point_box", 0))
    return c.body(
        node.inputs, (c("Suppress", *operands, domain=INTERNAL, center=center, classes=classes),)
    )


def _round_up(c: Composer, flags: str, n: int) -> str:
    """The largest number of true elements of a row, up to a power of two, but at most n."""
    numbers = c("Cast", flags, to=TensorProto.INT64)
    counts = c("ReduceSum", numbers, c.integers(1), keepdims=0)
    count = c("ReduceMax", counts, c.integers(0), keepdims=0)
    sizes = c.constant([min(1 << k, n) for k in range(n.bit_length() + 1)], np.int64)
    enough = c("Where", c("LessOrEqual", count, sizes), sizes, c.constant(np.int64(n)))
    return c("ReduceMin", enough, c.integers(0), keepdims=0)


def expand_suppress(node: Node, inputs: Operands) -> Body:
    """boxes[b, n, 4], scores[r, n], candidates[r, n], how many, at most, overlap -> int64[count, 3]

    r counts classes of batches; "how many" is the most that a row has, and must be known.
    """
    c = Composer()
    boxes, scores, flags, _, most, threshold = node.inputs
    rows, n = fixed_all(given(inputs[1]).shape, "a dimension of scores")
    classes = int(node.attributes["classes"])
    size = constant_int(given(inputs[3]), "the number of candidates")
    places, counts = find_true(c, flags, n, c.integers(size))
    position = c.constant(np.arange(size), np.int64)
    valid = c("Less", position, c("Unsqueeze", counts, c.integers(1)))
    least = c.constant(np.asarray(-np.inf), given(inputs[1]).dtype)
    scored = c("Where", valid, c("GatherElements", scores, places, axis=1), least)
    _, order = c.several("TopK", 2, scored, c.integers(size), axis=1)
    places = c("GatherElements", places, order, axis=1)
    sides = _corners(c, boxes, (rows // classes, classes, n), bool(node.attributes["center"]))
    sides = [c("GatherElements", side, places, axis=1) for side in sides]
    overlap = _overlaps(c, sides, c("Reshape", threshold, c.integers(1, 1, 1)))
    kept = c("Greedy", valid, overlap, domain=INTERNAL)
    rank = c("CumSum", c("Cast", kept, to=TensorProto.INT64), c.constant(np.int64(1)))
    kept = c("And", kept, c("LessOrEqual", rank, c("Reshape", most, c.integers(1, 1))))
    total = rows * size
    chosen, number = find_true(c, c("Reshape", kept, c.integers(1, total)), total)
    chosen = c("Reshape", chosen, c.integers(-1, 1))
    row = c("Div", chosen, c.constant(np.int64(size)))
    per_batch = c.constant(np.int64(classes))
    box = c("Gather", c("Reshape", places, c.integers(-1)), chosen)
    table = c("Concat", c("Div", row, per_batch), c("Mod", row, per_batch), box, axis=1)
    return c.body(node.inputs, (trim(c, table, number),))


def _corners(c: Composer, boxes: str, extents: tuple[int, int, int], center: bool) -> list[str]:
    """The lower and upper ends of all boxes along two axes, for each class: 4 times [rows, n].

    Two corners in any order, or (x, y, width, height) of the centre.
    """
    batch, classes, n = extents
    whole, flat = c.integers(batch, classes, n), c.integers(batch * classes, n)
    parts = []
    for k in range(4):
        part = c("Gather", boxes, c.integers(k), axis=2)
        part = c("Reshape", part, c.integers(batch, 1, n))
        parts.append(c("Reshape", c("Expand", part, whole), flat))
    if not center:
        a0, b0, a1, b1 = parts
        return [c("Min", a0, a1), c("Min", b0, b1), c("Max", a0, a1), c("Max", b0, b1)]
    half = c.constant(np.float32(0.5))
    middle, reach = parts[:2], [c("Mul", p, half) for p in parts[2:]]
    pairs = list(zip(middle, reach, strict=True))
    return [*(c("Sub", m, r) for m, r in pairs), *(c("Add", m, r) for m, r in pairs)]


def _overlaps(c: Composer, sides: Sequence[str], threshold: str) -> str:
    """Whether the area that boxes i and j share is more than a part of what they cover: [r, j, i]

    Boxes without an area, or that only touch, share nothing.
    """
    zero = c.constant(np.float32(0))
    a, b = ([c("Unsqueeze", s, c.integers(axis)) for s in sides] for axis in (2, 1))
    shared = []
    for low, high in ((0, 2), (1, 3)):
        end, start = c("Min", a[high], b[high]), c("Max", a[low], b[low])
        shared.append(c("Sub", end, start))
    area = c("Mul", *shared)
    areas = [c("Mul", c("Sub", s[2], s[0]), c("Sub", s[3], s[1])) for s in (a, b)]
    union = c("Sub", c("Add", *areas), area)
    found = c("Greater", c("Div", area, union), threshold)
    for positive in (*shared, area, *areas, union):
        found = c("And", found, c("Greater", positive, zero))
    return found
