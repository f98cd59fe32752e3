"""Vector units of every width."""

from __future__ import annotations

from polyc.target.machine import NAMED
from polyc.target.vectors import Vectors


def registers(simd_bytes: int) -> Vectors:
    """The vector unit of the named target with registers of so many bytes."""
    return next(t.vectors for t in NAMED.values() if t.vectors.bytes == simd_bytes)
