"""Elements by their number: which arrays a loop that was several walks one by one."""

from __future__ import annotations

import islpy as isl

from polyc.promote.numbering import number_elements, renumber
from polyc.scop.scop import Array
from tests.analysis.nests import F32, ZERO, array, load, statement

PIXELS = isl.UnionPwAff("{ W[o, y, x] -> [(7y + x)]; R[o, y, x] -> [(7y + x)] }")
BOX = "0 <= o < 8 and 0 <= y < 7 and 0 <= x < 7"


def users(read: str):
    return [
        statement(f"{{ W[o, y, x] : {BOX} }}", "{ W[o, y, x] -> A[o, y, x] }", ZERO),
        statement(f"{{ R[o, y, x] : {BOX} }}", "{ R[o, y, x] -> Y[o, y, x] }", load(read)),
    ]


def numbered(read: str = "{ R[o, y, x] -> A[o, y, x] }", shape=(8, 7, 7), loops=(PIXELS,)):
    of: Array = array("A", list(shape), "temporary")
    assert of.dtype == F32
    return number_elements(of, users(read), loops)


def test_pixels_have_numbers():
    found = numbered()
    assert found is not None
    assert found.is_equal(isl.PwMultiAff("{ A[o, y, x] -> A[o, 7y + x] }"))


def test_accesses_that_differ_have_none():
    assert numbered("{ R[o, y, x] -> A[o, x, y] }") is None
    assert numbered("{ R[o, y, x] -> A[o, y, 0] }") is None
    assert numbered("{ R[o, y, x] -> A[o, y + 1, x] }") is None


def test_elements_that_would_share_a_number_have_none():
    assert numbered(shape=(8, 7, 8)) is None
    assert numbered(shape=(8, 9, 7)) is not None


def test_a_loop_over_some_of_the_users_numbers_nothing():
    assert numbered(loops=(isl.UnionPwAff("{ W[o, y, x] -> [(7y + x)] }"),)) is None
    assert numbered(loops=()) is None


def test_an_order_of_dimensions_has_the_number_where_its_last_one_was():
    numbers = isl.PwMultiAff("{ A[n, o, y, x] -> A[n, o, 7y + x] }")
    assert renumber((0, 2, 3, 1), numbers) == (0, 2, 1)
    assert renumber((2, 3, 0, 1), numbers) == (2, 0, 1)
