"""Unions of what several accesses touch."""

import islpy as isl

from polyc.poly.coalesce import unite


def test_what_is_touched_alike_is_one_piece():
    parts = ["{ A[i] : 0 <= i < 4 }", "{ A[i] : i >= 0 and i <= 3 }", "{ A[i] : 4 <= i < 9 }"]
    whole = unite(map(isl.Set, parts))
    assert whole.is_equal(isl.Set("{ A[i] : 0 <= i < 9 }"))
    assert whole.n_basic_set() == 1


def test_pieces_that_are_apart_stay_apart():
    whole = unite([isl.Set("{ A[i] : 0 <= i < 4 }"), isl.Set("{ A[i] : 6 <= i < 9 }")])
    assert whole.is_equal(isl.Set("{ A[i] : 0 <= i < 4 or 6 <= i < 9 }"))
