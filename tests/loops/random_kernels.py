"""Kernels at random: nests of loops over matrices and vectors, as text.

Sums, recurrences, triangles, loops that run down, values read from elements that others write: what
isl's scheduler, tiles, lanes, registers and threads have to get right together. Or grids with
borders, whose loops are split; or loops of which data says where they write, and when they end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

VECTORS, MATRICES = ("x", "y", "z"), ("A", "B")
INDENT = "    "


@dataclass(frozen=True)
class Writer:
    """Writes one kernel of five arrays and a number, of places, and of where rows begin."""

    random: random.Random

    def kernel(self) -> str:
        nests = [line for _ in range(self.random.randint(1, 3)) for line in self.nest()]
        head = ["import polyc", "", "@polyc.kernel"]
        head += ["def f(A, B, x, y, z, s, p, b):", "    n = len(x)"]
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


@dataclass(frozen=True)
class BorderWriter(Writer):
    """Writes a kernel over whole arrays: conditions, clipped and periodic subscripts, windows."""

    def nest(self) -> list[str]:
        depth = self.random.randint(1, 3)
        lines: list[str] = []
        around: list[str] = []
        for level, variable in enumerate("ijk"[:depth]):
            lines.append(INDENT * (level + 1) + self.head(variable, around))
            around.append(variable)
        for _ in range(self.random.randint(1, 2)):
            lines += [INDENT * (depth + 1) + line for line in self.block(around)]
        return lines

    def head(self, variable: str, around: list[str]) -> str:
        if around and self.random.random() < 0.3:
            v = around[-1]
            lower, upper = self.random.choice([("0", v), (v, "n"), (f"max({v} - 2, 0)", "n")])
            return f"for {variable} in range({lower}, {upper}):"
        return f"for {variable} in range(n):"

    def block(self, around: list[str]) -> list[str]:
        which, statement = self.random.random(), self.statement(around)
        if which < 0.3:
            return [statement]
        if which < 0.5:
            return [f"if {self.condition(around)}:", INDENT + statement]
        if which < 0.8:
            target = statement[: statement.index("] ") + 1]
            other = f"{target} = 0.5 * {self.term(around)}"
            lines = [f"if {self.condition(around)}:", INDENT + statement]
            if self.random.random() < 0.3:
                lines += [f"elif {self.condition(around)}:", f"{INDENT}{target} = 0.25"]
            return [*lines, "else:", INDENT + other]
        v = self.random.choice(around)
        head = f"for w in range(max({v} - 1, 0), min({v} + 3, n)):"
        if self.random.random() < 0.3:
            head = "for w in range(min(3, n)):"
        return [head, INDENT + self.statement([*around, "w"])]

    def condition(self, around: list[str]) -> str:
        v, w = self.random.choice(around), self.random.choice(around)
        affine = [f"{v} > 0", f"{v} < n - 1", f"{v} == {w}", f"({v} + {w}) % 2 == 0", f"{v} > {w}"]
        affine += [f"0 < {v} < n - 1 and {w} > 2", f"{v} == 0 or {w} == n - 1", f"{v} < n // 2"]
        return self.random.choice([*affine, f"x[{v}] > 0.1", f"A[{v}, {w}] < y[{w}]"])

    def pair(self, around: list[str]) -> str:
        return f"{self.place(around)}, {self.place(around)}"

    def place(self, around: list[str]) -> str:
        v = self.random.choice(around)
        clipped = [f"max({v} - 1, 0)", f"min({v} + 2, n - 1)", f"{v} - 1 if {v} > 0 else {v}"]
        periodic = [f"({v} + 1) % n", f"({v} - 1) % n", f"n - 1 - {v}"]
        return self.random.choice([v, v, v, v, *clipped, *periodic])


@dataclass(frozen=True)
class DataWriter(BorderWriter):
    """Writes a kernel that scatters, leaves loops, and walks from where data says to where."""

    def block(self, around: list[str]) -> list[str]:
        which, v = self.random.random(), self.random.choice(around)
        if which < 0.25:
            return [self.scattered(around)]
        if which < 0.4:
            leave = self.random.choice(["continue", "break"])
            lines = [f"if {self.term(around)} > 0.2:", INDENT + leave, *super().block(around)]
            return [super().statement(around), *lines] if self.random.random() < 0.5 else lines
        if which < 0.6:
            lines = [f"t = {self.term(around)}", self.scattered(around), super().statement(around)]
            self.random.shuffle(lines[1:])
            last = f"y[{v}] += t * {self.term(around)}"
            return [f"if {self.condition(around)}:", *(INDENT + line for line in [*lines, last])]
        if which < 0.8:
            value = f"{self.term([*around, 'w'])} * x[w]"
            target = self.random.choice([f"y[{v}]", f"z[p[{v}]]", f"A[{v}, p[w]]", "z[w]"])
            lines = [f"{target} {self.random.choice(['=', '+='])} 0.25 * {value}"]
            if self.random.random() < 0.4:
                leave = self.random.choice(["continue", "break"])
                lines = [f"if x[w] < {self.term(around)}:", INDENT + leave, *lines]
            head = f"for w in range(b[{v}], b[{v} + 1]):"
            return [head, *(INDENT + line for line in lines)]
        return super().block(around)

    def scattered(self, around: list[str]) -> str:
        statement, v = super().statement(around), self.random.choice(around)
        operator = statement[statement.index("] ") + 2 :]
        places = [f"y[p[{v}]]", f"z[p[{v}]]", f"A[p[{v}], {v}]", f"B[{v}, p[{v}]]"]
        return f"{self.random.choice(places)} {operator}"

    def term(self, around: list[str]) -> str:
        if self.random.random() < 0.15:
            return f"{self.random.choice(VECTORS)}[p[{self.random.choice(around)}]]"
        return super().term(around)


def write_kernel(seed: int) -> str:
    """The text of a module with a kernel f(A, B, x, y, z, s); the same for the same seed."""
    return Writer(random.Random(seed)).kernel()


def write_kernel_with_borders(seed: int) -> str:
    """The same of kernels that ask for borders."""
    return BorderWriter(random.Random(seed)).kernel()


def write_kernel_of_data(seed: int) -> str:
    """The same of kernels in which data says where something is written, and when loops end."""
    return DataWriter(random.Random(seed)).kernel()
