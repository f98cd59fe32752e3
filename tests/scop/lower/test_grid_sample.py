"""GridSample in all modes and paddings, in one to three dimensions."""

import numpy as np
import pytest

from tests.scop.check import backend_cases, check_case, check_node

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("case", backend_cases("GridSample"), ids=lambda case: case.name)
def test_backend_case(case):
    check_case(case)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("spatial", [(5,), (4, 3), (2, 3, 4)], ids=str)
def test_positions_inside_and_far_outside(mode, padding, align, spatial):
    x = RNG.standard_normal((2, 2, *spatial)).astype(np.float32)
    grid = RNG.uniform(-2.5, 2.5, (2, *(3,) * len(spatial), len(spatial))).astype(np.float32)
    flags = {"mode": mode, "padding_mode": padding, "align_corners": align}
    check_node("GridSample", [x, grid], flags, rtol=1e-4, atol=1e-4)


def test_zeros_are_zeros_whatever_the_edge_is():
    x = np.full((1, 1, 2, 2), np.inf, np.float32)
    grid = np.full((1, 1, 1, 2), 9, np.float32)
    expected = [np.zeros((1, 1, 1, 1), np.float32)]
    check_node("GridSample", [x, grid], {"mode": "nearest"}, expected=expected)
