"""Conditions on sizes outside of loops: the same instances in the same order."""

import pytest

from polyc.codegen.unswitch import unswitch
from polyc.loopnest.index import Compare, var
from polyc.loopnest.nodes import Block, For, If, Local, walk_nodes
from tests.analysis.nests import F32, at, loop, read, run
from tests.loopnest.execute import instances

N, M, i, j = var("n"), var("m"), var("i"), var("j")
LONG = Compare("ge", N - 3)


def step(name, *index):
    return run(name, list(index), at("Y", *index), read("X", *index))


def test_it_goes_out_of_every_loop_with_what_is_done_otherwise():
    nest = Block((loop("i", N, loop("j", 4, If(LONG, *sides()))),))
    assert unswitch(nest, {"n"}) == Block(
        (
            If(
                LONG,
                Block((loop("i", N, loop("j", 4, step("A", i, j))),)),
                Block((loop("i", N, loop("j", 4, step("B", i, j))),)),
            ),
        )
    )


def sides():
    return Block((step("A", i, j),)), Block((step("B", i, j),))


def test_neighbours_that_ask_the_same_become_one_and_what_lives_around_them_goes_along():
    """The accumulators of a tile live while it is cleared, summed up and stored."""
    sums = Local("acc", F32, (4,), "Y")
    parts = [loop("j", 4, If(LONG, *sides())), loop("j", M, If(LONG, Block((step("C", i, j),))))]
    nest = Block((loop("i", N, *parts, locals=(sums,)),))
    (test,) = unswitch(nest, {"n", "m"}).body
    assert isinstance(test, If)
    for side, bounds in ((test.then, [4, M]), (test.otherwise, [4])):
        (tile,) = side.body
        assert tile.body.locals == (sums,)
        assert [inner.upper for inner in tile.body.body] == [loop("j", b).upper for b in bounds]


def test_what_a_loop_decides_stays_in_it():
    nest = Block((loop("i", N, loop("j", 4, If(Compare("ge", i - 3), *sides()))),))
    assert unswitch(nest, {"n"}) == nest


def test_it_stays_in_a_parallel_loop_and_beside_what_is_always_done():
    for kind, beside in (("parallel", ()), ("sequential", (step("C", i, 0),))):
        nest = Block((loop("i", N, *beside, loop("j", 4, If(LONG, *sides())), kind=kind),))
        then, otherwise = (Block((loop("j", 4, *side.body),)) for side in sides())
        assert unswitch(nest, {"n"}) == Block(
            (loop("i", N, *beside, If(LONG, then, otherwise), kind=kind),)
        )


def test_what_may_run_at_the_same_time_stays_apart():
    nest = Block((If(LONG, *sides()), If(LONG, *sides())), concurrent=True)
    assert unswitch(nest, {"n"}) == nest


@pytest.mark.parametrize("n", range(6))
def test_every_instance_is_executed_as_before(n):
    sums = Local("acc", F32, (4,), "Y")
    short = If(Compare("eq", N - 2), Block((step("D", i, j),)))
    nest = Block(
        (
            loop(
                "i",
                N,
                loop("j", 4, If(LONG, *sides())),
                loop("j", 4, short),
                loop("j", N, If(LONG, Block((step("C", i, j),)))),
                loop("j", 2, step("E", i, j)),
                locals=(sums,),
            ),
        )
    )
    after = unswitch(nest, {"n"})
    assert list(instances(after, {"n": n})) == list(instances(nest, {"n": n}))
    inside = [x.body for x in walk_nodes(after) if isinstance(x, For) and x.var == "j"]
    assert not any(isinstance(node, If) for body in inside for node in body.body)
