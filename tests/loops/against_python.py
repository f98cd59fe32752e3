"""A kernel beside the same function run by Python."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from polyc.loops.run.kernel import LoopKernel


def check(kernel: LoopKernel, *arguments: Any, tolerance: float = 1e-12) -> None:
    """Run both on copies of the arguments; all arrays must then be the same.

    Integers and booleans bit for bit; floats but for the rounding of what is summed in another
    order, or contracted into multiply-adds.
    """
    mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    kernel(*mine)
    with np.errstate(all="ignore"):
        kernel.python(*theirs)
    for position, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if not isinstance(one, np.ndarray):
            continue
        what = f"argument {position} of {kernel.function.name}"
        if one.dtype.kind == "f":
            loose = tolerance if one.dtype.itemsize == 8 else 1e-5
            np.testing.assert_allclose(one, other, rtol=loose, atol=loose, err_msg=what)
        else:
            np.testing.assert_array_equal(one, other, err_msg=what)
