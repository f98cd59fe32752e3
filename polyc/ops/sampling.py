"""Operators that look at an image between its elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.builder import Operand, Value, apply, as_integers, constant_value

Numbers = Sequence[float]


def resize(
    x: Operand,
    scales: Numbers | None = None,
    sizes: Sequence[int] | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Value:
    """x with other extents: `sizes`, or floor(extent · scale), along `axes` (all of them).

    mode: "nearest", "linear" or "cubic"; the coordinate transformation says where outputs lie
    between inputs; antialias: filters are as wide as the step where an image becomes smaller.
    """
    factors = None if scales is None else constant_value(tuple(scales), dtype=np.float32)
    extents = None if sizes is None else as_integers(tuple(sizes))
    return apply(
        "Resize",
        [x, None, factors, extents],
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        antialias=int(antialias),
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=int(exclude_outside),
        axes=None if axes is None else tuple(axes),
        keep_aspect_ratio_policy=keep_aspect_ratio_policy,
    )


def grid_sample(
    x: Operand,
    grid: Operand,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Value:
    """x[N, C, H, W] at the positions grid[N, Y, X, 2] of -1 … 1 -> [N, C, Y, X]; also 1-D and 3-D.

    mode: "linear", "nearest" or "cubic"; padding_mode: "zeros", "border" or "reflection".
    """
    flags = {"mode": mode, "padding_mode": padding_mode, "align_corners": int(align_corners)}
    return apply("GridSample", [x, grid], **flags)


def dft(
    x: Operand,
    length: int | None = None,
    axis: int = -2,
    inverse: bool = False,
    onesided: bool = False,
) -> Value:
    """The Fourier transform of x[…, n, …, 1 or 2] along `axis`; the last dimension is re, im.

    length: cut or filled with zeros to it; onesided: real to half a spectrum, or back by `inverse`.
    """
    flags = {"inverse": int(inverse), "onesided": int(onesided)}
    inputs = [x, as_integers(length, scalar=True), as_integers(axis, scalar=True)]
    return apply("DFT", inputs, **flags)
