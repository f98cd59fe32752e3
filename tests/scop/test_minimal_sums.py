"""Convolutions of 16-bit integers in fewer products, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from polyc.budget import Budget
from polyc.errors import TooLarge
from polyc.scop.expr import Cast, Load, walk
from polyc.scop.factors import minimal_sums
from polyc.scop.factors.minimal_sums import filter_minimally
from polyc.scop.factors.narrow_factors import narrow_factors
from polyc.scop.lower.windows.minimal_filter import minimal_filter
from polyc.scop.scop import Scop
from polyc.scop.uses import find_uses
from tests.scop.interpreter import interpret
from tests.scop.test_narrow_factors import PAIRS, PRODUCTS, bytes_of, lowered

STREAMED = 8.0


def convolution(
    x: tuple[int, ...], kernel: tuple[int, ...], filters: int = 16, types=PAIRS, **more
) -> Scop:
    w = more.pop("w", bytes_of(filters, x[1] // more.get("group", 1), *kernel))
    return narrow_factors(lowered(x, w, "ConvInteger", **more), types)


@pytest.fixture
def always(monkeypatch):
    """Minimal filtering wherever it is possible, also where it takes as long."""

    def choose(batch, groups, channels, filters, kernel, output, streamed, numbers):
        assert numbers.largest == 4
        return tuple(minimal_filter(1 if r == 1 else 5 - r, r) for r in kernel)

    monkeypatch.setattr(minimal_sums, "choose_filters", choose)


def count_products(scop: Scop) -> int:
    """Multiplications of sums."""
    return sum(int(np.prod(s.exact_extents)) for s in scop.statements if s.reduction)


@pytest.mark.parametrize(
    ("x", "kernel", "more"),
    [
        ((1, 16, 8, 8), (3, 3), {"pads": [1] * 4}),
        ((2, 20, 7, 9), (3, 3), {"pads": [1] * 4, "zero": 7}),
        ((1, 16, 9, 8), (3, 3), {"zero": 255}),
        ((1, 17, 12, 6), (3, 1), {"pads": [1, 0, 1, 0]}),
        ((2, 16, 21), (3,), {"pads": [2, 0]}),
        ((1, 16, 10, 11), (2, 2), {}),
        ((1, 16, 4, 4, 6), (3, 3, 3), {"pads": [1] * 6}),
    ],
)
def test_the_numbers_stay_and_products_are_fewer(x, kernel, more, always):
    before = convolution(x, kernel, **more)
    after = filter_minimally(before, STREAMED)
    assert count_products(after) < count_products(before)
    feeds = {"x": bytes_of(*x, dtype=np.uint8)}
    np.testing.assert_array_equal(interpret(after, feeds)["y"], interpret(before, feeds)["y"])


def test_extremes_are_exact():
    """All pixels 255, all weights of one sign and -128: the largest U, V and sums."""
    for sign in (127, -128):
        w = np.full((16, 64, 3, 3), sign, np.int8)
        w[1::2, :, 1] = -sign - 1
        before = convolution((1, 64, 6, 6), (3, 3), w=w, zero=0, pads=[1] * 4)
        after = filter_minimally(before, STREAMED)
        assert after is not before
        feeds = {"x": np.full((1, 64, 6, 6), 255, np.uint8)}
        np.testing.assert_array_equal(interpret(after, feeds)["y"], interpret(before, feeds)["y"])


def test_what_is_transformed_has_16_bits(always):
    after = filter_minimally(convolution((1, 16, 8, 8), (3, 3), pads=[1] * 4), STREAMED)
    (update,) = (s for s in after.statements if s.reduction)
    loads = [e for e in walk(update.value) if isinstance(e, Load)]
    assert {str(load.dtype) for load in loads} == {"int16"}
    assert sum(isinstance(e, Cast) for e in walk(update.value)) == 2
    assert update.iterators[-1] == "c"  # neighbours in memory, of which an instruction takes two


def test_an_image_that_tiles_leave_is_written_to_their_end(always):
    before = convolution((1, 16, 7, 7), (3, 3), pads=[1] * 4)
    after = filter_minimally(before, STREAMED)
    name = "x_centred_padded"
    assert before.arrays[name].shape == (1, 16, 9, 9)
    assert after.arrays[name].shape == (1, 16, 10, 10)
    assert len(find_uses(after.statements).writes(name)) == 6  # inside, four sides, and behind


@pytest.mark.parametrize(
    "scop",
    [
        convolution((1, 16, 8, 8), (3, 3), strides=[2, 2]),
        convolution((1, 16, 8, 8), (3, 3), dilations=[2, 2]),
        convolution((1, 32, 8, 8), (3, 3), group=2),
        convolution((1, 16, 8, 8), (3, 3), types=PRODUCTS),
    ],
    ids=["stride", "dilation", "groups", "an instruction takes bytes"],
)
def test_other_sums_are_left_alone(scop, always):
    assert filter_minimally(scop, STREAMED) is scop


@pytest.mark.parametrize(
    ("channels", "kernel", "gains"),
    [(64, (3, 3), True), (64, (1, 1), False), (64, (5, 5), False), (8, (3, 3), False)],
)
def test_it_is_done_where_it_takes_less(channels, kernel, gains):
    scop = convolution((1, channels, 12, 12), kernel, filters=64)
    assert (filter_minimally(scop, STREAMED) is not scop) == gains


def test_nobody_has_to_want_it():
    scop = convolution((1, 16, 8, 8), (3, 3))
    assert filter_minimally(scop, None) is scop


def test_what_is_transformed_is_within_the_memory_budget(always):
    scop = convolution((1, 16, 8, 8), (3, 3))
    with pytest.raises(TooLarge, match="memory"):
        filter_minimally(scop, STREAMED, Budget(memory=1000))


@pytest.mark.parametrize(("name", "limit"), [("LARGEST", 1000), ("LIMIT", 4 * 255 * 128 * 16)])
def test_what_might_leave_its_bits_is_left_alone(monkeypatch, name, limit, always):
    scop = convolution((1, 16, 8, 8), (3, 3))
    assert filter_minimally(scop, STREAMED) is not scop
    monkeypatch.setattr(minimal_sums, name, limit)
    assert filter_minimally(scop, STREAMED) is scop
