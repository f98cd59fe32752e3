"""Random inputs of a model: for commands, for measurements, and to compare with a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from polyc.types.call_sizes import parse_size
from polyc.types.element_types import is_float
from polyc.types.estimate import estimate
from polyc.types.ranges import SizeRange, assume
from polyc.types.spec import TensorSpec


def random_array(spec: TensorSpec, generator: np.random.Generator) -> np.ndarray:
    """Standard normal floats, or zeros and ones: small enough to be valid indices."""
    shape = cast(tuple[int, ...], spec.shape)
    if is_float(spec.dtype):
        return np.asarray(generator.standard_normal(shape)).astype(spec.dtype)
    return np.asarray(generator.integers(0, 2, shape)).astype(spec.dtype)


def random_feeds(
    specs: Sequence[TensorSpec], seed: int, sizes: Sequence[SizeRange] = ()
) -> dict[str, np.ndarray]:
    """An array for each input; the same seed gives the same arrays.

    What is known only at run time, of which `sizes` says more, is as large as its hint.
    """
    generator = np.random.default_rng(seed)
    arrays = {}
    with assume(sizes):
        for spec in specs:
            fixed = replace(spec, shape=tuple(map(_typical, spec.shape)))
            arrays[spec.name] = random_array(fixed, generator)
            if spec.values:
                arrays[spec.name].flat[:] = [_typical(value) for value in spec.values]
    return arrays


def _typical(dim: int | str) -> int:
    return estimate(parse_size(dim)) if isinstance(dim, str) else dim
