"""Which elements a resized dimension is made of, and with which weights: tables, by NumPy.

    y[o] = sum of weights[o, t] * x[positions[o, t]] over t

The position of output o in the input is computed as the standard says for each
coordinate_transformation_mode; the weights of its neighbours are those of linear or cubic
interpolation, whose filter is stretched where an antialiased image becomes smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.resize import Resized


@dataclass(frozen=True)
class Samples:
    """positions, int64[new, taps], may lie outside of the input, where its edge goes on;
    weights, float64[new, taps]; outside, bool[new]: the output is the extrapolation value."""

    positions: np.ndarray
    weights: np.ndarray
    outside: np.ndarray


def find_samples(node: Node, one: Resized) -> Samples:
    """The table of a Resize for one dimension."""
    x = find_coordinates(node.get("coordinate_transformation_mode", "half_pixel"), one)
    outside = np.zeros(one.new, bool)
    if node.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        outside = (x < 0) | (x > one.old - 1)
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        nearest = ROUNDINGS[node.get("nearest_mode", "round_prefer_floor")](x)
        return Samples(nearest.astype(np.int64)[:, None], np.ones((one.new, 1)), outside)
    stretch = min(one.scale, 1.0) if node.get("antialias") else 1.0
    reach = 2 if mode == "cubic" else 1
    # an integer position is the right neighbour of the place before it
    base = np.ceil(x).astype(np.int64) - 1
    first = math.floor(-reach / stretch) + 1
    positions = base[:, None] + np.arange(first, 2 - first)
    distance = (positions - x[:, None]) * stretch
    if mode == "cubic":
        weights = _cubic(distance, node.get("cubic_coeff_a", -0.75))
    else:
        weights = np.maximum(1 - np.abs(distance), 0)
    if stretch < 1:
        weights /= weights.sum(1, keepdims=True)
    if node.get("exclude_outside"):
        weights = np.where((positions >= 0) & (positions < one.old), weights, 0)
        total = weights.sum(1, keepdims=True)
        weights /= np.where(total == 0, 1, total)
    return Samples(positions, weights, outside)


def find_coordinates(mode: str, one: Resized) -> np.ndarray:
    """Where each output lies among the inputs, float64[new]."""
    y, width = np.arange(one.new, dtype=np.float64), one.scale * one.old
    match mode:
        case "align_corners":
            return y * 0 if width == 1 else y * (one.old - 1) / (width - 1)
        case "asymmetric":
            return y / one.scale
        case "tf_crop_and_resize":
            start, end = one.crop
            if width == 1:
                return y * 0 + (start + end) * (one.old - 1) / 2
            return y * (end - start) * (one.old - 1) / (width - 1) + start * (one.old - 1)
        case "tf_half_pixel_for_nn":
            return (y + 0.5) / one.scale
        case "pytorch_half_pixel" if width == 1:
            return y * 0 - 0.5
        case "half_pixel_symmetric":
            offset = one.old / 2 * (1 - one.new / width)
            return offset + (y + 0.5) / one.scale - 0.5
    return (y + 0.5) / one.scale - 0.5


ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys (1981), "Cubic convolution interpolation for digital image processing", equation 4."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def find_floor(values: np.ndarray, slopes: Sequence[Fraction], iterator: str) -> str | None:
    """A formula for a list of integers, if it is floor((p*i + b) / q) for a slope p/q given.

        [0, 0, 1, 1, 2, 2], slopes [1/2], "i" -> "floor((1*i + 0)/2)"

    From q * v <= p*i + b < q * (v + 1) for each value v follows an interval for b.
    """
    if not len(values):
        return "0"
    i = np.arange(len(values))
    for slope in slopes:
        p, q = slope.numerator, slope.denominator
        for scale in (1, 2, 4):  # halves of a position, and of a half
            rest = scale * (q * values - p * i)
            least, most = int(rest.max()), int(rest.min()) + scale * q - 1
            if least <= most:
                if scale * q == 1:
                    return f"{p}*{iterator} + {least}"
                return f"floor(({scale * p}*{iterator} + {least})/{scale * q})"
    return None
