"""Tiles that are transposed in registers: the same results, and no lane moved alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc import Graph, compile, ops
from polyc.codegen.transpose import LARGEST_SIDE
from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import stride, var
from polyc.loopnest.nodes import Assign, Block, For, Node, Read, Transpose, walk_expr, walk_nodes
from polyc.scop.expr import Call, Cast, call
from tests.analysis.nests import F32, at, loop, read, run
from tests.codegen.machines import registers
from tests.codegen.test_vectorise import data
from tests.loopnest.execute import Arrays, assert_same

u, v, w, o = var("u"), var("v"), var("w"), var("o")


def tile(assign: Assign, rows: int, columns: int, vector_inside: bool = True) -> Block:
    """An unrolled loop u and a vector loop v around an assignment."""
    along = {"kind": "vector", "lower": 0}
    if vector_inside:
        nest = loop("u", rows, loop("v", columns, assign, **along), kind="unroll")
    else:
        nest = loop("v", columns, loop("u", rows, assign, kind="unroll"), **along)
    return Block((nest,))


def check(before: Block, arrays: Arrays, simd_bytes: int = 64, rows: str = "") -> Block:
    """rows: an array of which it is known how long its rows are."""
    shapes = {rows: arrays[rows].shape} if rows else {}
    after = vectorise(before, registers(simd_bytes), shapes)
    assert_same(before, after, arrays)
    return after


def transposes(block: Block) -> list[int]:
    return [n.lanes for n in walk_nodes(block) if isinstance(n, Transpose)]


def scattered(block: Block) -> list[Node]:
    """Vector loops with an access that neither stays nor goes on by one from lane to lane."""
    found = []
    for node in walk_nodes(block):
        if isinstance(node, For) and node.kind == "vector":
            for assign in node.body.body:
                assert isinstance(assign, Assign)
                reads = (e.element for e in walk_expr(assign.value) if isinstance(e, Read))
                for element in (assign.target, *reads):
                    steps = [stride(i, node.var) for i in element.index]
                    if any(steps[:-1]) or steps[-1] not in (0, 1):
                        found.append(node)
    return found


COPY = run("S", [u, v], at("Y", u, v), read("X", v, u))


@given(st.integers(1, 40), st.integers(1, 40), st.booleans(), st.sampled_from([16, 32, 64]))
@settings(max_examples=40, deadline=None)
def test_any_rectangle(rows, columns, vector_inside, simd_bytes):
    arrays = {"X": data(columns, rows), "Y": np.zeros((rows, columns), np.float32)}
    after = check(tile(COPY, rows, columns, vector_inside), arrays, simd_bytes)
    side = simd_bytes // 4
    pieces = -(-rows // side) * -(-columns // side)
    lone = (rows % side == 1) * -(-columns // side) + (columns % side == 1) * -(-rows // side)
    lone -= rows % side == 1 and columns % side == 1
    assert len(transposes(after)) == pieces - lone


@given(st.sampled_from([2, 3, 4, 8]), st.integers(1, 40), st.sampled_from([16, 32, 64]))
@settings(max_examples=40, deadline=None)
def test_whole_rows_that_are_shorter_than_vectors_are_interleaved(rows, columns, simd_bytes):
    """Y[v, u] = X[u, v]: what lies in planes, and is to stand together."""
    arrays = {"X": data(rows, columns), "Y": np.zeros((columns, rows), np.float32)}
    turned = run("S", [u, v], at("Y", v, u), read("X", u, v))
    after = check(tile(turned, rows, columns), arrays, simd_bytes, rows="Y")
    side = simd_bytes // 4
    interleaved = [n for n in walk_nodes(after) if isinstance(n, Transpose) and n.rows]
    assert len(interleaved) >= (columns // side if rows in (2, 4, 8) and rows < side else 0)
    assert {n.rows for n in interleaved} <= {rows} - {3}


@given(st.integers(1, 9), st.integers(2, 4), st.integers(2, 33), st.sampled_from([16, 32, 64]))
@settings(max_examples=40, deadline=None)
def test_two_unrolled_loops_that_walk_a_row_together(rows, phases, columns, simd_bytes):
    """Y[v, n u + w] = X[u, w, v] + B[v]: columns and phases of a transposed convolution."""
    value = Call("add", (read("X", u, w, v), read("B", v)), F32)
    assign = run("S", [u, w, v], at("Y", v, u * phases + w), value)
    inner = loop("u", rows, loop("w", phases, assign, kind="unroll"), kind="unroll")
    nest = Block((loop("v", columns, inner, kind="vector", lower=0),))
    x, b = data(rows, phases, columns), data(columns)
    out = np.zeros((columns, rows * phases), np.float32)
    after = check(nest, {"X": x, "B": b, "Y": out}, simd_bytes)
    assert transposes(after)
    if columns % (simd_bytes // 4) != 1 and rows * phases % (simd_bytes // 4) != 1:
        assert not scattered(after)


@pytest.mark.parametrize(("rows", "columns", "side"), [(16, 16, 16), (7, 7, 8), (3, 16, 16)])
def test_a_square_that_holds_the_rectangle(rows, columns, side):
    arrays = {"X": data(columns, rows), "Y": np.zeros((rows, columns), np.float32)}
    after = check(tile(COPY, rows, columns), arrays)
    assert transposes(after) == [side]
    assert scattered(after) == []
    idle = {n.idle for n in walk_nodes(after) if isinstance(n, For)}
    assert idle == {0, side - rows, side - columns}


def test_what_lies_along_the_vector_loop_or_stays_is_read_as_before():
    value = call("add", call("mul", read("X", v, u), read("Z", u, v)), read("b", u))
    arrays = {"X": data(16, 16), "Z": data(16, 16), "b": data(16), "Y": np.zeros((16, 16), "f4")}
    after = check(tile(run("S", [u, v], at("Y", u, v), value), 16, 16), arrays)
    assert transposes(after) == [16]
    assert scattered(after) == []


def test_an_element_read_twice_is_transposed_once():
    value = call("mul", read("X", v, u), call("sub", read("X", v, u), read("X", v, u + 1)))
    arrays = {"X": data(16, 17), "Y": np.zeros((16, 16), np.float32)}
    after = check(tile(run("S", [u, v], at("Y", u, v), value), 16, 16), arrays)
    assert transposes(after) == [16, 16]


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (5, 12), (20, 16)])
def test_a_write_across_the_lanes(rows, columns):
    store = run("S", [u, v], at("Y", v, u), call("add", read("X", u, v), read("X", u, v)))
    arrays = {"X": data(rows, columns), "Y": np.zeros((columns, rows), np.float32)}
    after = check(tile(store, rows, columns), arrays)
    assert scattered(after) == []


def test_tiles_of_wide_and_narrow_types():
    wide = replace(
        run("S", [u, v], at("Y", u, v), Cast(read("X", v, u), np.dtype("f8"))), dtype=np.dtype("f8")
    )
    after = check(tile(wide, 16, 16), {"X": data(16, 16), "Y": np.zeros((16, 16))})
    assert transposes(after) == [8] * 4
    narrow = replace(COPY, value=Read(at("X", v, u), np.dtype("i1")), dtype=np.dtype("i1"))
    arrays = {"X": data(64, 64).astype("i1"), "Y": np.zeros((64, 64), np.int8)}
    assert set(transposes(check(tile(narrow, 64, 64), arrays))) == {LARGEST_SIDE}


@pytest.mark.parametrize(
    "assign",
    [
        run("S", [u, v], at("Y", u, v), read("X", u, v)),
        run("S", [u, v], at("Y", u, v), read("X", v, u * 2)),
        run("S", [u, v], at("Y", u, v), read("X", v, u), "add"),
        run("S", [u, v], at("Y", u, v), read("Y", u, v + 16)),
        run("S", [u, v], at("Y", u, v), Read(at("X", v, u), F32, guarded=True)),
    ],
    ids=["straight", "every other", "reduction", "in place", "guarded"],
)
def test_what_is_no_transpose_stays(assign):
    arrays = {"X": data(32, 32), "Y": data(16, 32)}
    assert transposes(check(tile(assign, 16, 16), arrays)) == []


def test_a_tile_that_moves_with_outer_loops():
    inner = run("S", [o, u, v], at("Y", u, o + v), Call("neg", (read("X", o + v, u),), F32))
    nest = loop(
        "o",
        32,
        loop("u", 16, loop("v", 16, inner, kind="vector"), kind="unroll"),
        step=16,
    )
    after = check(Block((nest,)), {"X": data(32, 16), "Y": np.zeros((16, 32), np.float32)})
    assert transposes(after) == [16]


def test_what_is_left_of_a_tile_has_no_more_lanes_than_the_tile():
    """Rows of bytes, whose vectors have more lanes than a tile has columns."""
    x = ops.input("x", (6, "m", 16), np.dtype(bool))
    model = compile(Graph.of(y=ops.transpose(x, (0, 2, 1))), target="cpu", threads=1)
    assert not any(f"b8x{lanes}" in model.source for lanes in (32, 64))
    for m in (1, 15, 16, 33):
        array = np.arange(6 * m * 16).reshape(6, m, 16) % 3 == 0
        np.testing.assert_array_equal(model(array), array.transpose(0, 2, 1))
