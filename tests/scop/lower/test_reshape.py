"""Reshape is a view that divides only where dimensions are really regrouped."""

import math

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import NotFixed
from polyc.scop.lower.movement.reshape import reshape_view
from polyc.types.sizes import Size
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.interpreter import evaluate_piecewise


@pytest.mark.parametrize(
    "case", backend_cases("Reshape", "Flatten", "Squeeze", "Unsqueeze"), ids=lambda case: case.name
)
def test_backend_case(case):
    assert len(check_case(case).statements) <= 1  # the copy into the output


@pytest.mark.parametrize(
    ("old", "new", "view"),
    [
        ((2, 3, 4), (6, 4), "[i0, i1] -> [floor(i0/3), i0 mod 3, i1]"),
        ((6, 4), (2, 3, 4), "[i0, i1, i2] -> [3*i0 + i1, i2]"),
        ((4, 6), (2, 2, 6), "[i0, i1, i2] -> [2*i0 + i1, i2]"),
        ((2, 12), (4, 6), "[i0, i1] -> [floor(i0/2), 6*(i0 mod 2) + i1]"),
        ((4, 6), (6, 4), "[i0, i1] -> [floor((4*i0 + i1)/6), (4*i0 + i1) mod 6]"),
        ((1, 5, 1), (5,), "[i0] -> [0, i0, 0]"),
        ((5,), (1, 5, 1), "[i0, i1, i2] -> [i1]"),
        ((1,), (), "[] -> [0]"),
        ((3, 8, 8, 5), (3, 64, 5), "[i0, i1, i2] -> [i0, floor(i1/8), i1 mod 8, i2]"),
    ],
)
def test_formulas(old, new, view):
    assert isl.PwMultiAff(reshape_view(old, new)).is_equal(isl.PwMultiAff(f"{{ {view} }}"))
    assert reshape_view(old, new).count("mod") == view.count("mod")


F, N = Size.of("h") // 4, Size.of("n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((F * 2 - 1, F), (F, F * 2 - 1)),
        ((N, 2 * N - 3), (2 * N - 3, N)),
        ((N - 1, 32), (4, N * 8 - 8)),
        ((N + 1, N - 1), (N * N - 1,)),
    ],
)
def test_what_would_divide_by_a_size_is_no_view(old, new):
    with pytest.raises(NotFixed, match="divides by a size"):
        reshape_view(old, new)


def test_what_a_size_is_computed_of_does_not_matter():
    view = reshape_view((N, F - 1, 8, 9), (N, F - 1, 72))
    same = "[i0, i1, i2] -> [i0, i1, floor(i2/9), i2 mod 9]"
    assert isl.PwMultiAff(view).is_equal(isl.PwMultiAff(f"{{ {same} }}"))


@st.composite
def shapes_of_equal_size(draw):
    """Two shapes that group the same prime factors in two ways, with 1s in between."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))

    def grouped():
        shape, rest = [], draw(st.permutations(factors))
        while rest:
            count = draw(st.integers(1, len(rest)))
            shape.append(math.prod(rest[:count]))
            rest = rest[count:]
        return tuple(shape)

    return grouped(), grouped()


@settings(max_examples=60, deadline=None)
@given(shapes_of_equal_size())
def test_equal_positions(shapes):
    old, new = shapes
    points = np.indices(new).reshape(len(new), -1).T
    view = isl.PwMultiAff(reshape_view(old, new))
    indices = [evaluate_piecewise(view.get_pw_aff(k), points)[0] for k in range(len(old))]
    assert (np.ravel_multi_index(indices, old) == np.arange(math.prod(old))).all()


@pytest.mark.parametrize(("old", "new"), [((0, 3), (3, 0)), ((2, 0), (0,)), ((0,), (4, 0, 2))])
def test_empty(old, new):
    scop = check_node("Reshape", [np.zeros(old), np.array(new)], {"allowzero": 1})
    assert scop.statements == ()
