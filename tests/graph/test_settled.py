"""Extents by what sizes must be equal to."""

import pytest

from polyc.errors import NotFixed
from polyc.graph.shapes.movement import resolve_reshape
from polyc.types.derived import Derived
from polyc.types.parameters import needed_ranges, settled
from polyc.types.ranges import assume
from polyc.types.sizes import Size

h, n, m = (Size.of(name) for name in ("h", "n", "m"))


def floor(dividend, divisor):
    return Size.of(Derived("floor", dividend, divisor))


def settle(extent, *nothing):
    """The extent where some sizes are 0."""
    with assume(needed_ranges([need for zero in nothing for need in (zero, -zero)])):
        return settled(extent)


def test_a_size_is_a_multiple():
    by = floor(h, 4)
    assert settle(h * n, h - by * 4) == by * n * 4


@pytest.mark.parametrize("more", [0, 1, 3, 4, -1, -4])
def test_a_quotient_of_a_multiple(more):
    by = floor(h, 4)
    assert settle(floor(h + more, 4) * n, h - by * 4) == (by + more // 4) * n


def test_what_does_not_divide_stays_inside():
    other = floor(h + 1, 3)
    assert settle(other * h, h - floor(h, 4) * 4) == other * floor(h, 4) * 4


def test_a_size_that_is_a_product_with_itself_stays():
    """In its place it would come back, of a higher degree each time."""
    assert settle(n * h, n * m * m - n) == n * h


def test_an_entry_of_a_reshape_that_may_be_negative_is_guarded():
    """Two that are negative would have the product of two that are not."""
    rows, columns = floor(h, 4) - 3, floor(n, 4) - 3
    with pytest.raises(NotFixed) as unknown:
        resolve_reshape((rows * columns,), (rows, columns))
    assert unknown.value.needs == (rows,)
    with assume(needed_ranges([rows, columns])):
        assert resolve_reshape((rows * columns,), (rows, columns)) == (rows, columns)
