"""A convolution by NumPy, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def correlate(
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None,
    pads: Sequence[int] = (),
    dilations: Sequence[int] = (),
) -> np.ndarray:
    """y[n, o, p…] = bias[o] + sum of x[n, c, p + d k - begin…] w[o, c, k…], in float64."""
    rank = x.ndim - 2
    begin, end = (pads[:rank], pads[rank:]) if pads else ([0] * rank, [0] * rank)
    around = [(0, 0), (0, 0), *zip(begin, end, strict=True)]
    padded, gaps = np.pad(x.astype("f8"), around), dilations or [1] * rank
    reach = [d * (k - 1) + 1 for d, k in zip(gaps, w.shape[2:], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, x.ndim)))
    windows = windows[(..., *(slice(None, None, d) for d in gaps))]
    places, taps = range(2, 2 + rank), range(10, 10 + rank)
    y = np.einsum(windows, [0, 1, *places, *taps], w.astype("f8"), [9, 1, *taps], [0, 9, *places])
    return y if bias is None else y + bias.astype("f8").reshape(-1, *[1] * rank)
