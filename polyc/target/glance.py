"""A look at how fast the third-level cache is, which differs most among machines of one kind.

NumPy's greatest element of an array that fits there, and nowhere nearer, is found at the speed at
which that cache is read: 87 GB/s on a Zen 4, where a C program reads 74. A thing of milliseconds,
without a compiler, so the first compilation on a machine does it (`target/resolve.py`).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from polyc.target.machine import Target
from polyc.target.rates import Rates

TRIES = 24
"""The fastest counts: whatever disturbs a try only adds to its time."""

STEP = math.sqrt(2)
"""Between rates that are told apart, so that a second look finds the same."""


def glance(target: Target) -> Rates:
    """The target's rates with that of its third-level cache as it is seen, if it is slower.

    What is faster than the estimate gains nothing: a loop that computes as well asks for no more.
    """
    size = min(target.l3 // 2, 4 * target.l2)
    if size <= target.l2:
        return target.rates
    numbers = np.ones(size // 4, np.float32)
    least = math.inf
    for _ in range(TRIES):
        start = time.perf_counter()
        numbers.max()
        least = min(least, time.perf_counter() - start)
    slower = max(0, round(math.log(target.rates.l3 * least / numbers.nbytes, STEP)))
    return replace(target.rates, l3=target.rates.l3 / STEP**slower)
