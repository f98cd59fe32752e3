"""Divisions by constants, where it is known what variables are multiples of."""

import pytest

from polyc.loopnest.index import const, floordiv, var
from polyc.loopnest.multiples import divide_apart, divide_evenly

k, j = var("k"), var("j")
KNOWN = {"k": 2, "j": 12}


@pytest.mark.parametrize(
    ("index", "simple"),
    [
        (floordiv(k, 2) * 32, k * 16),
        (floordiv(k, 2) * 32 + j * 5 + 3, k * 16 + j * 5 + 3),
        (floordiv(j * 3 + k * 2, 4) * 8, j * 6 + k * 4),
        (floordiv(j, 5) * 15 + floordiv(j, 4) * 4, floordiv(j, 5) * 15 + j),
    ],
)
def test_what_divides_evenly_is_not_rounded(index, simple):
    assert divide_evenly(index, KNOWN) == simple


@pytest.mark.parametrize(
    "index",
    [
        floordiv(k, 2),  # half of k is no index
        floordiv(k, 4) * 8,
        floordiv(var("i"), 2) * 2,
        floordiv(k + 1, 2) * 4 + const(1),
    ],
)
def test_all_else_is_left(index):
    assert divide_evenly(index, KNOWN) == index


def test_numbers_are_taken_out_of_floors_of_what_divides():
    assert divide_apart(floordiv(k + 5, 2) * 3 + j, KNOWN) == floordiv(k, 2) * 3 + j + 6
    assert divide_apart(floordiv(j + k - 3, 2), KNOWN) == floordiv(j + k, 2) - 2
    for index in (floordiv(k + 1, 4), floordiv(var("i") + 1, 2), j + 3):
        assert divide_apart(index, KNOWN) == index
