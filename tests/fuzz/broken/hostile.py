"""Values that nobody expects: numbers at the ends of their ranges, names of other things."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

INTEGERS = (
    0, 1, -1, 2, 3, -2, 7, 64, 100, 255, 1000, 2**15, 2**20, 2**31 - 1, 2**31, -(2**31), 2**32,
    2**33, 2**40, 2**47, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1,
)  # fmt: skip

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, math.inf, -math.inf, math.nan, 2.0**63)

NAMES = (
    "", "add", "mul", "x", "y", "c0", "S_add", "acc_local", "pc_n", "size_n", "step_0", "n + 1",
    "2*n", "-1", "int", "restrict", "for", "None", "polyc.random_key", "Trim", "a b", "a\nb",
    "a\0b", "\x1b[31m", "*/ int main; /*", '"; #include "x', "%s%n", "{}", "$(ls)", "../../etc",
    "/dev/stdin", "\u202eabc", "é", "𝔵", "\ufeff", "x" * 5000, "polyc", "ai.onnx.ml", "\\", "'",
)  # fmt: skip

DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "polyc", "ai.onnx.training", "other", "é")


class Dice:
    """Random choices, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def below(self, count: int) -> int:
        """0 to count - 1."""
        return int(self.random.integers(count))

    def one_in(self, count: int) -> bool:
        return self.below(count) == 0

    def choose(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def integer(self) -> int:
        """Hostile, or small."""
        return self.choose(INTEGERS) if self.one_in(2) else self.below(12) - 3

    def extent(self) -> int:
        return self.choose((0, 1, -1, 2, 3, 5, 17, 2**16, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)))

    def number(self) -> float:
        return self.choose(FLOATS)

    def name(self) -> str:
        return self.choose(NAMES)

    def octets(self, most: int) -> bytes:
        return self.random.bytes(self.below(most) + 1)
