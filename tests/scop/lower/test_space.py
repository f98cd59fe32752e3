"""Boxes of iterators are remembered when they are equal, and keep the names of their own."""

from __future__ import annotations

from polyc.scop.lower.space import Space


def test_equal_boxes_have_their_own_names():
    rows = Space("S", {"i": 3, "j": 20}).domain
    again = Space("T", {"n": 3, "o": 20}).domain
    assert str(rows) == "{ S[i, j] : 0 <= i <= 2 and 0 <= j <= 19 }"
    assert str(again) == "{ T[n, o] : 0 <= n <= 2 and 0 <= o <= 19 }"
