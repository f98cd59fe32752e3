"""Sums of small tiles in several places: the same results, and only where tiles are small."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.side_by_side import SUMS, add_side_by_side
from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Block, For, Local, Node, walk_nodes
from polyc.scop.expr import Const, call
from tests.analysis.nests import F32, at, loop, read, run
from tests.codegen.machines import registers
from tests.loopnest.execute import execute

i, c, t, v, r = (var(name) for name in "ictvr")
SIZE = "size_n"


def tiles(rows: int, width: int, channels: int, taps: int, first: Node | None = None) -> Block:
    """y[i, v] = sum of x[i, c, t] w[c, t, v], `rows` at a time of as many as a call says."""
    place = at("acc", r, v)

    def tile(assign: Node) -> Node:
        return loop("v", width, loop("r", rows, assign, kind="unroll"), kind="vector")

    product = call("mul", read("x", i + r, c, t), read("w", c, t, v))
    update = tile(run("S", [i + r, v, c, t], place, product, "add"))
    nest = loop("c", channels, loop("t", taps, update))
    body = (
        tile(run("Z", [i + r, v], place, Const(0, F32))),
        nest,
        tile(run("T", [i + r, v], at("y", i + r, v), read("acc", r, v))),
    )
    inside = Block(body, (Local("acc", F32, (rows, width), "acc"),))
    return Block((For("i", const(0), var(SIZE) - (rows - 1), rows, inside),))


def sums(block: Block) -> list[int]:
    """How many sums there are of each tile."""
    kept = [lo for n in walk_nodes(block) if isinstance(n, Block) for lo in n.locals]
    return [lo.shape[0] + 1 for lo in kept if lo.name.startswith("beside")]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 40), st.integers(1, 9), st.integers(1, 6), st.integers(0, 5)
)
def test_results_are_the_same(rows, width, channels, taps, count):
    before = tiles(rows, width, channels, taps)
    after = add_side_by_side(before, [SIZE], registers(64))
    vectors = rows * -(-width // 16)
    for number in sums(after):
        assert number > 1
        assert taps % number == 0
        assert (number - 1) * vectors < SUMS
    rng = np.random.default_rng(0)
    x, w = (
        rng.integers(-4, 5, shape).astype(np.float32)
        for shape in ((count, channels, taps), (channels, taps, width))
    )
    results = []
    for nest in (before, after, vectorise(after, registers(64))):
        y = np.zeros((count, width), np.float32)
        execute(nest, {"x": x, "w": w, "y": y}, {SIZE: count})
        results.append(y)
    whole = count // rows * rows
    np.testing.assert_array_equal(results[0][:whole], np.einsum("ict,ctl->il", x, w)[:whole])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_as_many_as_keep_the_machine_busy():
    for rows, width, taps, expected in (
        (1, 32, 64, [4]),
        (2, 32, 64, [2]),
        (1, 64, 64, [2]),
        (1, 48, 27, [3]),  # the trips are shared out evenly
        (4, 32, 64, []),  # there are eight vectors as it is
        (1, 32, 7, []),  # a number that three and two do not divide
        (1, 32, 16, []),  # too few additions
    ):
        after = add_side_by_side(tiles(rows, width, 1, taps), [SIZE], registers(64))
        assert sums(after) == expected, (rows, width, taps)


def test_loops_that_are_no_sum_of_a_tile_stay():
    block = tiles(1, 32, 4, 64)
    assert add_side_by_side(block, [], registers(64)) == block  # nothing is open
    (whole,) = block.body
    assert isinstance(whole, For)
    shared = Block((For(whole.var, whole.lower, whole.upper, 1, Block(whole.body.body)),))
    assert add_side_by_side(shared, [SIZE], registers(64)) == shared  # what others see


def test_what_a_tile_adds_up_in_itself_stays():
    """Lanes into one element: begun and ended in each lane, its sums would count 16 times."""
    update = run("S", [i, c, v], at("acc", 0), read("x", i, c, v), "add")
    body = (
        run("Z", [i], at("acc", 0), Const(0, F32)),
        loop("c", 64, loop("v", 16, update, kind="vector")),
        run("T", [i], at("y", i), read("acc", 0)),
    )
    inside = Block(body, (Local("acc", F32, (1,), "acc"),))
    block = Block((For("i", const(0), var(SIZE), 1, inside),))
    assert add_side_by_side(block, [SIZE], registers(64)) == block
