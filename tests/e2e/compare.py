"""Whether two tensors agree, and the sentence that says where they do not."""

from __future__ import annotations

import numpy as np


def find_difference(
    got: np.ndarray, want: np.ndarray, rtol: float = 0.0, atol: float = 0.0
) -> str | None:
    """What differs between a result and its reference; None if nothing does.

    Type and shape must be equal, and NaN and infinities stand in the same places. A finite float
    may differ by `rtol` times its magnitude plus `atol` times the largest one of the reference; if
    both are 0, then -0.0 is not 0.0 either. Everything else is equal.
    """
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind != "f":
        return _first(got, want, got != want)
    finite = np.isfinite(want)
    wrong = ~finite & (got != want) & ~(np.isnan(got) & np.isnan(want))
    wrong |= finite & ~np.isfinite(got)
    if rtol or atol:
        bound = rtol * np.abs(want) + atol * np.abs(want[finite]).max(initial=0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong |= finite & (np.abs(got - want) > bound)
    else:
        wrong |= finite & ((got != want) | (np.signbit(got) != np.signbit(want)))
    return _first(got, want, wrong)


def _first(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str | None:
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {want.size} elements differ, first {list(at)}: "
        f"{got[at]!r}, expected {want[at]!r}"
    )
