"""What a process does that judges a case, and comes to harm."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from tests.fuzz.broken.judge import Verdict
from tests.fuzz.broken.pool import MEMORY


def judge_badly(seed: int, folder: Path, bases: Path, patience: float) -> Verdict:
    """A judge that dies, hangs, or takes more memory than there is."""
    if seed == 2:
        os.abort()
    if seed == 3:
        time.sleep(60)
    if seed == 4:
        try:
            np.ones(MEMORY, np.uint8)
        except MemoryError:
            return Verdict("calls", "MemoryError")
    return Verdict("calls", "works")
