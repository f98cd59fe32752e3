"""What integer sets are told of the sizes of a model."""

from __future__ import annotations

import pytest

from polyc.poly.parameters import FAR, conditions
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size


@pytest.mark.parametrize(
    ("upper", "told"),
    [
        (FAR - 1, ["1 <= size_n", f"size_n <= {FAR - 1}"]),
        (FAR, ["1 <= size_n"]),
        (None, ["1 <= size_n"]),
    ],
)
def test_how_large_a_size_is_at_most(upper, told):
    with assume([SizeRange("size_n", 1, upper)]):
        assert conditions() == told


def test_what_a_model_needs_of_sizes():
    n = Size.of("size_n")
    needs = (n * -1 + FAR, n * -1 + (FAR - 1), n - 3)
    with assume([SizeRange("size_n", 1, None, needs=needs)]):
        assert conditions() == ["1 <= size_n", f"-size_n + {FAR - 1} >= 0", "size_n - 3 >= 0"]
