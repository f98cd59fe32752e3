"""Random graphs: every step takes tensors that are there, and adds an operator that fits them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tests.e2e.graph_builder import GraphBuilder, Value

LARGEST = 20_000
"""Elements of a tensor; steps that would make a larger one are not taken."""

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 65)

Step = Callable[["Generator"], list[Value] | None]
STEPS: list[Step] = []


def step(function: Step) -> Step:
    """Register a way to go on; it gives None where the tensors at hand do not allow it."""
    STEPS.append(function)
    return function


class Generator:
    """The state of `random_graph`: the random numbers, the graph so far, and what may be read."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = GraphBuilder(f"random_{seed}")
        self.pool: list[Value] = []

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choose(self, options: Sequence) -> object:
        return options[int(self.rng.integers(len(options)))]

    def pick(
        self, kinds: str = "f", low: int = 0, high: int = 6, exact: bool = False
    ) -> Value | None:
        """A tensor of such a type and rank, a late one more likely than an early one."""
        found = [
            v
            for v in self.pool
            if v.dtype.kind in kinds and low <= v.rank <= high and (v.exact or not exact)
        ]
        if not found:
            return None
        return found[max(int(k) for k in self.rng.integers(len(found), size=2))]

    def data(self, shape: Sequence[int], kind: str = "f", scale: float = 1.0) -> np.ndarray:
        """Random contents: multiples of 1/8 for floats, small integers, or booleans."""
        if kind == "b":
            return self.rng.integers(0, 2, size=shape).astype(bool)
        if kind == "i":
            return self.rng.integers(-9, 10, size=shape, dtype=np.int64)
        return (self.rng.integers(-16, 17, size=shape) / 8 * scale).astype(np.float32)

    def constant(self, array: np.ndarray) -> Value:
        return self.graph.constant(array)

    def operand(self, shape: tuple[int, ...], kind: str = "f") -> Value:
        """A constant or an input whose shape broadcasts to `shape`."""
        kept = [n if self.chance(0.7) else 1 for n in shape]
        array = self.data(kept[int(self.rng.integers(len(kept) + 1)) :], kind)
        return self.graph.input(array) if self.chance(0.3) else self.constant(array)

    def permutation(self, rank: int) -> list[int]:
        return [int(k) for k in self.rng.permutation(rank)]

    def axis(self, rank: int) -> int:
        """A dimension, counted from the front or from the back."""
        return int(self.rng.integers(-rank, rank))

    def shape(self, rank: int) -> list[int]:
        """A shape with at most LARGEST / 4 elements."""
        while True:
            shape = [int(self.choose(EXTENTS)) for _ in range(rank)]
            if prod(shape) <= LARGEST // 4:
                return shape


def random_graph(seed: int, steps: int = 12) -> tuple[GraphBuilder, list[Value]]:
    """A graph of about `steps` nodes and its outputs: all that nobody reads, and some others."""
    g = Generator(seed)
    for _ in range(int(g.rng.integers(1, 4))):
        g.pool.append(g.graph.input(g.data(g.shape(int(g.rng.integers(1, 5))))))
    while len(g.graph.nodes) < steps:
        made = STEPS[int(g.rng.integers(len(STEPS)))](g)
        for value in made or ():
            if value.array.size <= LARGEST and _is_tame(value):
                g.pool.append(value)
    read = {name for node in g.graph.nodes for name in node.input}
    values = [v for v in g.pool if v.name not in g.graph.feeds]
    outputs = [v for v in values if v.name not in read or g.chance(0.15)]
    return g.graph, outputs


def _is_tame(value: Value) -> bool:
    """Whether a value says something and can be computed with: finite, not huge, and not noise."""
    if value.dtype.kind != "f" or not value.array.size:
        return True
    largest = float(np.abs(value.array).max())
    return largest < 1e3 and (value.exact or largest > 1e-2)  # NaN and infinities compare false
