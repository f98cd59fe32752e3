"""Which sizes are tried where a model leaves them open, and what is fed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from polyc.exact.field import Field, random_elements
from polyc.scop.scop import Array
from polyc.types.element_types import is_float, limits
from polyc.types.estimate import estimate
from polyc.types.found import found_in
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
    """Values of sizes that a call is told: the least, the hints if they are small, and random ones.

    Those that it finds are 0. The empty choice, once, if no size is open.
    """
    told = [s for s in sizes if s.is_told]
    found = {s.name: 0 for s in sizes if s.most is not None}
    if not told:
        yield complete(sizes, found)
        return
    least = complete(sizes, {s.name: s.lower for s in told} | found)
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
            chosen = complete(sizes, chosen | found)
            if _are_right(sizes, chosen):
                yield chosen
                break


def _are_right(sizes: Sequence[SizeRange], values: Mapping[str, int]) -> bool:
    """Whether a call may have these sizes; what depends on those that it finds it checks itself."""
    with assume(sizes):
        needs = [need for size in sizes for need in size.needs if not found_in([need])]
    return all(evaluate(need, values) >= 0 for need in needs)


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
