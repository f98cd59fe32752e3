"""Short loops of integer sums that are filled up."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.scop.factors.fill_groups import fill_groups
from tests.scop.interpreter import interpret
from tests.scop.test_narrow_factors import PRODUCTS, bytes_of, lowered


def rows(scop) -> tuple[int, ...]:
    (s,) = (s for s in scop.statements if s.reduction)
    return s.exact_extents


@pytest.mark.parametrize(
    ("image", "filters", "more", "grown"),
    [
        ((2, 3, 7, 7), (40, 3, 2, 2), {}, (40, 6, 6, 4, 2, 2)),
        ((2, 2, 7, 9), (40, 2, 7, 7), {"pads": [3] * 4}, (40, 7, 9, 2, 8, 7)),
        ((2, 3, 9, 9), (40, 3, 3, 3), {"strides": [2] * 2, "pads": [1] * 4}, (40, 5, 5, 4, 3, 3)),
    ],
)
def test_a_loop_grows_to_a_whole_group(image, filters, more, grown):
    before = lowered(image, bytes_of(*filters), "ConvInteger", zero=7, **more)
    after = fill_groups(before, PRODUCTS)
    assert sorted(rows(after)) == sorted((2, *grown))
    feeds = {"x": bytes_of(*image, dtype=np.uint8)}
    same = [interpret(scop, feeds)["y"] for scop in (before, after)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize(
    "scop",
    [
        lowered((2, 2, 7, 7), bytes_of(40, 2, 2, 2), "ConvInteger", zero=7),
        lowered((2, 8, 7, 7), bytes_of(40, 8, 3, 3), "ConvInteger", zero=7),
        lowered((40, 5), bytes_of(5, 48)),
    ],
    ids=["two", "a group", "five"],
)
def test_others_stay(scop):
    assert fill_groups(scop, PRODUCTS) is scop
    assert fill_groups(scop, ()) is scop
