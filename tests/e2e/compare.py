"""Whether two tensors agree, and the sentence that says where they do not."""

from __future__ import annotations

import numpy as np


def find_difference(
    got: np.ndarray, want: np.ndarray, rtol: float = 1e-4, exact: bool = False
) -> str | None:
    """What differs between a result and its reference; None if nothing does.

    Type and shape must be equal, and NaN and infinities stand in the same places. Finite floats
    may differ by `rtol` times the largest magnitude of the reference; everything else is equal.
    `exact` compares floats bit by bit but for the payload of a NaN, so -0.0 is not 0.0.
    """
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind != "f":
        return _first(got, want, got != want)
    special = ~np.isfinite(want)
    wrong = special & (got != want) & ~(np.isnan(got) & np.isnan(want))
    wrong |= np.isfinite(want) & ~np.isfinite(got)
    if exact:
        wrong |= ~special & ((got != want) | (np.signbit(got) != np.signbit(want)))
    else:
        scale = np.abs(want[~special]).max(initial=0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong |= ~special & (np.abs(got - want) > rtol * scale)
    return _first(got, want, wrong)


def _first(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str | None:
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {want.size} elements differ, first {list(at)}: "
        f"{got[at]!r}, expected {want[at]!r}"
    )
