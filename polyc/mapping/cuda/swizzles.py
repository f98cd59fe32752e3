"""Swizzles of tiles in shared memory, so that the lanes of a warp meet different banks.

Shared memory has 32 banks of 4 bytes, 128 bytes in all; what is served at once are 128 bytes, of
eight lanes with 16 each, or of 32 lanes with a word each.
"""

from __future__ import annotations

from math import log2

import numpy as np

from polyc.loopnest.swizzle import Swizzle

BANKS = 7
"""Bits of an address in bytes that say which bank."""

CHUNK = 4
"""Bits of an address within 16 bytes, which stay together."""


def swizzle_chunks(row: int, dtype: np.dtype) -> Swizzle:
    """For rows of `row` elements of which eight lanes take 16 bytes each, from one column.

    The chunks of a row change places as the number of the row says. Rows shorter than the banks
    fill these between them already, and only what is left of the rows' numbers is needed.
    """
    size, length = int(log2(dtype.itemsize)), int(log2(row * dtype.itemsize))
    return Swizzle(min(3, length - CHUNK), CHUNK - size, max(BANKS, length) - size)


def swizzle_words(row: int, dtype: np.dtype, apart: int) -> Swizzle:
    """For rows of `row` words, 32 or more, of which lanes take 8 words of 4 rows, `apart` apart.

    Runs of 8 words change places as two bits of the number of the row say.
    """
    size, length = int(log2(dtype.itemsize)), int(log2(row * dtype.itemsize))
    return Swizzle(2, BANKS - 2 - size, length + int(log2(apart)) - size)
