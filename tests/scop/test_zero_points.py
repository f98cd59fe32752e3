"""Zero points that are taken out of sums."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.scop.factors.zero_points import move_zero_points
from polyc.scop.scop import Scop
from tests.scop.interpreter import interpret
from tests.scop.test_narrow_factors import PRODUCTS, bytes_of, lowered

W, FILTERS = bytes_of(64, 48), bytes_of(64, 16, 3, 3)


def written(scop: Scop, array: str) -> list[str]:
    return [str(s).splitlines()[1].strip() for s in scop.statements if s.array == array]


def test_a_sum_of_the_constant_corrects_the_result():
    scop = move_zero_points(lowered((40, 64), W, zero=7), PRODUCTS)
    assert written(scop, "x_centred") == ["x_centred[i0, i1] = int32(x[i0, i1])"]
    assert written(scop, "y") == ["y[i, j] = sub(y_acc[i, j], mul(7, w_centred_sums[j]))"]
    sums = scop.arrays["w_centred_sums"]
    np.testing.assert_array_equal(sums.value, W.sum(0, dtype=np.int32))


def test_a_frame_is_filled_with_it():
    before = lowered((1, 16, 9, 9), FILTERS, "ConvInteger", pads=[1] * 4, zero=7)
    after = move_zero_points(before, PRODUCTS)
    *border, inside = written(after, "x_centred_padded")
    assert all(text.endswith("= 7") for text in border)
    assert inside.endswith("= x_centred[i0, i1, i2, i3]")
    np.testing.assert_array_equal(
        after.arrays["w_centred_sums"].value, FILTERS.sum((1, 2, 3), dtype=np.int32)
    )


@pytest.mark.parametrize(
    "scop",
    [
        lowered((40, 64), W),  # there is none
        lowered((40, 3), bytes_of(3, 48), zero=7),  # no instruction takes three terms
        lowered((40, 64), bytes_of(64, 48, dtype=np.uint8), zero=7),  # nor these types
    ],
    ids=["no zero point", "a short sum", "other types"],
)
def test_what_would_gain_nothing_is_left_alone(scop):
    assert move_zero_points(scop, PRODUCTS) is scop
    assert move_zero_points(lowered((40, 64), W, zero=7), ()).statements


def test_the_numbers_stay():
    before = lowered((33, 8), bytes_of(8, 9), zero=200)
    after = move_zero_points(before, PRODUCTS)
    assert after is not before
    feeds = {"x": bytes_of(33, 8, dtype=np.uint8)}
    np.testing.assert_array_equal(interpret(after, feeds)["y"], interpret(before, feeds)["y"])
