"""Floats as elements of a prime field, in NumPy, as `runtime/exact/polyc_field.h` has them in C.

An element takes the bytes of the type that it stands for: arrays of elements go where arrays of
floats go, as views, and are copied by what knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyc.types.element_types import bit_width, is_float, is_narrow

PRIMES = {4: (1 << 31) - 1, 2: 65521, 1: 251}
"""By the bytes of the narrowest float of a model: the field whose elements take as many."""

RUNS = {4: 3, 2: 4, 1: 8}
"""So many runs leave a wrong result unseen in one of some 2^60 cases at most, and put zero at
each of its places in the order (`choose`)."""


@dataclass(frozen=True)
class Field:
    """The numbers modulo a prime, and in how many runs they are tried."""

    prime: int
    runs: int


@dataclass(frozen=True)
class Choice:
    """What one run goes by: where zero stands in the order of the elements, and which functions."""

    field: Field
    zero: int
    salt: int


def field_for(dtypes: Iterable[np.dtype]) -> Field:
    """The largest field whose elements fit every float among the types."""
    narrowest = min((d.itemsize for d in dtypes if is_float(d)), default=4)
    width = min(narrowest, 4)
    return Field(PRIMES[width], RUNS[width])


def choose(field: Field, run: int) -> Choice:
    """The choice of a run.

    Zero stands in the middle of the order in the first run, so that both sides of a ReLU are taken;
    then almost at the top, where a maximum that begins at 0 is seen, almost at the bottom, where a
    minimum is; and so on.
    """
    zero = (field.prime // 2, field.prime - 2, 1)[run % 3]
    return Choice(field, zero, 0x5EED + run)


def encode(values: np.ndarray, field: Field) -> np.ndarray:
    """The elements that numbers are, in an array of the same type and shape; integers stay.

    A float m 2^e is the element m 2^e of the field, so that what was computed from weights when
    compiling holds in the field as far as it was exact.
    """
    if not is_float(values.dtype):
        return values
    prime = field.prime
    wide = values.astype(np.float64).reshape(-1)
    fraction, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
    whole = (fraction * float(1 << 53)).astype(np.int64) % prime  # 0.5 <= |fraction| < 1
    least = int(exponent.min(initial=0))
    powers = [pow(2, e - 53, prime) for e in range(least, int(exponent.max(initial=0)) + 1)]
    elements = whole.astype(np.uint64) * np.array(powers, np.uint64)[exponent - least]
    elements %= np.uint64(prime)
    elements[np.isposinf(wide)] = prime - 1
    elements[np.isneginf(wide)] = prime - 2
    elements[np.isnan(wide)] = prime - 3
    return view_as(elements, values.dtype).reshape(values.shape)


def random_elements(
    shape: tuple[int, ...], dtype: np.dtype, field: Field, rng: np.random.Generator
) -> np.ndarray:
    """Elements drawn at random, as an array of a float type."""
    return view_as(rng.integers(0, field.prime, shape, np.uint64), dtype)


def view_as(elements: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Elements in the memory of a float type."""
    narrow = elements.astype(np.dtype(f"u{dtype.itemsize}"))
    return narrow.view(dtype) if narrow.ndim else narrow.reshape(1).view(dtype).reshape(())


def bits_of(values: np.ndarray) -> np.ndarray:
    """What an array holds in memory, as unsigned integers: NaNs can be compared so.

    Of the byte that an integer of four or two bits takes, only these say something.
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    bits = flat.view(np.dtype(f"u{values.dtype.itemsize}"))
    if is_narrow(values.dtype) and not is_float(values.dtype):
        return bits & ((1 << bit_width(values.dtype)) - 1)
    return bits
