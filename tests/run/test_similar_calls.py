"""What calls that differ in extents only have in common."""

from hypothesis import given
from hypothesis import strategies as st

from polyc.run.similar_calls import MAX_KEPT, MAX_REFUSED, SimilarCalls, find_pattern, match

SHAPES = st.lists(st.lists(st.integers(1, 3), min_size=2, max_size=2).map(tuple),
                  min_size=2, max_size=2).map(tuple)  # fmt: skip


@given(st.lists(SHAPES, min_size=2, max_size=4))
def test_a_pattern_fits_the_calls_that_it_was_found_from(calls):
    pattern = find_pattern(calls)
    if pattern is None:
        assert len(set(calls)) == 1
        return
    for shapes in calls:
        values = match(pattern, shapes)
        assert values is not None
        assert tuple(tuple(values.get(d, d) for d in t) for t in pattern) == shapes


def test_extents_that_were_always_equal_have_one_name():
    pattern = find_pattern([((5, 8), (2, 5)), ((7, 8), (2, 7))])
    assert pattern == (("n0", 8), (2, "n0"))
    assert match(pattern, ((9, 8), (2, 9))) == {"n0": 9}
    assert match(pattern, ((9, 8), (2, 6))) is None
    assert match(pattern, ((9, 7), (2, 9))) is None
    assert match(pattern, ((0, 8), (2, 0))) is None


def test_nothing_is_like_nothing():
    assert find_pattern([((0, 8),), ((7, 8),)]) is None
    assert find_pattern([((7, 8),), ((7, 8),)]) is None


def test_what_was_made_is_found_again():
    calls = SimilarCalls()
    assert calls.find(((5,),)) is None
    assert calls.generalise(((5,),)) is None
    calls.keep("five", ((5,),), None)
    pattern = calls.generalise(((7,),))
    calls.keep("any", ((7,),), pattern)
    assert calls.find(((5,),)) == ("five", {})
    assert calls.find(((9,),)) == ("any", {"n0": 9})


def test_where_a_pattern_is_refused_a_narrower_one_is_tried():
    calls = SimilarCalls()
    calls.keep("a", ((2, 3),), None)
    calls.keep("b", ((4, 5),), None)
    assert calls.generalise(((4, 7),)) == (("n0", "n1"),)
    calls.refused.add((("n0", "n1"),))
    assert calls.generalise(((4, 7),)) == ((4, "n0"),)
    calls.refused.update(((k, "n0"),) for k in range(MAX_REFUSED))
    assert calls.generalise(((9, 5),)) is None


def test_the_least_recently_used_goes_first():
    calls = SimilarCalls()
    for n in range(MAX_KEPT):
        calls.keep(n, ((n,),), None)
    assert calls.find(((0,),)) == (0, {})
    calls.keep(-1, ((1000,),), None)
    assert calls.find(((1,),)) is None
    assert calls.find(((0,),)) == (0, {})
