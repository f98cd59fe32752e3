"""Peeling: the same instances in the same order, and bounds that are constant afterwards."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.peel import peel
from polyc.loopnest.index import Compare, Logic, const, extremum, floordiv, var
from polyc.loopnest.nodes import Block, For, If, Local, extent_of, walk_nodes
from polyc.loopnest.ranges import Known, interval, simplify_condition, simplify_index
from polyc.types.ranges import SizeRange, assume
from tests.analysis.nests import F32, at, loop, read, run, when
from tests.loopnest.execute import execute, instances
from tests.loopnest.indices import CONDITIONS, INDICES, VALUES, evaluate, holds

t, p, u = var("t"), var("p"), var("u")
RANGES = dict.fromkeys("abc", (-20, 20))


def step(*index):
    return run("S", list(index), at("Y", *index), read("X", *index))


def tiled(extent: int, tile: int, *body, kind="sequential"):
    """for t step tile: for p in 0 .. min(tile, extent - t)."""
    bound = extremum("min", (const(tile), const(extent) - t))
    return loop("t", extent, loop("p", bound, *body, kind="vector"), step=tile, kind=kind)


def loops(block: Block) -> list[For]:
    return [n for n in walk_nodes(block) if isinstance(n, For)]


def test_the_partial_tile_becomes_code_of_its_own():
    before = Block((tiled(50, 16, step(t + p)),))
    after = peel(before)
    assert [(x.var, extent_of(x), x.kind) for x in loops(after)] == [
        ("t", 3, "sequential"),
        ("p", 16, "vector"),
        ("p", 2, "vector"),
    ]
    assert list(instances(after)) == list(instances(before))


def test_whole_tiles_stay_one_loop():
    after = peel(Block((tiled(48, 16, step(t + p)),)))
    assert [extent_of(x) for x in loops(after)] == [3, 16]


def test_a_single_tile_needs_no_loop():
    after = peel(Block((tiled(11, 16, step(t + p), kind="parallel"),)))
    assert [(x.var, extent_of(x)) for x in loops(after)] == [("p", 11)]


def tiles_in_tiles(rows: int, inner: int, tile: int, kind="parallel") -> Block:
    """for t: for u in the `inner` tiles of t: for p in 0 .. min(tile, rows - tile u)."""
    bound = extremum("min", (const(tile), const(rows) - u * tile))
    within = loop("u", const(0), loop("p", bound, step(u * tile + p), kind="vector"))
    within = replace(within, lower=t * inner, upper=t * inner + inner)
    return Block((loop("t", -(-rows // (inner * tile)), within, kind=kind),))


@pytest.mark.parametrize(("rows", "whole"), [(3137, 24), (3150, 25), (3134, 24)])
def test_the_last_of_tiles_within_the_last_tile_is_code_of_its_own(rows, whole):
    """56 x 56 patches and a token: all 25 tiles were loops of unknown extent, a fifth as fast."""
    before = tiles_in_tiles(rows, 7, 18)
    after = peel(before)
    assert list(instances(after)) == list(instances(before))
    assert all(extent_of(x) is not None for x in loops(after))
    assert [extent_of(x) for x in loops(after) if x.var == "t"] == [whole]


def test_partial_tiles_of_what_has_fewer_rows_become_code_of_their_own():
    """Taps of a window that the frame cuts short, in the tiles of one that it does not."""
    short = loop("p", extremum("min", (const(26), const(77) - t)), step(t + p), kind="unroll")
    whole = loop("p", extremum("min", (const(26), const(129) - t)), step(t + p), kind="unroll")
    before = Block((loop("t", 129, whole, short, step=26),))
    after = peel(before)
    assert list(instances(after)) == list(instances(before))
    assert [extent_of(x) for x in loops(after)] == [2, 26, 26, 26, 25, 26, 25]


def test_where_many_iterations_are_partial_they_stay_one_loop():
    """Code of their own would be as long as the rest, several times."""
    row = loop("p", extremum("min", (const(20), const(60) - t * 2)), step(t, p), kind="vector")
    before = Block((loop("t", 30, row),))
    after = peel(before)
    assert list(instances(after)) == list(instances(before))
    assert [extent_of(x) for x in loops(after)] == [29, None, 2]


def test_tiles_that_every_iteration_ends_partly_stay_one_loop():
    """Columns in a tile of their own say nothing of the loop around."""
    before = Block((loop("u", 9, tiled(50, 16, step(t + p))),))
    assert [extent_of(x) for x in loops(peel(before)) if x.var == "u"] == [9]


@given(st.integers(1, 40), st.integers(1, 17), st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_nested_tiles_run_the_same_instances(extent, tile, other, size):
    v, w = var("v"), var("w")
    bound = extremum("min", (const(size), const(other) - v))
    inner = loop("v", other, loop("w", bound, step(t + p, v + w)), step=size)
    before = Block((tiled(extent, tile, inner),))
    after = peel(before)
    assert list(instances(after)) == list(instances(before))
    assert all(extent_of(x) is not None for x in loops(after))


def test_loops_of_nothing_and_decided_guards_disappear():
    never = when(Compare("ge", t - 10), step(t))
    always = when(Compare("ge", t), step(t))
    after = peel(Block((loop("t", 10, never, always), loop("u", 0, step(u)))))
    assert list(instances(after)) == [("S", (k,)) for k in range(10)]
    assert [x.var for x in loops(after)] == ["t"]
    assert not any(isinstance(n, If) for n in walk_nodes(after))
    otherwise = If(Compare("ge", const(-1)), Block((step(0),)), Block((step(1),)))
    assert peel(Block((otherwise,))) == Block((Block((step(1),)),))


@given(
    st.integers(1, 60),
    st.integers(1, 17),
    st.sampled_from([4, 16, 32]),
    st.sampled_from(["vector", "unroll"]),
    st.sampled_from([(), ("X",)]),
)
@settings(max_examples=120, deadline=None)
def test_the_rest_of_an_open_tile_lies_where_the_tile_does(size, tile, simd_bytes, kind, far):
    """What is stored tile by tile: Y[t / tile][p], by way of a local array that begins at 0."""
    n = var("n")
    bound = extremum("min", (const(tile), n - t))
    fill = loop("p", bound, run("S", [t + p], at("own", p), read("X", t + p)), kind=kind)
    panel = at("Y", floordiv(t, tile), p)
    empty = loop("p", bound, run("R", [t + p], panel, read("own", p)), kind=kind)
    local = Local("own", F32, (tile,), "X")
    before = Block((loop("t", n, fill, empty, step=tile, locals=[local]),))
    with assume([SizeRange("n", 1, None, hint=20)]):  # few tiles
        after = peel(before, ["n"], simd_bytes, far)
    results = []
    for nest in (before, after):
        panels = np.zeros((-(-size // tile), tile), np.float32)
        execute(nest, {"X": np.arange(1, size + 1, dtype=np.float32), "Y": panels}, {"n": size})
        results.append(panels)
    np.testing.assert_array_equal(results[1], results[0])
    assert set(instances(after, {"n": size})) == {
        (name, (k,)) for name in "SR" for k in range(size)
    }


@pytest.mark.parametrize("size", [1, 2, 5, 6, 7, 11, 12, 17])
@pytest.mark.parametrize("inside", [True, False])
def test_rows_that_a_later_part_counts_by_itself_are_cut_with_the_tile(size, inside):
    """A part of a fused tile goes from row t to t + 6, beside one whose rows are written out.

    inside: it has tiles of its own there, which end by themselves: then the tile is not cut.
    """
    n, q = var("size_n"), var("q")
    left = extremum("min", (const(6), n - t))
    fill = loop("p", left, run("S", [t + p], at("own", p), read("X", t + p)), kind="unroll")
    end = extremum("min", (t + 6, n))
    row = run("R", [u], at("Y", u), read("own", u - t))
    if inside:
        many = extremum("min", (const(3), end - q))
        row = loop("u", many, run("R", [q + u], at("Y", q + u), read("own", q + u - t)))
    rows = replace(loop("q" if inside else "u", end, row, step=3 if inside else 1), lower=t)
    local = Local("own", F32, (6,), "X")
    before = Block((loop("t", n, fill, rows, step=6, locals=[local]),))
    with assume([SizeRange("size_n")]):
        after = peel(before, ["size_n"], 16)
    results = []
    for nest in (before, after):
        found = np.zeros(size, np.float32)
        values = {"size_n": size}
        execute(nest, {"X": np.arange(1, size + 1, dtype=np.float32), "Y": found}, values)
        results.append(found)
    np.testing.assert_array_equal(results[1], results[0])
    assert sorted(instances(after, values)) == sorted(instances(before, values))
    written = [x for x in loops(after) if x.kind == "unroll"]
    assert all(extent_of(x) is not None for x in written) == (not inside)


def test_bounds_of_an_outer_variable_stay():
    triangle = Block((loop("t", 6, loop("p", t + 1, step(t, p))),))
    assert list(instances(peel(triangle))) == list(instances(triangle))


@given(INDICES, VALUES)
@settings(max_examples=150, deadline=None)
def test_intervals_hold_the_value_and_simplifying_keeps_it(index, values):
    low, high = interval(index, RANGES)
    assert low <= evaluate(index, values) <= high
    assert evaluate(simplify_index(index, RANGES), values) == evaluate(index, values)


@given(INDICES, INDICES, VALUES)
@settings(max_examples=150, deadline=None)
def test_intervals_hold_the_value_where_facts_are_true(fact, index, values):
    fact = fact - evaluate(fact, values)  # so that it is
    low, high = interval(index, Known(RANGES).and_facts(fact))
    assert low <= evaluate(index, values) <= high


def test_what_is_less_than_a_minimum_is_less_than_each():
    a, b, c = map(var, "abc")
    known = Known(RANGES).and_facts(extremum("min", (a, b)) * 2 - c)
    assert interval(a * 2 - c, known)[0] == interval(b * 2 - c, known)[0] == 0
    known = Known(RANGES).and_facts(c - extremum("max", (a, b - 3)))
    assert interval(c - b + 3, known)[0] == 0


@given(CONDITIONS, VALUES)
@settings(max_examples=150, deadline=None)
def test_simplifying_a_condition_keeps_its_truth(condition, values):
    assert holds(simplify_condition(condition, RANGES), values) == holds(condition, values)


@pytest.mark.parametrize(
    ("condition", "simple"),
    [
        (Compare("ge", t), Logic("and", ())),
        (Compare("ge", t - 5), Logic("or", ())),
        (Compare("ge", t - 4), Compare("ge", t - 4)),
        (Compare("eq", t + 1), Logic("or", ())),
        (Logic("and", (Compare("ge", t), Compare("ge", t - 4))), Compare("ge", t - 4)),
        (Logic("or", (Compare("ge", t), Compare("ge", t - 4))), Logic("and", ())),
    ],
)
def test_conditions_that_the_ranges_decide(condition, simple):
    assert simplify_condition(condition, {"t": (0, 4)}) == simple


def test_minima_that_the_ranges_decide():
    bound = extremum("min", (const(16), const(50) - t)) + floordiv(u, 2)
    assert simplify_index(bound, {"t": (0, 34)}) == const(16) + floordiv(u, 2)
    assert simplify_index(bound, {"t": (0, 35)}) == bound


def test_a_loop_that_executes_nothing_goes():
    never = when(Compare("ge", const(-1) - u), loop("p", 4, step(p, u), kind="vector"))
    after = peel(Block((loop("u", 3, loop("t", 5, never, kind="parallel"), step(u, u)),)))
    assert [x.var for x in loops(after)] == ["u"]
    after = peel(Block((loop("t", 5, loop("u", 3, never)), step(1, 1))))
    assert [type(n).__name__ for n in after.body] == ["Assign"]


@pytest.mark.parametrize("extent", [1, 4, 15, 16, 17, 31, 32, 33, 48, 79])
def test_the_first_tile_by_itself_is_not_cut_with_what_is_left(extent):
    """As isl writes it where a set has several parts: its place is known, and not the loop's."""
    n = var("size_n")
    bound = extremum("min", (const(32), n - t))
    behind = loop("p", bound, step(t + p), kind="vector")
    first = loop("p", extremum("min", (const(32), n)), step(p), kind="vector")
    body = If(Compare("ge", t - 32), Block((behind,)), Block((first,)))
    before = Block((loop("t", n, body, step=32, kind="parallel"),))
    after = peel(before, ["size_n"], 64)
    values = {"size_n": extent}
    assert sorted(instances(after, values)) == sorted(instances(before, values))


@pytest.mark.parametrize("extent", [1, 4, 15, 16, 17, 31, 32, 33, 48, 79])
def test_what_is_left_of_an_open_tile_is_cut(extent):
    n = var("size_n")
    inner = loop("p", extremum("min", (const(32), n - t)), step(t + p), kind="vector")
    before = Block((loop("t", n, inner, step=32, kind="parallel"),))
    after = peel(before, ["size_n"], 64)
    assert [x.step for x in loops(after) if x.var == "t"] == [32, 16, 16]
    values = {"size_n": extent}
    assert sorted(instances(after, values)) == sorted(instances(before, values))


@pytest.mark.parametrize("size", range(1, 30))
def test_a_register_tile_as_high_as_the_tile_around_is_cut_with_it(size):
    """Beside a part whose register tiles are lower, and loops over them therefore."""
    n = var("n")
    lower = loop("p", extremum("min", (const(4), n - u)), step(u + p), kind="unroll")
    inner = loop("u", extremum("min", (t + 8, n)), lower, step=4)
    inner = replace(inner, lower=t)
    bound = extremum("min", (const(8), n - t))
    fill = loop("p", bound, run("F", [t + p], at("own", p), read("X", t + p)), kind="unroll")
    empty = loop("p", bound, run("R", [t + p], at("Y", t + p), read("own", p)), kind="unroll")
    own = Block((fill, empty), (Local("own", F32, (8,), "X"),))
    before = Block((loop("t", n, inner, own, step=8),))
    after = peel(before, ["n"], 64)
    assert all(extent_of(x) for x in loops(after) if x.kind == "unroll")
    assert set(instances(after, {"n": size})) == set(instances(before, {"n": size}))
    assert len(list(instances(after, {"n": size}))) == 3 * size
    results = []
    for nest in (before, after):
        arrays = {"X": np.arange(1, size + 1, dtype=np.float32), "Y": np.zeros(size, np.float32)}
        execute(nest, arrays, {"n": size})
        results.append(arrays["Y"])
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.parametrize(
    ("hint", "far", "heights"),
    [(64, ["X"], [8, 6, 4, 3, 2, 1]), (65, ["X"], [8, 4, 2, 1]), (64, ["Y"], [8, 4, 2, 1])],
)
def test_few_tiles_that_read_from_afar_leave_rests_of_more_heights(hint, far, heights):
    n = var("n")
    rows = loop("p", extremum("min", (const(8), n - t)), step(t + p), kind="unroll")
    before = Block((loop("t", n, rows, step=8),))
    with assume([SizeRange("n", 1, None, hint=hint)]):
        after = peel(before, ["n"], 64, far)
    assert [x.step for x in loops(after) if x.var == "t"] == heights
    for size in range(1, 20):
        values = {"n": size}
        assert list(instances(after, values)) == list(instances(before, values))


@pytest.mark.parametrize("kind", ["vector", "unroll"])
@pytest.mark.parametrize("size", range(1, 24))
def test_what_ends_before_it_begins_has_no_rest(size, kind):
    """A loop to n - 5: of 1 there is nothing left that would begin before the first."""
    n = var("size_n") - 5
    inner = loop("p", extremum("min", (const(8), n - t)), step(t + p), kind=kind)
    before = Block((loop("t", n, inner, step=8),))
    with assume([SizeRange("size_n")]):
        after = peel(before, ["size_n"], 16)
    values = {"size_n": size}
    assert sorted(instances(after, values)) == sorted(instances(before, values))
    with assume([SizeRange("size_n", 5)]):
        after = peel(before, ["size_n"], 16)
    assert not any("max" in str(x.lower) for x in loops(after))


@pytest.mark.parametrize("size", [1, 16, 100, 288, 289, 520, 576, 640])
def test_what_ends_before_a_tile_begins_has_no_rest_there(size):
    """Rows are a multiple of 128, and what follows is of fewer: of none, in the last tile of 288.

    The rest began at a tile before 0, and did rows of the tile around it again.
    """
    n, rows = var("size_n"), floordiv(var("size_n") + 127, 128) * 128
    within = extremum("min", (const(16), n - t - u))
    inner = loop("p", within, step(t + u + p), kind="vector")
    tiles = loop("u", extremum("min", (const(288), n - t)), inner, step=16)
    whole = loop("q", extremum("min", (const(288), rows - t)), step(t + var("q")), kind="vector")
    before = Block((loop("t", rows, whole, tiles, step=288),))
    with assume([SizeRange("size_n")]):
        after = peel(before, ["size_n"], 64)
    values = {"size_n": size}
    assert list(instances(after, values)) == list(instances(before, values))


def test_arguments_that_never_decide_go():
    t, i = var("t"), var("i")
    bound = extremum("min", (const(10), t * -1 + 30, i))
    ranges = {"t": (0, 11), "i": (0, 13)}
    assert simplify_index(bound, ranges) == extremum("min", (const(10), i))
    assert simplify_index(bound, {"t": (0, 25), "i": (0, 13)}) == bound
    assert simplify_index(extremum("max", (i, t, i + 0)), {}) == extremum("max", (i, t))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["vector", "unroll"])
@pytest.mark.parametrize("more", [0, 1])
def test_the_last_tile_may_end_behind_the_last_place_where_one_begins(size, kind, more):
    """Of 16 n in tiles of 6 none begins at 16 n - 1: isl says so by the end of the loop."""
    n = var("size_n") * 16
    inner = loop("p", extremum("min", (const(6), n - t)), step(t + p), kind=kind)
    before = Block((loop("t", n - more, inner, step=6),))
    with assume([SizeRange("size_n", 1, 4)]):
        after = peel(before, ["size_n"], 16)
    values = {"size_n": size}
    assert sorted(instances(after, values)) == sorted(instances(before, values))
    assert any(x.step == 6 for x in loops(after))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_rows_along_a_diagonal_of_a_tile_that_ends_later(size):
    """Two rows are left behind the last place: a tile is no lower than that."""
    n, i, r = var("size_n") * 16, var("i"), var("r")
    first, last = extremum("max", (const(0), i - 2)), extremum("min", (const(6), n - t, i + 1))
    taps = loop("r", last, step(t + r, i), kind="unroll")
    taps = replace(taps, lower=first)
    rows = loop("i", extremum("min", (const(8), n - t + 2)), taps, kind="unroll")
    before = Block((loop("t", n - 1, rows, step=6),))
    with assume([SizeRange("size_n", 1, 4)]):
        after = peel(before, ["size_n"], 16)
    values = {"size_n": size}
    assert sorted(instances(after, values)) == sorted(instances(before, values))
