"""What operands cost that come from afar, in cycles of a core that computes meanwhile.

A cycle is the time in which a core begins two multiply-adds of whole vectors, whatever its clock.
"""

from __future__ import annotations

from polyc.target.machine import Target

STREAMED = 0.5
"""Of the rate of the third-level cache, what reaches a loop that multiplies what it reads.

Winograd's products on 7x7 images stream their weights at 9.5 GB/s on an Emerald Rapids whose cache
is read at 18.
"""

MOST = 8.0
"""Bytes a cycle that such a loop asks for at most: on a Zen 4 and a Zen 5, whose caches give 16 and
more, Winograd's form is chosen best by this."""

FMA_UNITS = 2
FLOPS = 2
"""Of a multiply-add."""


def cycles_a_second(target: Target) -> float:
    """Cycles of a core in a second."""
    return target.rates.flops / (FLOPS * FMA_UNITS * target.vectors.lanes(4))


def far_bytes(target: Target) -> float:
    """Bytes that a core reads from its third-level cache in a cycle, if it does nothing else."""
    return target.rates.l3 / cycles_a_second(target)


def streamed_bytes(target: Target) -> float:
    """Bytes from beyond the second-level cache that reach a loop of multiply-adds in a cycle."""
    return min(MOST, STREAMED * far_bytes(target))
