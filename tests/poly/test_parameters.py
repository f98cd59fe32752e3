"""What integer sets are told of the sizes of a model."""

from __future__ import annotations

import islpy as isl
import pytest

from polyc.poly.conditions import FAR, conditions, sizes_about
from polyc.poly.parameters import assumed_of, follows_from_told, told_of
from polyc.types.derived import Derived
from polyc.types.ranges import SizeRange, assume, assumed_ranges
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
        assert conditions(assumed_ranges()) == told


def test_what_a_model_needs_of_sizes():
    n = Size.of("size_n")
    needs = (n * -1 + FAR, n * -1 + (FAR - 1), n - 3)
    with assume([SizeRange("size_n", 1, None, needs=needs)]):
        assert conditions(assumed_ranges()) == [
            "1 <= size_n",
            f"-size_n + {FAR - 1} >= 0",
            "size_n - 3 >= 0",
        ]


H, N, Q, R, S = map(Size.of, "hnqrs")


def floor(size, divisor):
    return Size.of(Derived("floor", size, divisor))


LAYERS = [
    SizeRange("h", 3, 2048),
    SizeRange("n", 0, 3234),
    SizeRange("m", 0, 9, same=Size.of(Derived("min", N, 9))),
    SizeRange("q", 1, 682, same=floor(H, 3)),
    SizeRange("r", 1, 1024, same=floor(H, 2)),
]


def groups(*names):
    return {"".join(sorted(group)) for group in sizes_about(frozenset(names))}


def test_sizes_are_told_of_by_what_they_follow_from():
    with assume(LAYERS):
        assert groups("r", "m") == {"hr", "mn"}
        assert groups("h") == {"h"}
        assert groups("q", "r") == {"hqr"}
        assert assumed_of(frozenset("r")).is_equal(isl.Set("[r] -> { : 1 <= r <= 1024 }"))
        both = isl.Set(
            "[q, r] -> { : 3q <= 2r + 1 and 2r <= 3q + 2 and 1 <= q and 1 <= r <= 1024 }"
        )
        assert assumed_of(frozenset("qr")).is_subset(both)


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        (SizeRange("q", 7, 682, same=floor(H, 3)), "q"),  # it says that h is at least 21
        (
            SizeRange("q", 1, 682, same=floor(H, 3), needs=(Size.of("q") - Size.of("r") + 400,)),
            "qr",
        ),
    ],
)
def test_sizes_that_say_more_than_follows_are_told_of_as_well(changed, more):
    with assume([*(size for size in LAYERS if size.name != "q"), changed]):
        assert groups("h") == {"".join(sorted({"h", *more}))}


def test_what_a_call_finds_says_nothing_of_how_much_there_may_be():
    found = SizeRange("f", 0, None, needs=(N - Size.of("f"),), most=N)
    with assume([*LAYERS, found]):
        assert groups("n") == {"n"}
        assert groups("f") == {"fn"}


def test_sums_are_told_of_by_the_parts_that_are_named():
    parts = [SizeRange(name, 0, 50) for name in "abcdefghij"]
    sums = [
        SizeRange(
            "s", 0, 350, same=Size.of(Derived("sum", sum(map(Size.of, "abcdef")), Size.of("g")))
        ),
        SizeRange(
            "t", 0, 500, same=Size.of(Derived("sum", Size.of("s") + Size.of("h"), Size.of("i")))
        ),
    ]
    with assume([*parts, *sums]):
        assert told_of(frozenset("st")).is_equal(isl.Set("[s, t] -> { : 0 <= s <= t }"))
        chosen = assumed_of(frozenset("sth"))
        assert chosen.is_equal(isl.Set("[s, t, h] -> { : 0 <= s and 0 <= h <= 50 and s + h <= t }"))
        whole = isl.Set("[s, t, h, i] -> { : t = s + h + i and 0 <= s and 0 <= h, i <= 50 }")
        assert assumed_of(frozenset("sthi")).is_equal(whole)
        assert groups("a", "t") == {"at"}


def test_what_follows_from_what_is_told():
    n, m = Size.of("size_n"), Size.of("size_m")
    least = SizeRange("size_m", 0, 9, same=Size.of(Derived("min", n, 9)))
    with assume([SizeRange("size_n", 0), least]):
        assert follows_from_told(n - m)
        assert not follows_from_told(m - 1)
        assert not follows_from_told(n * m)  # which it is, but no set can say so
