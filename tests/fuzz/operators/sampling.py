"""Operators that read images at computed places."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOATS, Rejected, Value

NOISE = 20.0
"""A place up to 20 is known to so many steps, and slopes are about as large as elements."""

_PLACES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


@operator("Resize", weight=1.2, symbolic=False)
def resize(b: Builder, op: str) -> object:
    """By sizes or scales, in each mode."""
    shape = (b.integer(1, 2), b.integer(1, 3), b.integer(2, 9), b.integer(2, 9))
    x = b.pick(
        (FLOATS[0], FLOATS[2]), lambda s: len(s) == 4 and 0 not in s and np.prod(s) < 3000, shape
    )
    mode = b.one_of(("nearest", "linear", "cubic"))
    if mode == "nearest" and b.chance(0.3):
        x = b.pick(
            (np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int8)),
            lambda s: len(s) == 4,
            shape,
        )
    space = [b.integer(1, 2 * n) for n in x.shape[2:]]
    attributes: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": b.one_of(_PLACES),
    }
    if mode == "nearest":
        attributes["nearest_mode"] = b.one_of(
            ("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
        )
    elif mode == "cubic":
        attributes["exclude_outside"] = b.integer(0, 1)
    elif b.chance(0.3):
        attributes["antialias"] = 1
    if b.chance(0.5):
        inputs: list[Value | None] = [x, None, None, b.integers([*x.shape[:2], *space])]
    else:
        # Multiples of 1/4: their reciprocals' rounding decides no place but at whole numbers.
        scales = [1.0, 1.0, *(b.integer(2, 10) / 4 for _ in space)]
        inputs = [x, None, b.constant(np.array(scales, np.float32))]
    return b.add(
        op, inputs, Kind.EXACT if mode == "nearest" else Kind.SUM, noise=NOISE, **attributes
    )


@operator("GridSample", weight=0.5, symbolic=False)
def grid_sample(b: Builder, op: str) -> object:
    """In each mode, with each padding."""
    n, c, h, w = b.integer(1, 2), b.integer(1, 3), b.integer(2, 7), b.integer(2, 7)
    x = b.pick(
        FLOATS[:2],
        lambda s: len(s) == 4 and s[0] < 3 and min(s[2:]) > 1 and np.prod(s) < 2000,
        (n, c, h, w),
    )
    grid = b.make((x.shape[0], b.integer(1, 5), b.integer(1, 5), 2), x.dtype, low=-1.2, high=1.2)
    return b.add(
        op, [x, grid], Kind.SUM, noise=NOISE, mode=b.one_of(("linear", "nearest", "cubic")),
        padding_mode=b.one_of(("zeros", "border", "reflection")), align_corners=b.integer(0, 1),
    )  # fmt: skip


@operator("AffineGrid", weight=0.3, symbolic=False)
def affine_grid(b: Builder, op: str) -> object:
    """Of two and three dimensions."""
    n, space = b.integer(1, 2), b.integer(2, 3)
    theta = b.make((n, space, space + 1), FLOATS[0])
    size = b.integers([n, b.integer(1, 3), *(b.integer(2, 5) for _ in range(space))])
    return b.add(op, [theta, size], Kind.SUM, align_corners=b.integer(0, 1))


@operator("RoiAlign", weight=0.3, symbolic=False)
def roi_align(b: Builder, op: str) -> object:
    """Averages over regions."""
    n, c, side, rois = b.integer(1, 2), b.integer(1, 3), b.integer(5, 9), b.integer(1, 3)
    x = b.make((n, c, side, side), FLOATS[0], finite=True)  # zeros meet what is not near
    low = b.rng.uniform(0, 3, (rois, 2))
    high = low + b.rng.uniform(1, 4, (rois, 2))
    boxes = b.feed([np.concatenate([low, high], 1).astype(np.float32)])
    batches = b.make((rois,), np.int64, low=0, high=n - 1)
    return b.add(
        op, [x, boxes, batches], Kind.SUM, noise=NOISE,
        output_height=b.integer(1, 3), output_width=b.integer(1, 3),
        sampling_ratio=b.integer(1, 2), spatial_scale=1.0,
        coordinate_transformation_mode=b.one_of(("half_pixel", "output_half_pixel")),
    )  # fmt: skip


@operator("MaxUnpool", weight=0.2, symbolic=False)
def max_unpool(b: Builder, op: str) -> object:
    """Maxima put back where they were."""
    n, c, side = b.integer(1, 2), b.integer(1, 3), b.integer(1, 4)
    x = b.make((n, c, 2 * side, 2 * side), FLOATS[0])
    if b.traits.special:
        raise Rejected("which of two NaN is the largest")
    y, at = b.add("MaxPool", [x], Kind.EXACT, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    return b.add(op, [y, at], Kind.EXACT, kernel_shape=[2, 2], strides=[2, 2])
