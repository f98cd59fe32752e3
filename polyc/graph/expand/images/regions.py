"""Pooling over regions of an image that are data: RoiAlign and MaxRoiPool.

RoiAlign averages samples that are interpolated between elements. What a bin takes from row h has a
factor of its own, so that the average is two matrix products, with the image between them:

    A[r, p, h]  =  mean over the samples s of bin p of  hat(h - y[r, p, s])
    Y[r, c]  =  A_y[r] X[image[r], c] A_x[r]ᵀ              hat(t) = max(0, 1 - |t|)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import (
    constant_value,
    given,
    require,
    require_rank,
    require_shape,
)

Operands = Sequence[Tensor | None]


@dataclass(frozen=True)
class Axis:
    """One axis of all regions: the bins, and the names of what is data.

    extent: that of the image, a list of one; start, size: of a region in elements, [r, 1, 1];
    count: samples a bin has, [r or 1, 1, 1].
    """

    bins: int
    extent: str
    start: str
    size: str
    count: str


class Formulas:
    """Nodes on tensors of one element type."""

    def __init__(self, c: Composer, dtype: np.dtype) -> None:
        self.c, self.dtype = c, dtype

    def __call__(self, op: str, *operands: str | float | np.ndarray) -> str:
        names = (v if isinstance(v, str) else self.c.constant(v, self.dtype) for v in operands)
        return self.c(op, *names)

    def cast(self, integers: str) -> str:
        """Integers as numbers of the element type."""
        return self.c("Cast", integers, to=int(helper.np_dtype_to_tensor_dtype(self.dtype)))


def expand_roi_align(node: Node, inputs: Operands) -> Body:
    """X[n, c, h, w], rois[r, 4], image[r] -> [r, c, bins, bins]

    rois are x1, y1, x2, y2. Without a sampling ratio a bin has as many samples as elements, rounded
    up, in each direction: then what follows is compiled for the largest number in a call.
    """
    c = Composer()
    x, rois = given(inputs[0]), given(inputs[1])
    require_rank(x, "X", 4, 4)
    require_rank(rois, "rois", 2, 2)
    require_shape(rois, "rois", (rois.shape[0], 4))
    require_shape(inputs[2], "batch_indices", rois.shape[:1])
    f = Formulas(c, x.dtype)
    half = node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    ratio = int(node.get("sampling_ratio", 0))
    bins = [int(node.get(f"output_{side}", 1)) for side in ("height", "width")]
    scaled = f("Mul", node.inputs[1], float(node.get("spatial_scale", 1.0)))
    sides = f("Sub", scaled, 0.5 if half else 0.0)
    axes = []
    for k, column in enumerate((1, 0)):
        low, high = (c("Gather", sides, c.integers(i), axis=1) for i in (column, column + 2))
        size = f("Sub", high, low)
        size = size if half else f("Max", size, 1.0)
        count = f("Ceil", f("Div", size, float(bins[k])))
        if ratio:
            count = c.constant([[float(ratio)]], x.dtype)
        low, size, count = (c("Unsqueeze", v, c.integers(2)) for v in (low, size, count))
        axes.append(Axis(bins[k], c.extent(node.inputs[0], 2 + k), low, size, count))
    most = c.constant(np.array([ratio, ratio]), np.int64)
    if not ratio:
        largest = [c("ReduceMax", axis.count, c.integers(0, 1, 2), keepdims=0) for axis in axes]
        rows = [c("Unsqueeze", v, c.integers(0)) for v in largest]
        most = c("Cast", c("Concat", *rows, axis=0), to=TensorProto.INT64)
    names = [name for axis in axes for name in (axis.start, axis.size, axis.count)]
    mode = node.get("mode", "avg")
    image = node.inputs[0]
    if x.shape[0] != 1 or mode == "max":  # of a single image all regions are, and need no copies
        image = c("Gather", image, node.inputs[2], axis=0)
    pooled = c("AlignRegions", image, most, *names, domain=INTERNAL, bins=tuple(bins), mode=mode)
    return c.body(node.inputs, (pooled,))


def expand_align_regions(node: Node, inputs: Operands) -> Body:
    """X[r or 1, c, h, w], most[2], then start, size, count of y and of x -> [r, c, bins, bins]

    most: samples a bin has in each direction at most; they must be known.
    """
    c, x = Composer(), given(inputs[0])
    f = Formulas(c, x.dtype)
    most = np.maximum(constant_value(given(inputs[1]), "the number of samples"), 0)
    bins, image = node.attributes["bins"], node.inputs[0]
    extents = [c.extent(image, k) for k in range(4)]
    axes = [Axis(bins[k], extents[2 + k], *node.inputs[2 + 3 * k : 5 + 3 * k]) for k in range(2)]
    samples = [_sample(f, axis, int(n)) for axis, n in zip(axes, most, strict=True)]
    if node.attributes["mode"] == "avg":
        rows, columns = (_mean(f, a, s) for a, s in zip(axes, samples, strict=True))
        wide = c("MatMul", rows, image)
        return c.body(node.inputs, (c("MatMul", wide, c("Transpose", columns, perm=(0, 1, 3, 2))),))
    if 0 in most:
        shape = c.extents(*extents[:2], *bins)
        return c.body(node.inputs, (c("Expand", c.constant(0.0, x.dtype), shape),))
    return c.body(node.inputs, (_largest(f, image, samples),))


@dataclass(frozen=True)
class Samples:
    """Along one axis, [r, bins, samples]: where they are, and which are in the image, and real.

    A bin that has fewer samples than another one has some that are not real.
    """

    place: str
    inside: str
    real: str


def _sample(f: Formulas, axis: Axis, most: int) -> Samples:
    """A sample up to one element outside is that of the outermost one; further out it is 0."""
    bins, number = np.arange(float(axis.bins))[:, None], np.arange(float(most))[None, None]
    step = f("Div", axis.size, float(axis.bins))
    offset = f("Div", number + 0.5, f("Max", axis.count, 1.0))
    place = f("Add", axis.start, f("Mul", step, f("Add", offset, bins)))
    last = f.cast(axis.extent)
    inside = f.c("And", f("GreaterOrEqual", place, -1.0), f("LessOrEqual", place, last))
    moved = f("Min", f("Max", place, 0.0), f("Sub", last, 1.0))
    return Samples(moved, inside, f("Less", number, axis.count))


def _mean(f: Formulas, axis: Axis, samples: Samples) -> str:
    """What a bin's mean takes from each element, [r, 1, bins, extent]; of no sample it is 0."""
    c, last = f.c, f.c.integers(3)
    elements = f.cast(c.count_up(axis.extent))
    distance = c("Abs", f("Sub", c("Unsqueeze", samples.place, last), elements))
    hat = f("Max", f("Sub", 1.0, distance), 0.0)
    counts = c("Unsqueeze", c("And", samples.inside, samples.real), last)
    total = c("ReduceSum", f("Where", counts, hat, 0.0), c.integers(2), keepdims=0)
    return c("Unsqueeze", f("Div", total, f("Max", axis.count, 1.0)), c.integers(1))


def _largest(f: Formulas, x: str, axes: Sequence[Samples]) -> str:
    """The largest product of an element next to a sample with its weight, over a bin's samples."""
    c = f.c
    places, weights, masks = [], [], []
    for samples, others in zip(axes, ((3, 4), (1, 2)), strict=True):
        low = f("Floor", samples.place)
        fraction = f("Sub", samples.place, low)
        ends = (low, f("Ceil", samples.place)), (f("Sub", 1.0, fraction), fraction)
        beside = c.integers(*others)
        # [r, bins, 2 samples], with room for the other axis
        place, weight = (c("Unsqueeze", c("Concat", *pair, axis=2), beside) for pair in ends)
        counts, real = (
            c("Unsqueeze", c("Concat", m, m, axis=2), beside)
            for m in (samples.inside, samples.real)
        )
        places.append(c("Cast", place, to=TensorProto.INT64))
        weights.append(weight)
        masks.append((counts, real))
    zero = c("Sub", *places)
    zero = c("Sub", zero, zero)
    indices = [c("Unsqueeze", c("Add", p, zero), c.integers(5)) for p in places]
    turned = c("Transpose", x, perm=(0, 2, 3, 1))
    found = c("GatherND", turned, c("Concat", *indices, axis=5), batch_dims=1)
    (inside_y, real_y), (inside_x, real_x) = (
        [c("Unsqueeze", m, c.integers(5)) for m in pair] for pair in masks
    )
    factor = c("Unsqueeze", c("Mul", *weights), c.integers(5))
    value = f("Where", c("And", inside_y, inside_x), c("Mul", found, factor), 0.0)
    least = c.constant(-np.inf, f.dtype)
    kept = c("Where", c("And", real_y, real_x), value, least)
    best = c("ReduceMax", kept, c.integers(2, 4), keepdims=0)
    best = f("Where", c("Equal", best, least), 0.0, best)  # a bin without samples
    return c("Transpose", best, perm=(0, 3, 1, 2))


def expand_max_roi_pool(node: Node, inputs: Operands) -> Body:
    """X[n, c, h, w], rois[r, 5] of (image, x1, y1, x2, y2) -> [r, c, bins, bins]

    The largest element of each bin, whose borders are rounded outwards; of an empty one it is 0.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 4, 4)
    rois = given(inputs[1])
    require(rois.rank == 2 and rois.shape[1] == 5, "shape of rois", "(regions, 5)", rois.shape,
            "give the image and two corners of each region")  # fmt: skip
    f, bins = Formulas(c, x.dtype), node.attributes["pooled_shape"]
    columns = [c("Gather", node.inputs[1], c.integers(k), axis=1) for k in range(5)]  # [r, 1]
    scale = float(node.get("spatial_scale", 1.0))
    image = c("Cast", c("Squeeze", columns[0], c.integers(1)), to=TensorProto.INT64)
    best = c("Gather", node.inputs[0], image, axis=0)
    least = c.constant(-np.inf, x.dtype)
    # Columns first, so that both times the largest is sought along the last dimension.
    for k, (column, count) in enumerate(((1, bins[1]), (2, bins[0]))):
        length = c.extent(node.inputs[0], 3 - k)
        extent = f.cast(length)
        low, high = (_round(f, f("Mul", columns[i], scale)) for i in (column, column + 2))
        step = f("Div", f("Max", f("Add", f("Sub", high, low), 1.0), 1.0), float(count))
        number = np.arange(float(count))[None]
        begin = f("Add", c("Floor", f("Mul", step, number)), low)
        end = f("Add", c("Ceil", f("Mul", step, number + 1)), low)
        begin, end = (f("Min", f("Max", v, 0.0), extent) for v in (begin, end))
        begin, end = (c("Unsqueeze", v, c.integers(1, 2, 4)) for v in (begin, end))
        at = f.cast(c.count_up(length))
        inside = c(
            "And", f("LessOrEqual", begin, at), f("Greater", end, at)
        )  # [r, 1, 1, bins, extent]
        rows = c("Unsqueeze", best, c.integers(3))
        best = c("ReduceMax", c("Where", inside, rows, least), c.integers(4), keepdims=0)
        best = c("Transpose", best, perm=(0, 1, 3, 2))
    return c.body(node.inputs, (f("Where", c("Equal", best, least), 0.0, best),))


def _round(f: Formulas, x: str) -> str:
    """The nearest whole number, halves away from zero."""
    return f("Mul", f.c("Sign", x), f.c("Floor", f("Add", f.c("Abs", x), 0.5)))
