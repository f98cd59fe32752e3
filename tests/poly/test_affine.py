"""isl's affine functions as numbers."""

import islpy as isl
import pytest

from polyc.poly.affine import (
    coefficients,
    estimated_extents,
    exact_extents,
    is_divided,
    outputs,
    plain_iterator,
    shifted_iterator,
    simplify,
    single_aff,
)
from polyc.types.ranges import SizeRange, assume

MIXED = isl.PwMultiAff("{ S[i, j] -> A[2i + floor(j/3), i + 4, 7, j mod 5] }")
PIECES = isl.PwAff("{ S[i, j] -> [i] : j < 2; S[i, j] -> [3] : j >= 2 }")


def test_coefficients_are_none_where_the_iterator_is_divided():
    assert [coefficients(pw) for pw in outputs(MIXED)] == [(2, None), (1, 0), (0, 0), (0, None)]


def test_a_quotient_of_an_iterator_alone():
    function = isl.PwAff("{ S[i, j, k] -> [i + floor((j + 1)/2) + k + floor(k/3)] }")
    assert [is_divided(function, position) for position in range(3)] == [False, True, False]
    twice = isl.PwAff("{ S[i, j] -> [2*floor(i/2) + floor(2j/3)] }")
    assert [is_divided(twice, position) for position in range(2)] == [False, False]


def test_a_piecewise_function_moves_with_what_its_pieces_mention():
    assert coefficients(PIECES) == (None, None)  # the domains of the pieces depend on j
    fixed = isl.PwAff("{ S[i, j] -> [1] : j < 2; S[i, j] -> [3] : j >= 2 }")
    assert coefficients(fixed)[0] == 0


def test_a_plain_iterator_is_one_iterator_and_a_constant():
    plain = [plain_iterator(pw) for pw in outputs(MIXED)]
    assert plain == [None, (0, 4), None, None]
    assert plain_iterator(isl.PwAff("{ S[i, j] -> [i + j] }")) is None
    assert plain_iterator(isl.PwAff("{ S[i, j] -> [j] : i > 2 }")) == (1, 0)
    assert plain_iterator(PIECES) is None
    moved = isl.PwAff("[n] -> { S[i, j] -> [j + 2n + 5] }")
    assert plain_iterator(moved) is None
    assert shifted_iterator(moved) == (1, (("", 5), ("n", 2)))


def test_a_function_of_one_piece_is_an_aff_and_of_several_is_none():
    aff = single_aff(isl.PwAff("{ S[i] -> [3i + 1] : i > 0 }"))
    assert aff is not None
    assert aff.get_coefficient_val(isl.dim_type.in_, 0) == 3
    assert single_aff(PIECES) is None


def test_simplify_drops_the_divisions_that_a_domain_makes_idle():
    domain = isl.Set("{ S[i, j] : 0 <= i < 4 and 0 <= j < 7 }")
    function = isl.PwMultiAff("{ S[i, j] -> A[floor((7i + j)/7), (7i + j) mod 7] }")
    simple = simplify(function, domain)
    assert [plain_iterator(pw) for pw in outputs(simple)] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("function", "simple"),
    [
        ("floor((64 h + 256 i + d)/4096)", "floor(i/16)"),
        ("floor((64 h + 256 i + d)/64)", "4 i + h"),
        ("floor((64 h - 256 i + d)/4096)", "floor((-i)/16)"),
        ("floor((64 h + 256 i + d + 512)/4096)", "floor((i + 2)/16)"),
        ("(64 h + 256 i + d) mod 4096", "256*(i mod 16) + 64 h + d"),
        ("floor((256 i + d)/4096) - 7*floor((64 h + d)/128)", "floor(i/16) - 7*floor(h/2)"),
    ],
)
def test_simplify_takes_out_of_quotients_what_never_carries(function, simple):
    domain = isl.Set("{ S[h, i, d] : 0 <= h < 4 and 0 <= i < 32 and 0 <= d < 64 }")
    given = isl.PwMultiAff(f"{{ S[h, i, d] -> [({function})] }}")
    expected = isl.PwMultiAff(f"{{ S[h, i, d] -> [({simple})] }}")
    found = simplify(given, domain)
    assert found.plain_is_equal(expected)
    assert found.intersect_domain(domain).is_equal(given.intersect_domain(domain))


@pytest.mark.parametrize(
    "function",
    [
        "floor((64 h + 256 i + d + 3)/4096)",  # 3*64 + 63 + 3 carries
        "floor((65 h + 256 i + d)/4096)",
        "floor((64 h + 96 i + d)/1024)",
    ],
)
def test_simplify_keeps_what_may_carry(function):
    domain = isl.Set("{ S[h, i, d] : 0 <= h < 4 and 0 <= i < 32 and 0 <= d < 64 }")
    given = isl.PwMultiAff(f"{{ S[h, i, d] -> [({function})] }}")
    assert simplify(given, domain).plain_is_equal(given)


def test_simplify_keeps_an_iterator_of_extent_one():
    domain = isl.Set("{ S[i, j] : i = 0 and 0 <= j < 7 }")
    function = isl.PwMultiAff("{ S[i, j] -> A[i, j] }")
    kept = simplify(function, domain)
    assert [plain_iterator(pw) for pw in outputs(kept)] == [(0, 0), (1, 0)]


def test_simplify_leaves_a_function_that_is_not_defined_on_the_whole_domain():
    domain = isl.Set("{ S[i] : 0 <= i < 9 }")
    function = isl.PwMultiAff("{ S[i] -> A[i mod 4] : i < 5 }")
    assert simplify(function, domain).is_equal(function)


@pytest.mark.parametrize(
    ("domain", "extents"),
    [
        ("{ S[i, j] : 0 <= i < 5 and 0 <= j <= i }", (5, 5)),
        ("{ S[i, j] : i = 0 and 2 <= j <= 6 }", (1, 7)),
        ("[n] -> { S[i, j] : 0 <= i < n and 0 <= j < 4 and n <= 9 }", (None, 4)),
        # For sizes of 300 and more, which nobody expects, i takes four values.
        ("[n] -> { S[i] : 0 <= i < 4 and (n >= 300 or i = 0) }", (4,)),
        ("{ S[i] : 1 = 0 }", (0,)),
    ],
)
def test_exact_extents_are_those_of_all_sizes(domain, extents):
    found = isl.Set(domain)
    assert exact_extents(found) == extents


def test_estimated_extents_reach_from_the_origin():
    assert estimated_extents(isl.Set("{ S[i, j] : 0 <= i < 5 and 2 <= j <= 6 }")) == (5, 7)
    assert estimated_extents(isl.Set("{ S[i, j] : 0 <= i < 5 and 0 <= j <= i }")) == (5, 5)
    assert estimated_extents(isl.Set("{ S[] }")) == ()
    assert estimated_extents(isl.Set("{ S[i, j] : 1 = 0 }")) == (0, 0)
    with assume([SizeRange("n", hint=40)]):
        assert estimated_extents(isl.Set("[n] -> { S[i, j] : 0 <= i, j < n <= 30 }")) == (40, 40)
        assert estimated_extents(isl.Set("[n] -> { S[i] : n <= i <= 30 }")) == (1,)
    with assume([SizeRange("h", hint=40), SizeRange("w", hint=30)]):
        # Of y the bound speaks only by the quotient e, as where an image is cut after a shuffle.
        shuffled = """[h, w] -> { S[o, y, x] : exists d, e : 0 <= o < 12 and y >= 0 and e < h
            and 2y <= e <= 2y + 1 and o + 4y - 4d - 1 <= 2e <= o + 4y - 4d
            and x >= 0 and o + 4y + 2x - 4d - w < 2e }"""
        assert estimated_extents(isl.Set(shuffled)) == (12, 20, 15)
