"""Register tiles that load once what their rows share: the same results, and fewer loads."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyc
from polyc import ops
from polyc.codegen.load_once import fits_by_columns, fits_by_rows
from polyc.codegen.vectorise import vectorise
from polyc.loopnest.index import var
from polyc.loopnest.nodes import Block, For, Local, walk_nodes
from polyc.loopnest.registers import elements
from polyc.options import Options
from polyc.scop.expr import Const, call
from polyc.target.vectors import Vectors
from tests.analysis.nests import F32, at, loop, read, run
from tests.correlate import correlate
from tests.loopnest.execute import assert_same
from tests.machines import need_named

k, v, r = (var(name) for name in "kvr")
AVX2 = Vectors(32, 16)
AVX512 = Vectors(64, 32, masked=True)


def tile(rows: int, width: int) -> Block:
    """y[r, v] = sum over k of x[r, k] w[k, v], in one tile."""
    place = at("acc", r, v)

    def over(assign):
        rows_ = loop("r", rows, assign, kind="unroll")
        return loop("v", width, rows_, kind="vector")

    product = call("mul", read("x", r, k), read("w", k, v))
    body = (
        over(run("Z", [r, v], place, Const(0, F32))),
        loop("k", 5, over(run("S", [r, v, k], place, product, "add"))),
        over(run("T", [r, v], at("y", r, v), read("acc", r, v))),
    )
    return Block(body, (Local("acc", F32, (rows, width), "acc"),))


def loads(block: Block, array: str) -> int:
    """How many reads of vectors of an array are written in the loop of the sum."""
    (sums,) = (n for n in walk_nodes(block) if isinstance(n, For) and n.var == "k")
    return sum(e.array == array for e, _ in elements(sums, None))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 52), st.sampled_from([AVX2, AVX512]))
def test_results_are_the_same(rows, width, vectors):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, s).astype(np.float32) for s in ((rows, 5), (5, width)))
    before = tile(rows, width)
    arrays = {"x": x, "w": w, "y": np.zeros((rows, width), np.float32)}
    assert_same(before, vectorise(before, vectors), arrays)


@pytest.mark.parametrize(
    ("rows", "width", "vectors", "reads"),
    [
        (6, 16, AVX2, 2),  # vectors wait for the next row
        (4, 24, AVX2, 3),
        (3, 32, AVX2, 4),  # 12 sums and 4 vectors fill 16 registers: elements wait instead
        (2, 48, AVX2, 6),
        (2, 36, AVX2, 6),  # half a vector at the end is read by each row
        (1, 32, AVX2, 4),
        (5, 24, AVX2, 15),  # neither three vectors nor five elements have a place: as it was
        (9, 48, AVX512, 3),
        (3, 40, AVX512, 5),  # whole vectors alone
    ],
)
def test_a_vector_is_read_once_if_anything_can_wait(rows, width, vectors, reads):
    assert loads(vectorise(tile(rows, width), vectors), "w") == reads


@pytest.mark.parametrize(
    ("height", "width", "by_rows", "by_columns"),
    [(6, 2, True, False), (4, 3, True, False), (3, 4, False, True), (2, 6, False, True)],
)
def test_what_waits_beside_the_sums(height, width, by_rows, by_columns):
    assert fits_by_rows(height, width, 16) == by_rows
    assert fits_by_columns(height, width, 16) == by_columns


def test_gcc_reads_each_vector_once(tmp_path):
    """In the text of a product of 3 rows, each panel's vector stands in one load."""
    x = ops.input("x", (3, 40))
    model = polyc.compile(
        polyc.Graph.of(y=x @ np.ones((40, 32), np.float32)), target=need_named("avx2")
    )
    model.export(tmp_path)
    text = "".join(f.read_text() for f in (tmp_path / "src").glob("k*.c"))
    assert len(re.findall(r"= pc_rounded_f32x8\(pc_load_f32x8\(", text)) == 4
    a = np.random.default_rng(0).standard_normal((3, 40), np.float32)
    np.testing.assert_allclose(
        model(a), a.sum(1, keepdims=True) + np.zeros((3, 32)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_taps_that_gcc_writes_out_share_no_element(stride, tmp_path):
    """Each tap's iteration begins with nothing loaded, so that sums keep their registers."""
    x = ops.relu(ops.input("x", (1, 16, 13, 13)))
    weight = np.ones((16, 16, 3, 3), np.float32) / 16
    y = ops.conv(x, weight, pads=[1] * 4, strides=[stride] * 2)
    options = Options(minimal_filtering=False)
    model = polyc.compile(polyc.Graph.of(y=y), target=need_named("avx2"), options=options)
    model.export(tmp_path)
    text = "".join(f.read_text() for f in (tmp_path / "src").glob("k*.c"))
    assert re.search(r"for \(i64 c\d+ = 0; c\d+ < 3; c\d+ \+= 1\) {\n +PC_FORGET;", text)
    a = np.random.default_rng(0).standard_normal((1, 16, 13, 13), np.float32)
    expected = correlate(np.maximum(a, 0), weight, np.zeros(16, np.float32), [1] * 4)
    np.testing.assert_allclose(model(a), expected[:, :, ::stride, ::stride], rtol=1e-4, atol=1e-4)
