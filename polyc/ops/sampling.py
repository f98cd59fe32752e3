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
