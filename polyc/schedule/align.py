"""Which iterators of two statements are one: every element written at p is met at s = p.

y[i, j] = …;   z[j, k] += y[k, j]        i of the first is k of the other, and j is j
"""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from polyc.poly.affine import outputs, shifted_iterator
from polyc.scop.scop import Statement


def align_writes(source: Statement, other: Statement) -> dict[int, int]:
    """Positions p -> s of iterators at which the two write the same, such as initialisations."""
    return _align(source, [other.write])


def align_reads(source: Statement, reader: Statement) -> dict[int, int]:
    """Positions p -> s of iterators of the producer, `source`, that `reader` shares."""
    return _align(source, [load.index for load in reader.loads if load.array == source.array])


def _align(source: Statement, functions: Iterable[isl.PwMultiAff]) -> dict[int, int]:
    result: dict[int, int] | None = None
    for function in functions:
        pairs = {}
        for w, r in zip(outputs(source.write), outputs(function), strict=True):
            pw, pr = shifted_iterator(w), shifted_iterator(r)
            if pw is not None and pr is not None and pw[1] == pr[1]:
                pairs[pw[0]] = pr[0]
        result = pairs if result is None else {p: s for p, s in result.items() if pairs.get(p) == s}
    return result or {}
