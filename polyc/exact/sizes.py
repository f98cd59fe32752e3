"""Which sizes are tried where a model leaves them open, and what is fed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from polyc.exact.field import Field, random_elements
from polyc.scop.scop import Array
from polyc.types.element_types import is_float, limits
from polyc.types.estimate import estimate
from polyc.types.parameters import complete
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size, evaluate

MOST_DRAWS = 1000
"""How often sizes are drawn until a call may have them."""

LARGEST = 40
"""What a size is at most, unless its range begins above: more has the same loops."""


def sample_sizes(
    sizes: Sequence[SizeRange], count: int, rng: np.random.Generator
) -> Iterator[dict[str, int]]:
    """Values of all sizes: the least, the hints if they are small, and random ones.

    The empty choice, once, if no size is open.
    """
    if not sizes:
        yield {}
        return
    told = [s for s in sizes if s.same is None]
    least = complete(sizes, {s.name: s.lower for s in told})
    if _are_right(sizes, least):
        yield least
    for k in range(count - 1):
        for _ in range(MOST_DRAWS):
            chosen = {}
            for s in told:
                top = max(s.lower, min(LARGEST, LARGEST if s.upper is None else s.upper))
                with assume(sizes):
                    hint = estimate(Size.of(s.name))
                likely = k == 0 and s.lower <= hint <= top
                chosen[s.name] = hint if likely else int(rng.integers(s.lower, top + 1))
            chosen = complete(sizes, chosen)
            if _are_right(sizes, chosen):
                yield chosen
                break


def _are_right(sizes: Sequence[SizeRange], values: Mapping[str, int]) -> bool:
    """Whether a call may have these sizes."""
    return all(evaluate(need, values) >= 0 for size in sizes for need in size.needs)


def shape_of(array: Array, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """An array's shape where all sizes are known."""
    return tuple(evaluate(extent, sizes) for extent in array.shape)


def draw_input(
    array: Array, sizes: Mapping[str, int], largest: int, field: Field, rng: np.random.Generator
) -> np.ndarray:
    """What is fed to an input: any element of the field, or a whole number that may be an index.

    Whole numbers are at most twice `largest`, the largest extent of any array, so that as indices
    some of them are within, and some count from the end; bytes are any.
    """
    shape = shape_of(array, sizes)
    if is_float(array.dtype):
        return random_elements(shape, array.dtype, field, rng)
    if array.dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    least, most = limits(array.dtype)
    if array.dtype.itemsize > 1:
        least, most = max(least, -2 * largest), min(most, 2 * largest)
    values = rng.integers(int(least), int(most) + 1, shape)
    return np.asarray(values, np.int64).astype(array.dtype)
