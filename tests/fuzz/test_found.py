"""Small graphs that random ones led to, each of which polyc once got wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.fuzz.builder import Builder
from tests.fuzz.compare import check
from tests.fuzz.evaluate import Kind
from tests.fuzz.generate import finish
from tests.fuzz.values import Value

F32 = np.dtype(np.float32)


def _mirrored(b: Builder) -> Value:
    pads = b.integers([3, 2, 2, 0, 1, 2])
    return b.add("Pad", [b.make((16, 4, 16), F32), pads], Kind.EXACT, mode="reflect")[0]


FOUND: dict[str, Callable[[Builder], object]] = {
    "the standard's definition drops a batch of one": lambda b: b.add(
        "AffineGrid", [b.make((1, 2, 3), F32), b.integers([1, 1, 2, 4])], Kind.SUM, align_corners=1
    ),
    "columns are added up as integers, too": lambda b: b.add(
        "Col2Im",
        [b.make((1, 4, 4), np.dtype(np.int32)), b.integers([3, 3]), b.integers([2, 2])],
        Kind.SUM,
    ),
    "mirrored borders, read by the digits of a position, took isl minutes": lambda b: b.add(
        "Sin",
        b.add("Reshape", [_mirrored(b), b.integers([4, 133, 5])], Kind.EXACT),
        Kind.POINTWISE,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str):
    builder = Builder(np.random.default_rng(1))
    FOUND[name](builder)
    outcome = check(finish(builder))
    assert outcome.kind == "agrees", outcome.detail
