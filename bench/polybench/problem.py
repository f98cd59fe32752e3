"""What a kernel of the race is: its loops, its sizes, its data, and what NumPy has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from polyc.loops.run.kernel import LoopKernel

SIZES = ("mini", "small", "medium", "large", "extralarge")
"""The names of PolyBench's sizes, the smallest first."""

Arguments: TypeAlias = "Mapping[str, Any]"
"""What a kernel is called with, by name, in order: arrays and numbers."""


@dataclass(frozen=True)
class Problem:
    """A kernel of PolyBench, or of every day (`everyday.py`).

    sizes: the name of a size -> the numbers that `make` takes. make: the arguments of a call.
    results: the arguments that hold results; others that are written are for scratch. numpy: the
    same in NumPy, in place, where it has a natural form of a few calls.
    """

    name: str
    kernel: LoopKernel
    sizes: Mapping[str, tuple[int, ...]]
    make: Callable[..., dict[str, Any]]
    results: tuple[str, ...]
    numpy: Callable[..., None] | None = None


def by_size(*sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The five sizes by their names."""
    return dict(zip(SIZES, sizes, strict=True))


def grid(*extents: int) -> tuple[np.ndarray, ...]:
    """The subscripts of an array, each along its own axis: int64, to be broadcast.

    grid(2, 3)   ->   [[0], [1]], [[0, 1, 2]]
    """
    return tuple(np.ogrid[tuple(slice(n) for n in extents)])


def positive_definite(n: int) -> np.ndarray:
    """L L^T of a lower triangle with ones on its diagonal, as PolyBench's solvers take it."""
    _, j = grid(n, n)
    lower = np.tril(np.broadcast_to(-(j % n) / n + 1, (n, n)), -1) + np.eye(n)
    return np.ascontiguousarray(lower @ lower.T)
