"""Sizes known only at run time: arithmetic, comparisons, ranges, and what a call says."""

import contextlib
import math

import islpy as isl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyc.analysis.sizes import verify_sizes
from polyc.errors import NotFixed, ShapeError
from polyc.poly.parameters import assumptions, parameters_of
from polyc.types.call_sizes import measure_sizes, parse_size, read_sizes
from polyc.types.estimate import estimate, hinted
from polyc.types.needs import has_smaller, read_needs
from polyc.types.parameters import (
    Parameter,
    Renaming,
    complete,
    derive,
    find_derived,
    identify,
    with_needs,
)
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import MOST_ADDED, Size, add_up, bounds, divide, evaluate, greatest, least
from polyc.types.spec import TensorSpec

n, m = Size.of("n"), Size.of("m")

EXTENTS = st.recursive(
    st.one_of(st.integers(-5, 5), st.sampled_from([n, m])),
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner).map(
        lambda t: {"+": t[1] + t[2], "-": t[1] - t[2], "*": t[1] * t[2]}[t[0]]
    ) | st.tuples(inner, st.integers(1, 6)).map(lambda t: t[0] // t[1])
    | st.tuples(inner, inner).map(lambda t: least(*t)),
    max_leaves=6,
)  # fmt: skip
VALUES = st.fixed_dictionaries({"n": st.integers(1, 9), "m": st.integers(1, 9)})


@given(EXTENTS, EXTENTS, VALUES)
def test_arithmetic_is_that_of_the_values(a, b, values):
    x, y = evaluate(a, values), evaluate(b, values)
    assert evaluate(a + b, values) == x + y
    assert evaluate(a - b, values) == x - y
    assert evaluate(a * b, values) == x * y
    assert (a - b == 0) == (a == b)
    low, high = bounds(a)
    assert low <= x <= high
    quotient = divide(a, b)
    if quotient is not None:
        assert evaluate(quotient, values) * y == x


@given(EXTENTS, st.integers(1, 7), VALUES)
def test_quotients_are_rounded_down(a, divisor, values):
    assert evaluate(a // divisor, values) == evaluate(a, values) // divisor
    assert evaluate(-(-a // divisor), values) == -(-evaluate(a, values) // divisor)


@given(EXTENTS, EXTENTS, VALUES)
def test_the_smaller_of_two(a, b, values):
    assert evaluate(least(a, b), values) == min(evaluate(a, values), evaluate(b, values))


def test_equal_quotients_are_equal():
    for one, other in (((n - 1) // 2 + 1, (n + 1) // 2), (-(-n // 2), (n + 1) // 2),
                       (((n + 1) // 2 + 1) // 2, (n + 3) // 4), ((6 * n + 5) // 4, n + 1 + n // 2),
                       (n // 2 * 2 // 2, n // 2), (4 * n // 2, 2 * n)):  # fmt: skip
        assert one == other
    assert str((n + m - 1) // 2) == "floor((m + n + 1)/2) - 1"
    assert str(least(n, 512)) == "min(512, n)"


def test_what_follows_from_others_is_compared():
    assert bounds(n - n // 2 * 2) == (0, 1)
    assert (n + 3) // 4 <= (n + 1) // 2
    assert bounds(least(n, 512)) == (1, 512)
    with assume([SizeRange("n", needs=(n // 2 * 2 - n,))]):
        assert bounds(n - n // 2 * 2) == (0, 0)


@given(EXTENTS, EXTENTS, VALUES)
def test_what_is_decided_holds_for_all_values(a, b, values):
    x, y = evaluate(a, values), evaluate(b, values)
    for symbolic, plain in ((lambda: a < b, x < y), (lambda: a <= b, x <= y),
                            (lambda: a > b, x > y), (lambda: a >= b, x >= y)):  # fmt: skip
        with contextlib.suppress(NotFixed):
            assert symbolic() == plain


def test_sums_divide_sums():
    assert divide(n * 32 + m * 32, n + m) == 32
    assert divide(n * n + n * m * 2 + m * m, n + m) == n + m
    assert divide(n * n + m * m, n + m) is None


def test_kernels_are_chosen_for_calls_that_leave_room():
    """A state that grows by m: in the next call n is n + m, which is at most 64."""
    sizes = [SizeRange("n", 0, 64, 60, n + m), SizeRange("m", 1, 64)]
    with assume(sizes):
        assert (estimate(n), estimate(m)) == (32, 32)
    with assume([sizes[0], SizeRange("m", 1, 64, 1)]):
        assert (estimate(n), estimate(m)) == (60, 2)


def test_what_depends_on_the_value_is_refused():
    for ask in (lambda: n > 5, lambda: int(n), lambda: range(n), lambda: n // m, lambda: 7 // n,
                lambda: [1, 2][n], lambda: bool(n - 1), lambda: 7 % n, lambda: n / 2,
                lambda: 2 / n, lambda: n**2, lambda: float(n)):  # fmt: skip
        with pytest.raises(NotFixed, match="known only at run time"):
            ask()
    with assume([SizeRange("n", 6, 9)]):
        assert n > 5
        assert n - 10 < 0
        assert estimate(n * 2) == 18
    assert n == "n"
    assert n != 1
    assert str(n * m * 2 - 1) == "2*m*n - 1"


def test_kernels_are_chosen_for_loops_that_run():
    with assume([SizeRange("n", 1, None, 1), SizeRange("m", 1, 40)]):
        assert (estimate(n), estimate(m), estimate(7)) == (2, 40, 7)
        assert (hinted(n * 3), hinted(m), hinted(7)) == (3, 40, 7)
    assert (estimate(n), hinted(n)) == (128, 128)
    # Of all the rows of one image there are more than one, whose tiles are cut from so many.
    rows, area = Size.of("rows"), SizeRange("rows", same=n * m * m)
    with assume([SizeRange("n", 1, None, 1), SizeRange("m", 1, None, 7), area]):
        assert (estimate(rows), hinted(rows)) == (49, 49)
    with assume([SizeRange("n", 1, None, 1), SizeRange("m", 1, None, 1), area]):
        assert (estimate(rows), hinted(rows)) == (8, 1)


def test_a_hint_is_moved_to_where_what_is_needed_holds():
    """Of a frame of 400 samples there is none in 128."""
    n = Size.of("n")
    with assume([SizeRange("n", 1, hint=128, needs=(n - 400,))]):
        assert hinted(n) == 400
        assert hinted((n - 400) // 160 + 1) == 1


@given(st.lists(EXTENTS, min_size=1, max_size=3), VALUES)
def test_what_is_assumed_holds_in_every_call(extents, values):
    """Also of products of what may be negative: no set is empty, and none lacks a call."""
    derived, products = find_derived(extents)
    known = Renaming(identify(["n", "m", *derived]), products)
    with assume([]):
        told = [Parameter.of(SizeRange(name), known) for name in ("n", "m")]
        sizes = (*told, *derive(derived, known))
    of_call = complete(sizes, {f"size_{name}": value for name, value in values.items()})
    with assume(sizes):
        found = assumptions()
        assert all(size.admits(of_call[size.name]) for size in sizes)
        for extent in extents:
            low, high = bounds(known.extent(extent))
            assert low <= evaluate(extent, values) <= high
        assert verify_sizes(sizes) > 10
    for position, name in enumerate(parameters_of(found)):
        found = found.fix_val(isl.dim_type.param, position, isl.Val(of_call[name]))
    assert not found.is_empty()


def test_what_is_needed_decides_several_times_over():
    """h >= 2 once for each h: 3 - 2*h is negative, and so is what it is multiplied with."""
    with assume([SizeRange("n", needs=(n - 2,))]):
        assert bounds(n * 2 - 3) == (1, math.inf)
        assert least(3 - n * 2, 0) == 3 - n * 2
    assert bounds(least(3 - n * 2, 0) * m) == (-math.inf, 0)
    with assume([SizeRange("n", needs=((n + 1) // 4 - 2,))]):
        assert bounds(n - 3) == (4, math.inf)
    with assume([SizeRange("n", needs=((n + 20) // 40 - 2,))]):
        assert bounds(n // 20 - 3)[0] >= 0


def test_products_are_at_least_those_of_the_least():
    assert bounds((n * 2 - 1) * (m * 3 - 2)) == (1, math.inf)
    assert bounds((n - 2) * (m - 2)) == (-math.inf, math.inf)
    a, b = n // 16, m // 16
    with assume([SizeRange("m", needs=(b * 2 - 1,)), SizeRange("n", needs=(a * 2 - 1,))]):
        assert bounds((a * 2 - 1) * (b * 2 - 1)) == (1, math.inf)
        assert bounds(a) == (1, math.inf)
    with assume([SizeRange("n", 3)]):
        assert bounds(-(n - 2) * (m - 1) - 4) == (-math.inf, -4)


def test_what_is_needed_is_read_where_it_holds():
    """max(n//4 - 1, 0) - 3 is not negative where n//4 - 4 is not, and nowhere else."""
    frames = greatest(n // 4 - 1, 0)
    assert read_needs([frames - 3]) == (n // 4 - 4, frames - 3)
    assert read_needs([frames]) == (frames,)
    for value in range(1, 40):
        one, other = (evaluate(need, {"n": value}) for need in read_needs([frames - 3]))
        assert (one < 0) == (other < 0)
    assert has_smaller([3, n + frames // 2])
    assert not has_smaller([3, n // 4])


def test_kernels_are_chosen_for_the_hint_however_large_it_is():
    with assume([SizeRange("n", hint=224), SizeRange("m", 1, 200, 190)]):
        assert (estimate(n), estimate(n // 2), estimate(m)) == (224, 112, 190)
        assert (hinted(n), hinted(n * m)) == (224, 224 * 190)


def test_kernels_are_chosen_for_sizes_that_may_come_together():
    """What is needed of sizes holds for the values that they are taken for."""
    total, thirds = Size.of("t"), m // 3 * 3
    needs = (total - n - m, n + m - total, thirds - m)
    with assume(with_needs([SizeRange("n"), SizeRange("m"), SizeRange("t")], needs)):
        assert (estimate(n), estimate(m), estimate(total)) == (128, 126, 254)
    with assume([SizeRange("n", needs=(n - 300,)), SizeRange("m", needs=(m - total, total - m))]):
        assert (estimate(n), estimate(m) == estimate(total)) == (300, True)


def test_identifiers_are_apart():
    names = identify(["batch size", "batch-size", "n", "…"])
    assert len(set(names.values())) == 4
    assert all(name.isidentifier() and name.startswith("size_") for name in names.values())


def test_sizes_of_a_call():
    specs = [TensorSpec("x", np.dtype("f4"), ("n", 3)), TensorSpec("y", np.dtype("f4"), ("m", "n"))]
    assert measure_sizes("g", specs, [(5, 3), (2, 5)]) == {"n": 5, "m": 2}
    with pytest.raises(ShapeError, match=r"'y' has shape \(2, 4\), expected \(m, n\) where n"):
        measure_sizes("g", specs, [(5, 3), (2, 4)])
    with pytest.raises(ShapeError, match="compiled for n 6 to 9, but a call has n = 5"):
        measure_sizes("g", specs, [(5, 3), (2, 5)], [SizeRange("n", 6, 9)])


def test_ranges():
    assert read_sizes({"s": (1, 8), "b": 4}, {"s": 2, "t": 3}) == (
        SizeRange("b", 4, 4), SizeRange("s", 1, 8, 2), SizeRange("t", 1, None, 3),
    )  # fmt: skip


def test_sums_are_read_as_they_are_written():
    for size in (n + m, n * m * 2 - 1, n * 32 + m * 32, n * n, n - m + 3, (n - m) // 3 * 2 + 1,
                 least(n, m + 7), least((n + 1) // 2, 9) * m):  # fmt: skip
        assert parse_size(str(size)) == size
    for name in ("n", "batch size", "n +", "x:0", "2", "n m", "unk__5", ""):
        assert parse_size(name) == Size.of(name)


def test_a_size_that_is_a_sum_of_others():
    (total,) = read_sizes({"total": "past + seq"}, None)
    assert total.same == Size.of("past") + Size.of("seq")
    with pytest.raises(ShapeError, match="no sum of sizes"):
        read_sizes({"total": "past seq"}, None)
    mask = TensorSpec("mask", np.dtype(bool), ("past + seq",))
    ids = TensorSpec("ids", np.dtype(np.int64), ("seq",))
    sizes = measure_sizes("m", [ids, mask], [(2,), (7,)], (), {"past": 5})
    assert sizes == {"past": 5, "seq": 2, "past + seq": 7}
    with pytest.raises(ShapeError, match=r"past \+ seq = 6, where past = 5, seq = 2"):
        measure_sizes("m", [ids, mask], [(2,), (6,)], (), {"past": 5})


def _of_classes(count):
    """What is found of each of many classes, 0 to 3234, and at most 300 of it."""
    sizes = [SizeRange(f"f{k}", 0, 3234) for k in range(count)]
    return sizes, [least(Size.of(size.name), 300) for size in sizes]


def test_sums_of_many_smaller_ones_have_bounds():
    """Each is looked at by itself: together they have 2**90 cases."""
    sizes, best = _of_classes(90)
    with assume(sizes):
        assert bounds(sum(best)) == (0, 27_000)
        assert bounds(sum(best) - best[3] + Size.of("f3")) == (0, 26_700 + 3234)
        assert bounds(least(sum(best), 100) - 1) == (-1, 99)


def test_long_sums_have_names():
    sizes, best = _of_classes(20)
    with assume(sizes):
        starts = [add_up(best[:k]) for k in range(21)]
        assert max(len(start.factors) for start in starts[1:]) <= MOST_ADDED
        assert starts[MOST_ADDED] == sum(best[:MOST_ADDED])
        assert add_up([starts[9], best[9]]) == starts[10]
        assert bounds(starts[20]) == (0, 6000)
        assert bounds(starts[12] - starts[11])[0] == 0
        values = {size.name: 50 * k for k, size in enumerate(sizes)}
        for k, start in enumerate(starts):
            assert evaluate(start, values) == sum(min(50 * j, 300) for j in range(k))
        assert str(add_up([*map(Size.of, "abcdefgh")])) == "h + sum(a + b + c + d + e + f, g)"
