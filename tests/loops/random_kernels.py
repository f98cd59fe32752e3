"""Kernels at random: nests of loops over matrices and vectors, as text.

Sums, recurrences, triangles, loops that run down, values read from elements that others write: what
isl's scheduler, tiles, lanes, registers and threads have to get right together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

VECTORS, MATRICES = ("x", "y", "z"), ("A", "B")
INDENT = "    "


@dataclass(frozen=True)
class Writer:
    """Writes one kernel of five arrays and a number."""

    random: random.Random

    def kernel(self) -> str:
        nests = [line for _ in range(self.random.randint(1, 3)) for line in self.nest()]
        head = ["import polyc", "", "@polyc.kernel", "def f(A, B, x, y, z, s):", "    n = len(x)"]
        return "\n".join([*head, *nests, ""])

    def nest(self) -> list[str]:
        depth = self.random.randint(1, 3)
        lines: list[str] = []
        around: list[str] = []
        for level, variable in enumerate("ijk"[:depth]):
            lines.append(INDENT * (level + 1) + self.head(variable, around))
            around.append(variable)
            if level < depth - 1 and self.random.random() < 0.3:
                lines.append(INDENT * (level + 2) + self.statement(around))
        for _ in range(self.random.randint(1, 2)):
            lines.append(INDENT * (depth + 1) + self.statement(around))
        if depth > 1 and self.random.random() < 0.3:
            lines.append(INDENT * 2 + self.statement(around[:1]))
        return lines

    def head(self, variable: str, around: list[str]) -> str:
        lower, upper = "1", "n - 1"
        if around and self.random.random() < 0.3:
            lower, upper = self.random.choice([(around[-1], upper), (lower, around[-1])])
        if self.random.random() < 0.12:
            return f"for {variable} in range({upper} - 1, {lower} - 1, -1):"
        return f"for {variable} in range({lower}, {upper}):"

    def statement(self, around: list[str]) -> str:
        operator = self.random.choice(["=", "+=", "+=", "-="])
        target = f"{self.random.choice(VECTORS)}[{self.random.choice(around)}]"
        if len(around) > 1 and self.random.random() < 0.4:
            target = f"{self.random.choice(MATRICES)}[{around[-2]}, {around[-1]}]"
        value = self.term(around)
        for _ in range(self.random.randint(0, 2)):
            value = f"{value} {self.random.choice('*+-')} {self.term(around)}"
        return f"{target} {operator} 0.25 * ({value})"

    def term(self, around: list[str]) -> str:
        which = self.random.random()
        if which < 0.35 and len(around) > 1:
            return f"{self.random.choice(MATRICES)}[{self.pair(around)}]"
        if which < 0.8:
            return f"{self.random.choice(VECTORS)}[{self.place(around)}]"
        return self.random.choice(["0.5", "1.5", "s"])

    def pair(self, around: list[str]) -> str:
        i, j = around[-2:] if self.random.random() < 0.7 else self.random.sample(around, 2)
        near = [f"{i} - 1, {j}", f"{i}, {j} - 1", f"{i} - 1, {j} - 1", f"{i}, {j} + 1"]
        far = [f"{i} + 1, {j}", f"n - 1 - {i}, {j}"]
        return self.random.choice([f"{i}, {j}"] * 4 + [f"{j}, {i}"] * 2 + near + far)

    def place(self, around: list[str]) -> str:
        v = self.random.choice(around)
        return self.random.choice([v, v, v, f"{v} - 1", f"{v} + 1", f"n - 1 - {v}"])


def write_kernel(seed: int) -> str:
    """The text of a module with a kernel f(A, B, x, y, z, s); the same for the same seed."""
    return Writer(random.Random(seed)).kernel()
