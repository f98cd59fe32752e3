"""Sums and other reductions through vectors: the same results, from few dependent operations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import var
from polyc.loopnest.nodes import Assign, Block, For, Local, Node, lanes_of, walk_nodes
from polyc.loopnest.registers import find_registers
from tests.analysis.nests import F32, at, loop, read, run
from tests.codegen.machines import registers
from tests.codegen.test_vectorise import data
from tests.loopnest.execute import execute

i, j, v = var("i"), var("j"), var("v")
M = at("m", 0)


def row(extent: int, tile: int, reduction: str) -> Block:
    """m op= X[…] over a row, in tiles of vectors; what is left as peeling leaves it."""
    whole = extent - extent % tile
    update = run("S", [j + v], M, read("X", j + v), reduction)
    nodes: list[Node] = []
    if whole > tile:
        nodes.append(loop("j", whole, loop("v", tile, update, kind="vector"), step=tile))
    elif whole:
        nodes.append(loop("v", whole, run("S", [v], M, read("X", v), reduction), kind="vector"))
    if extent > whole:
        rest = run("S", [v + whole], M, read("X", v + whole), reduction)
        nodes.append(loop("v", extent - whole, rest, kind="vector"))
    return Block(tuple(nodes))


def check(before: Block, x: np.ndarray, simd_bytes: int = 64) -> Block:
    after = vectorise(before, registers(simd_bytes))
    expected, result = (np.array([3], np.float32) for _ in range(2))
    execute(before, {"X": x, "m": expected})
    execute(after, {"X": x, "m": result})
    np.testing.assert_array_equal(result, expected, err_msg=str(after))
    return after


def horizontal(block: Block) -> list[int]:
    """The lanes of each vector that is reduced into the total."""
    return [
        lanes_of(n)
        for n in walk_nodes(block)
        if isinstance(n, For) and n.kind == "vector"
        for a in n.body.body
        if isinstance(a, Assign) and a.target == M
    ]


def locals_of(block: Block) -> list[Local]:
    return [lo for n in walk_nodes(block) if isinstance(n, Block) for lo in n.locals]


@given(
    st.integers(1, 300),
    st.sampled_from([16, 32, 64, 128]),
    st.sampled_from(["add", "max", "min"]),
    st.sampled_from([16, 32, 64]),
)
@settings(max_examples=60, deadline=None)
def test_any_row(extent, tile, reduction, simd_bytes):
    check(row(extent, tile, reduction), data(extent), simd_bytes)


@pytest.mark.parametrize("extent", [64, 128, 197, 1000])
def test_with_masks_a_row_is_added_up_once(extent):
    after = check(row(extent, 64, "add"), data(extent))
    assert horizontal(after) == ([16] if extent % 16 != 8 else [8, 16])


def test_several_vectors_are_added_side_by_side_and_folded_by_halves():
    after = check(row(256, 64, "max"), data(256))
    (local,) = locals_of(find_registers(after))
    assert (local.shape, local.in_registers) == ((64,), True)
    extents = [
        a.target.array == local.name and a.reduction
        for a in walk_nodes(after)
        if isinstance(a, Assign)
    ]
    # 4 identities; 4 vectors a step; 2 + 1 folds; the total
    assert extents == [None] * 4 + ["max"] * 7 + [False]


def test_what_runs_once_needs_no_identity():
    after = check(row(64, 64, "add"), data(64))
    assigns = [n for n in walk_nodes(after) if isinstance(n, Assign)]
    assert [a.reduction for a in assigns] == [None] * 4 + ["add"] * 4


def test_rows_of_rows_share_their_partial_results():
    inner = [
        loop("v", 32, run("S", [i, v], M, read("X", i, v), "add"), kind="vector"),
        loop("v", 5, run("S", [i, v + 32], M, read("X", i, v + 32), "add"), kind="vector"),
    ]
    after = check(Block((loop("i", 7, *inner),)), data(7, 37))
    assert horizontal(after) == [16]


def test_a_total_for_each_iteration_is_its_loop_s_own():
    update = run("S", [i, v], at("m", i), read("X", i, v), "add")
    before = Block((loop("i", 3, loop("v", 32, update, kind="vector")),))
    arrays = {"X": data(3, 32), "m": np.zeros(3, np.float32)}
    after = vectorise(before, registers(64))
    expected = {**arrays, "m": arrays["m"].copy()}
    execute(before, expected)
    execute(after, arrays)
    np.testing.assert_array_equal(arrays["m"], expected["m"])
    (outer,) = [n for n in walk_nodes(after) if isinstance(n, For) and n.var == "i"]
    assert locals_of(outer.body)
    assert locals_of(Block((replace_body(after, outer),))) == []


def replace_body(block: Block, outer: For) -> Block:
    """The block without what is inside of a loop."""
    return Block(tuple(n for n in block.body if n is not outer), block.locals)


def test_another_target_in_between_ends_a_run():
    total = run("S", [i, v], M, read("X", i, v), "add")
    other = run("T", [i, v], at("Y", i, v), read("X", i, v))
    before = Block(
        (loop("i", 4, loop("v", 16, total, kind="vector"), loop("v", 16, other, kind="vector")),)
    )
    after = vectorise(before, registers(64))
    assert locals_of(after) == []
    assert np.float32 == F32
