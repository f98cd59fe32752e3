"""Weights below the smallest normal number are taken for zeros.

    acc[o, x] add= x[c, x] * W[o, c]        W: a constant, of whose elements some are 1e-40
    ->
    acc[o, x] add= x[c, x] * W[o, c]        these are 0

Training leaves such weights in channels that have died. A product with one adds at most 2^-126 |x|
to its sum, while it takes Intel's cores 150 cycles for each vector in place of one: a 1x1
convolution of 256 channels of which 30% of the weights are 1e-40 took 190 ms in place of 1.2
(Emerald Rapids). A constant that is read in any other way, as one that is added is, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyc.scop.scop import Scop
from polyc.scop.uses import find_factors, find_uses

PIECE = 1 << 15
"""Elements that are looked at together: they stay in a cache near the core."""


@dataclass(frozen=True)
class SubnormalWeights:
    """What is said of a constant: so many of its `size` weights count as zeros."""

    origin: str
    taken: int
    size: int

    def __str__(self) -> str:
        return (
            f"subnormal_weights: '{self.origin}' takes {self.taken:,} of {self.size:,} weights, "
            "too small for normal numbers, for zeros"
        )


def drop_subnormals(scop: Scop) -> tuple[Scop, tuple[SubnormalWeights, ...]]:
    """The scop whose constants that are only factors of sums of products are normal or zero."""
    arrays, notes = dict(scop.arrays), list[SubnormalWeights]()
    shared = {array.memory for array in arrays.values()}  # read under other names as well
    for name, reads in find_uses(scop.statements).readers.items():
        array = arrays[name]
        if array.value is None or array.dtype.kind != "f" or name in shared:
            continue
        if not all(load in (find_factors(s, "f") or ()) for s, load in reads):
            continue
        taken = _find_subnormals(array.value)
        if taken is not None:
            value = np.where(taken, array.dtype.type(0), array.value)
            arrays[name] = replace(array, value=value)
            origin = ", ".join(dict.fromkeys(one for s, _ in reads for one in s.origin))
            notes.append(SubnormalWeights(origin, int(taken.sum()), taken.size))
    return replace(scop, arrays=arrays) if notes else scop, tuple(notes)


def _find_subnormals(value: np.ndarray) -> np.ndarray | None:
    """Which elements are neither normal nor zero; None if there are none."""
    least, flat = np.finfo(value.dtype).smallest_normal, value.reshape(-1)
    pieces = (np.abs(flat[at : at + PIECE]) for at in range(0, flat.size, PIECE))
    if not any(((piece < least) & (piece != 0)).any() for piece in pieces):
        return None
    size = np.abs(value)
    found: np.ndarray = (size < least) & (size != 0)
    return found
