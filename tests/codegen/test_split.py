"""Splitting: the same instances in the same order, and interiors without conditions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.split import HALVES, split_loops
from polyc.loopnest import nodes
from polyc.loopnest.decided import drop_decided
from polyc.loopnest.index import Compare, Logic, const, decide, extremum, var
from polyc.loopnest.nodes import Assign, Block, For, If, Read, walk_expr, walk_nodes
from polyc.scop.expr import Call
from tests.analysis.nests import F32, ZERO, at, guarded, loop, read, run, when
from tests.loopnest.execute import assert_same, instances

i, j = var("i"), var("j")


def inside(*indices):
    return Logic("and", tuple(Compare("ge", index) for index in indices))


def chosen(condition, then, otherwise=ZERO):
    return Call("select", (nodes.Test(condition), then, otherwise), F32)


def loops(block: Block) -> list[For]:
    return [n for n in walk_nodes(block) if isinstance(n, For) and n.var == "j"]


def conditions(node) -> int:
    """Conditions below a node that are not decided."""
    count = 0
    for each in walk_nodes(node):
        count += isinstance(each, If)
        if isinstance(each, Assign):
            tests = (e for e in walk_expr(each.value) if isinstance(e, nodes.Test))
            count += sum(decide(e.condition) is None for e in tests)
    return count


def shifted(extent: int) -> Block:
    """Y[i][j] = X[i - 1][j - 1] if there is one, else 0."""
    value = chosen(inside(i - 1, j - 1), guarded("X", i - 1, j - 1))
    body = run("S", [i, j], at("Y", i, j), value)
    return Block((loop("i", extent, loop("j", extent, body, kind="simd")),))


def test_a_border_is_split_off_and_the_interior_asks_nothing():
    before = shifted(20)
    after = split_loops(before, [])
    lanes = [x for x in loops(after) if x.kind == "simd" and not conditions(x)]
    assert [(str(x.lower), str(x.upper)) for x in lanes] == [("1", "20")]
    assert list(instances(after)) == list(instances(before))
    (dense,) = [n for n in walk_nodes(drop_decided(lanes[0].body)) if isinstance(n, Assign)]
    assert dense.value == Read(at("X", i - 1, j - 1), F32)  # no longer guarded
    arrays = {"X": np.random.default_rng(1).random((20, 20)).astype(np.float32)}
    assert_same(before, drop_decided(after), {**arrays, "Y": np.zeros((20, 20), np.float32)})


def test_what_stands_under_an_open_condition_stays_guarded():
    other = inside(var("n") - 5)
    value = chosen(other, chosen(inside(j + 1), guarded("X", j)))
    body = Block((loop("j", 9, run("S", [j], at("Y", j), value)),))
    split = split_loops(body, [])  # of n nothing is known, and no loop binds it
    (read_,) = {
        e for n in walk_nodes(drop_decided(split)) if isinstance(n, Assign)
        for e in walk_expr(n.value) if isinstance(e, Read)
    }  # fmt: skip
    assert read_.guarded


def test_minima_and_maxima_in_subscripts_are_conditions():
    place = extremum("min", (const(29), extremum("max", (const(0), j - 1))))
    before = Block((loop("j", 30, run("S", [j], at("Y", j), read("X", place))),))
    after = split_loops(before, [])
    reads = [n.value.element.index for n in walk_nodes(after) if isinstance(n, Assign)]
    assert (j - 1,) in reads
    assert list(instances(after)) == list(instances(before))


def test_what_changes_in_the_middle_makes_halves():
    k = var("k")
    body = when(Compare("ge", j - k), run("S", [k, j], at("Y", j), read("X", k)))
    more = when(Compare("eq", j - k), run("T", [k, j], at("Y", j), read("X", j)))
    before = Block((loop("k", 40, loop("j", 40, body, more)),))
    after = split_loops(before, [])
    assert any(not conditions(x) for x in loops(after))
    assert list(instances(after)) == list(instances(before))


def test_growth_is_bounded():
    tests = [Compare("ge", j * 1 - var(name)) for name in "abcdefgh"]
    body = [when(t, run("S", [j], at("Y", j), read("X", j))) for t in tests]
    nest = loop("j", 1000, *body)
    for name in "abcdefgh":
        nest = loop(name, 900, nest)
    assert len(loops(split_loops(Block((nest,)), []))) <= 5 * HALVES


def test_a_loop_that_asks_nothing_stays_as_it_is():
    before = Block((loop("j", 30, run("S", [j], at("Y", j), read("X", j)), kind="simd"),))
    assert split_loops(before, []) == before


ATOMS = st.builds(
    lambda a, b, c, which: Compare(which, i * a + j * b + c),
    st.integers(-2, 2),
    st.integers(-3, 3),
    st.integers(-25, 25),
    st.sampled_from(["ge", "eq"]),
)
TESTS = st.one_of(
    ATOMS,
    st.builds(lambda w, parts: Logic(w, tuple(parts)), st.sampled_from(["and", "or"]),
              st.lists(ATOMS, min_size=1, max_size=3)),
)  # fmt: skip
BOUNDS = st.builds(lambda a, c: i * a + c, st.integers(-1, 1), st.integers(0, 24))


SEVERAL = st.lists(BOUNDS, min_size=1, max_size=2)


@given(st.lists(TESTS, min_size=1, max_size=4), SEVERAL, SEVERAL, SEVERAL)
@settings(max_examples=300, deadline=None)
def test_random_conditions_run_the_same_instances(tests, lower, upper, place):
    at_most = (const(59), extremum("max", (const(0), *place)))
    where = extremum("min", at_most)
    body = [
        when(t, run(f"S{k}", [i, j], at("Y", where), chosen(t, read("X", where))))
        for k, t in enumerate(tests[:-1])
    ]
    body.append(run("T", [i, j], at("Y", where), chosen(tests[-1], read("X", where))))
    bounds = {"lower": extremum("max", tuple(lower)), "kind": "simd"}
    nest = loop("j", extremum("min", tuple(upper)), *body, **bounds)
    before = Block((loop("i", 12, nest),))
    after = drop_decided(split_loops(before, []))
    assert list(instances(after)) == list(instances(before))
    arrays = {"X": np.arange(60, dtype=np.float32), "Y": np.zeros(60, np.float32)}
    assert_same(before, after, arrays)
