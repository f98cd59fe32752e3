"""Tiles of sums that fill the registers begin with all of them; other loops keep what they read."""

import re

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.codegen.forget import forget_between_tiles
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Block, For, Local, walk_nodes
from polyc.loopnest.registers import find_registers
from tests.analysis.nests import F32, ZERO, at, call, loop, read, run
from tests.codegen.machines import registers
from tests.machines import need_named

i, r, v, c = (var(name) for name in "irvc")


def tile(upper, vectors: int, lanes: int, adds: bool = True) -> Block:
    """A loop over tiles of so many vectors: Y[i, r, v] = the sum of X[i, r, c] W[c, v] over c."""

    def rows(node):
        return loop("r", vectors, loop("v", lanes, node, kind="vector"))

    local = Local("a", F32, (vectors, lanes), "a", in_registers=True)
    product = call("mul", read("X", i, r, c), read("W", c, v))
    add = run("S", [i, r, v, c], at("a", r, v), product, "add" if adds else None)
    body = [
        rows(run("Z", [i, r, v], at("a", r, v), ZERO)),
        loop("c", 256, rows(add)),
        rows(run("T", [i, r, v], at("Y", i, r, v), read("a", r, v))),
    ]
    return Block((loop("i", upper, *body, locals=[local]),))


def marked(block: Block, sizes: tuple[str, ...], simd_bytes: int) -> list[str]:
    """The variables of the loops whose iterations begin so."""
    nest = forget_between_tiles(block, sizes, registers(simd_bytes))
    return [n.var for n in walk_nodes(nest) if isinstance(n, For) and n.forgets]


@pytest.mark.parametrize(
    ("simd_bytes", "vectors", "open", "forgets"),
    [
        (64, 24, False, True),
        (64, 23, False, False),
        (64, 8, True, True),
        (64, 7, True, False),
        (32, 12, False, True),
        (32, 11, False, False),
        (32, 4, True, True),
        (32, 3, True, False),
    ],
)
def test_a_tile_that_fills_the_registers_begins_with_all(simd_bytes, vectors, open, forgets):
    """Three quarters of them; a quarter in a loop of which sizes say how often it runs."""
    block = tile(var("size_n") if open else const(8), vectors, simd_bytes // 4)
    assert marked(block, ("size_n",), simd_bytes) == (["i"] if forgets else [])


def test_what_is_no_sum_keeps_what_it_read():
    """Windows that are transformed overlap: an iteration reads again what the one before read."""
    assert marked(tile(const(8), 36, 16, adds=False), (), 64) == []


def test_sums_in_memory_leave_the_registers_free():
    block = tile(const(8), 27, 16)
    (around,) = block.body
    spoilt = run("U", [i], at("a", i, const(0)), read("X", i))
    body = Block((*around.body.body, spoilt), (Local("a", F32, (27, 16), "a"),))
    nest = find_registers(Block((loop("i", 8, *body.body, locals=body.locals),)))
    assert marked(nest, (), 64) == []


def test_a_bias_is_not_kept_beside_a_full_tile(tmp_path):
    """Kept in registers it drove the weights out of them: 69 Gflop/s of 115 (Xception, Zen 4)."""
    x = ops.input("x", (75, 256))
    weight, bias = np.ones((256, 256), np.float32) / 256, np.arange(256, dtype=np.float32)
    model = polyc.compile(
        Graph.of(y=ops.relu(x @ weight + bias)), target=need_named("avx512"), threads=1
    )
    model.export(tmp_path)
    text = "".join(f.read_text() for f in (tmp_path / "src").glob("k*.c"))
    tiles = re.findall(r"for \(i64 c\d+ = [^{]*{\n +(PC_FORGET;|f32x16 \w+_0_0,)", text)
    assert "PC_FORGET;" in tiles
    a = np.random.default_rng(0).standard_normal((75, 256), np.float32)
    expected = np.maximum(a.astype(np.float64) @ weight + bias, 0)
    np.testing.assert_allclose(model(a), expected, rtol=1e-5, atol=1e-5)
