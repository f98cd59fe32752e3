"""Vector loops in printable form: the same results, in vectors of a power of two of lanes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import const, var
from polyc.loopnest.lanes import LARGEST_UNROLL
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    Local,
    extent_of,
    lanes_of,
    walk_nodes,
)
from polyc.scop.expr import Call, Cast, call
from tests.analysis.nests import F32, at, loop, read, run
from tests.codegen.machines import registers
from tests.loopnest.execute import Arrays, assert_same

AVX512 = 64
i, v, u = var("i"), var("v"), var("u")


def vectors(block: Block) -> list[For]:
    return [n for n in walk_nodes(block) if isinstance(n, For) and n.kind == "vector"]


def lanes(block: Block) -> list[int | None]:
    return [extent_of(x) for x in vectors(block)]


def check(before: Block, arrays: Arrays, simd_bytes: int = AVX512) -> Block:
    """Vectorise; assert that results stay and that every vector loop can be printed."""
    after = vectorise(before, registers(simd_bytes))
    assert_same(before, after, arrays)
    for x in vectors(after):
        width = lanes_of(x)
        assert width & (width - 1) == 0
        assert all(isinstance(n, Assign) for n in x.body.body)
    assert not any(isinstance(n, For) and n.kind == "unroll" for n in walk_nodes(after))
    return after


def data(*shape: int) -> np.ndarray:
    """Small integers, of which every sum is exact."""
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)


@given(st.integers(1, 70), st.integers(0, 3), st.sampled_from([16, 32, 64]))
@settings(max_examples=40, deadline=None)
def test_a_vector_loop_is_cut_into_vectors(extent, lower, simd_bytes):
    copy = run("S", [v], at("Y", v), read("X", v))
    nest = Block((loop("v", lower + extent, copy, lower=lower, kind="vector"),))
    x = data(lower + extent)
    after = check(nest, {"X": x, "Y": np.zeros_like(x)}, simd_bytes)
    assert max([*lanes(after), 1]) <= simd_bytes // 4


@pytest.mark.parametrize(
    ("extent", "simd_bytes", "expected"),
    [
        (21, 64, [(16, 0), (5, 11)]),
        (24, 64, [(16, 0), (8, 0)]),
        (5, 64, [(5, 3)]),
        (21, 32, [(8, 0), (8, 0), (4, 0)]),
        (7, 16, [(4, 0), (2, 0)]),
    ],
)
def test_what_is_left_is_masked_or_cut_down_to_a_scalar(extent, simd_bytes, expected):
    copy = run("S", [v], at("Y", v), read("X", v))
    arrays = {"X": data(extent), "Y": np.zeros(extent, "f4")}
    after = check(Block((loop("v", extent, copy, kind="vector"),)), arrays, simd_bytes)
    assert [(extent_of(x), x.idle) for x in vectors(after)] == expected
    covered = sum(filled for filled, _ in expected)
    scalars = [n for n in walk_nodes(after) if isinstance(n, Assign)][len(expected) :]
    assert [s.target.index for s in scalars] == [(const(k),) for k in range(covered, extent)]


def test_the_widest_type_sets_the_lanes():
    wide = replace(
        run("S", [v], at("Y", v), Cast(read("X", v), np.dtype("f8"))), dtype=np.dtype("f8")
    )
    arrays = {"X": data(16), "Y": np.zeros(16)}
    after = check(Block((loop("v", 16, wide, kind="vector"),)), arrays)
    assert lanes(after) == [8, 8]


def test_unrolled_loops_are_copies_with_their_indices_filled_in():
    nest = Block((loop("u", 3, run("S", [u], at("Y", u * 2), read("X", u)), kind="unroll"),))
    after = check(nest, {"X": data(3), "Y": np.zeros(5, np.float32)})
    indices = [n.target.index for n in walk_nodes(after) if isinstance(n, Assign)]
    assert indices == [(const(0),), (const(2),), (const(4),)]


@pytest.mark.parametrize("extent", [LARGEST_UNROLL, LARGEST_UNROLL + 1])
def test_too_many_copies_stay_a_loop(extent):
    nest = Block((loop("u", extent, run("S", [u], at("Y", u), read("X", u)), kind="unroll"),))
    after = check(nest, {"X": data(extent), "Y": np.zeros(extent, np.float32)})
    kept = [n for n in walk_nodes(after) if isinstance(n, For)]
    assert len(kept) == (extent > LARGEST_UNROLL)


def test_a_register_tile_goes_row_by_row_through_its_vectors():
    product = call("mul", read("X", i, u), read("W", i, v))
    nest = Block(
        (
            loop(
                "i",
                5,
                loop(
                    "v",
                    20,
                    loop(
                        "u", 3, run("S", [i, u, v], at("acc", u, v), product, "add"), kind="unroll"
                    ),
                    kind="vector",
                ),
            ),
        )
    )
    arrays = {"X": data(5, 3), "W": data(5, 20), "acc": np.zeros((3, 20), np.float32)}
    after = check(nest, arrays)
    assert lanes(after) == [16, *[16, 4] * 3]  # the whole vector is loaded before
    assert [len(x.body.body) for x in vectors(after)] == [1] * 7


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
def test_a_reduction_over_a_vector_loop_keeps_partial_results(reduction):
    value = Call("max", (read("X", i, v), read("X", i, v)), F32)
    nest = Block(
        (
            loop(
                "i",
                4,
                loop("v", 16, run("S", [i, v], at("y", 0), value, reduction), kind="vector"),
            ),
        )
    )
    x = np.where(data(4, 16) > 0, np.float32(2), np.float32(1))
    after = check(nest, {"X": x, "y": np.ones(1, np.float32)})
    (block,) = [n for n in walk_nodes(after) if isinstance(n, Block) and n.locals]
    assert block.locals == (Local("partial_0", F32, (16,), "y", is_tile=True),)
    assert lanes(after) == [16, 16, 16]  # start, update, end


def test_a_total_that_moves_with_the_loop_is_not_privatised():
    sums = loop("v", 16, run("S", [i, v], at("y", i), read("X", i, v), "add"), kind="vector")
    nest = Block((loop("i", 4, sums),))
    after = check(nest, {"X": data(4, 16), "y": np.zeros(4, np.float32)})
    assert not any(isinstance(n, Block) and n.locals for n in walk_nodes(after))


def test_two_reductions_have_partial_results_of_their_own():
    def total(target: str, reduction: str) -> For:
        update = run("S", [i, v], at(target, 0), read("X", i, v), reduction)
        return loop("i", 4, loop("v", 8, update, kind="vector"))

    arrays = {"X": data(4, 8), "a": np.zeros(1, np.float32), "b": np.zeros(1, np.float32)}
    after = check(Block((total("a", "add"), total("b", "max"))), arrays)
    names = [lo.name for n in walk_nodes(after) if isinstance(n, Block) for lo in n.locals]
    assert names == ["partial_0", "partial_1"]


def test_a_vector_loop_around_another_loop_runs_one_by_one():
    inner = loop("u", v + 1, run("S", [v, u], at("Y", v, u), read("X", v, u)))
    nest = Block((loop("v", 5, inner, kind="vector"),))
    after = check(nest, {"X": data(5, 5), "Y": np.zeros((5, 5), np.float32)})
    assert vectors(after) == []
