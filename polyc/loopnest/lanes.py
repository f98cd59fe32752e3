"""How a vector loop is cut into vectors: whole ones, and at the end a shorter one or some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyc.loopnest.nodes import For, extent_of

LARGEST_UNROLL = 64
"""Copies of one body; no register file holds the accumulators of more."""


def cut_lanes(loop: For, lanes: int, masked: bool) -> Iterator[For]:
    """A vector loop of constant extent in pieces of at most `lanes` iterations, a vector each.

    21 iterations with 16 lanes are 16 and, with masks, 5 more of 16 lanes; without, 4 and 1.
    masked: a vector of which some lanes are idle costs no more than another.
    """
    start, end = 0, extent_of(loop) or 0
    while start < end:
        size, idle = min(lanes, end - start), 0
        width = 1 << (size - 1).bit_length()
        if masked:
            width = lanes if start and size != lanes // 2 else width
            idle = width - size
        elif width > size:
            size = width // 2
        yield replace(loop, lower=loop.lower + start, upper=loop.lower + (start + size), idle=idle)
        start += size
