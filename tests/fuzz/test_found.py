"""Small graphs that random ones led to, each of which polyc once got wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.fuzz.builder import Builder
from tests.fuzz.compare import check
from tests.fuzz.evaluate import Kind
from tests.fuzz.generate import finish

F32 = np.dtype(np.float32)
FOUND: dict[str, Callable[[Builder], object]] = {
    "the standard's definition drops a batch of one": lambda b: b.add(
        "AffineGrid", [b.make((1, 2, 3), F32), b.integers([1, 1, 2, 4])], Kind.SUM, align_corners=1
    ),
    "columns are added up as integers, too": lambda b: b.add(
        "Col2Im",
        [b.make((1, 4, 4), np.dtype(np.int32)), b.integers([3, 3]), b.integers([2, 2])],
        Kind.SUM,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str):
    builder = Builder(np.random.default_rng(1))
    FOUND[name](builder)
    outcome = check(finish(builder))
    assert outcome.kind == "agrees", outcome.detail
