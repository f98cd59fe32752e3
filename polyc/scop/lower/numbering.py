"""Elements of a shape by their numbers in row-major order, sizes known only at run time or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.functions import add, mul
from polyc.scop.lower.space import Space


def row_major(
    space: Space, iterators: Sequence[str], shape: Sequence[int], dtype: np.dtype = INT64
) -> Expr:
    """4*i0 + i1 for i0, i1 of (5, 4): as a number of the first dimensions alone."""
    steps = steps_of(shape[: len(iterators)])
    if all(isinstance(step, int) for step in steps):
        terms = [f"{s}*{i}" for s, i in zip(steps, iterators, strict=True)]
        return space.index(" + ".join(terms) or "0", dtype)
    parts = (mul(space.index(i), space.number(s)) for s, i in zip(steps, iterators, strict=True))
    return cast(reduce(add, parts), dtype)


def steps_of(shape: Sequence[int]) -> list[int]:
    """From one element to the next along each dimension: (5, 4, 3) -> 12, 3, 1"""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]
