"""Fourier transforms and windows."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOATS, Value

NOISE = 8.0
"""A fast transform of the reference's cancels to zeros where direct sums leave rounding."""


@operator("DFT", weight=0.5, symbolic=False)
def dft(b: Builder, op: str) -> object:
    """Of real and complex signals, inverse, one-sided, cut or padded."""
    parts = b.integer(1, 2)
    dtype = b.one_of(FLOATS[:2])
    x = b.pick(
        (dtype,),
        lambda s: False,
        (b.integer(1, 3), b.one_of((1, 2, 5, 8, 12, 16)), parts),
        finite=True,
    )
    onesided = int(b.chance(0.4)) if parts == 1 else 0
    inverse = int(b.chance(0.3)) if parts == 2 else 0
    length = b.integers(b.integer(1, 12)) if b.chance(0.3) else None
    inputs: list[Value | None] = [x, length, b.integers(1)]
    return b.add(op, inputs, Kind.SUM, noise=NOISE, onesided=onesided, inverse=inverse)


@operator("STFT", weight=0.3, symbolic=False)
def stft(b: Builder, op: str) -> object:
    """Transforms of frames, with a window."""
    frame, step = b.one_of((4, 8, 6)), b.integer(1, 4)
    x = b.make((b.integer(1, 2), frame + b.integer(0, 12), 1), FLOATS[0], finite=True)
    window = b.make((frame,), FLOATS[0], low=0.1, high=1, finite=True)
    inputs = [x, b.integers(step), window, b.integers(frame)]
    return b.add(op, inputs, Kind.SUM, noise=NOISE, onesided=b.integer(0, 1))


@operator("BlackmanWindow", "HammingWindow", "HannWindow", weight=0.2)
def window(b: Builder, op: str) -> object:
    """Periodic or symmetric; their ends are cosines that cancel."""
    size = b.integers(b.integer(3, 20))
    return b.add(op, [size], Kind.POINTWISE, noise=NOISE, periodic=b.integer(0, 1))


@operator("MelWeightMatrix", weight=0.1)
def mel(b: Builder, op: str) -> object:
    """Triangles on the mel scale."""
    counts = [b.integers(n) for n in (b.integer(2, 8), 16, 8000)]
    edges = [b.constant(np.array(f, np.float32)) for f in (20.0, 3800.0)]
    return b.add(op, [*counts, *edges], Kind.TYPED)
