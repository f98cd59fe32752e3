"""Seconds of a core: counted by hand for loops whose assembly is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.loopnest.nodes import Kernel
from polyc.predict.core import measure_core
from polyc.predict.kernel import measure_work
from polyc.predict.nest import read_nest
from polyc.scop.expr import Call, call
from polyc.scop.scop import Scop
from polyc.target.costs import ADDED, OPERATIONS, Prices, price, price_pairs, summed_floats
from polyc.target.instructions.lanes import BF16
from polyc.target.machine import NAMED
from tests.analysis.nests import array, load, matmul_scop, scop, statement
from tests.machines import BYTES, given, need
from tests.mapping.stages import AVX512, TARGETS, compile_stages

PRICES = Prices(64, fma=1.0, load=1.5, single=0.5, store=3.0, latency=8.0, entry=20.0)
"""Seconds that tell units apart; 16 floats a vector."""


def seconds(kernel: Kernel, prices: Prices = PRICES) -> float:
    nest = read_nest(kernel)
    return measure_core(nest.trees, nest, prices)


def row(function: str, columns: int = 256) -> Scop:
    """Y[j] = function(X[j])"""
    value = Call(function, (load("{ P[j] -> X[j] }"),), load("{ P[j] -> X[j] }").dtype)
    return scop(
        [array("X", [columns], "input"), array("Y", [columns], "output")],
        statement(f"{{ P[j] : 0 <= j < {columns} }}", "{ P[j] -> Y[j] }", value),
    )


def test_a_register_tile_is_as_fast_as_its_multiply_adds():
    """26 x 32, of 512 terms: two tiles of 13 rows, 26 multiply-adds a term, 15 loads."""
    kernel = compile_stages(matmul_scop(26, 32, 512)).kernel
    multiply_adds = 2 * 512 * 26
    results = 2 * 26 * PRICES.store
    assert multiply_adds < seconds(kernel) < multiply_adds + results + 5 * PRICES.entry


def test_a_sum_alone_waits_for_each_term():
    """One row of one vector: each multiply-add waits for the one before it."""
    kernel = compile_stages(matmul_scop(1, 16, 512)).kernel
    waiting = 512 * PRICES.latency
    assert waiting <= seconds(kernel) < 1.1 * waiting


def test_loads_bound_what_computes_little():
    """256 floats are 16 vectors, stored each; stores are what is slowest here."""
    assert seconds(compile_stages(row("abs")).kernel) == pytest.approx(16 * PRICES.store, rel=0.5)


def test_functions_count_for_their_operations():
    plain, exponential = (seconds(compile_stages(row(f)).kernel) for f in ("abs", "exp"))
    assert exponential == pytest.approx(plain - 16 * PRICES.store + 16 * OPERATIONS["exp"], rel=0.2)


def test_what_copies_of_the_text_share_is_loaded_once():
    """Four neighbours of a window of nine taps read 3 x 6 elements, and not 36."""
    of = scop(
        [array("X", [6, 66, 16], "input"), array("Y", [4, 64, 16], "output")],
        statement(
            "{ P[h, w, c] : 0 <= h < 4 and 0 <= w < 64 and 0 <= c < 16 }",
            "{ P[h, w, c] -> Y[h, w, c] }",
            call("add", load("{ P[h, w, c] -> X[h, w, c] }"), load("{ P[h, w, c] -> X[h, w, c] }")),
        ),
    )
    once = scop(
        [array("X", [6, 66, 16], "input"), array("Y", [4, 64, 16], "output")],
        statement(
            "{ P[h, w, c] : 0 <= h < 4 and 0 <= w < 64 and 0 <= c < 16 }",
            "{ P[h, w, c] -> Y[h, w, c] }",
            call("abs", load("{ P[h, w, c] -> X[h, w, c] }")),
        ),
    )
    assert seconds(compile_stages(of).kernel) == seconds(compile_stages(once).kernel)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.isa)
def test_a_product_takes_no_less_than_its_multiply_adds(target):
    kernel = compile_stages(matmul_scop(100, 64, 256), target).kernel
    work = measure_work(kernel, target)
    least = 2 * 100 * 64 * 256 / target.rates.flops
    taken = sum(seconds for seconds, _ in work.pieces)
    assert least <= taken < 1.6 * least
    assert price(target).fma * target.rates.flops == pytest.approx(2 * target.vectors.lanes(4))


def test_threads_may_share_out_what_is_parallel():
    work = measure_work(compile_stages(matmul_scop(260, 64, 64)).kernel, AVX512)
    assert max(shares for _, shares in work.pieces) >= 2


def test_four_products_of_bytes_are_one_instruction():
    """A product of bytes is as fast as its dot products of four, a quarter of the multiply-adds."""
    target = need(BYTES)
    x, rng = ops.input("x", (256, 512), np.uint8), np.random.default_rng(0)
    w = rng.integers(-128, 128, (512, 256)).astype(np.int8)
    floats = ops.input("x", (256, 512)) @ w.astype(np.float32)
    took = []
    for graph in (Graph.of(y=ops.matmul_integer(x, w)), Graph.of(y=floats)):
        model = polyc.compile(graph, target=target, threads=1)
        took.append(sum(k.predicted or 0 for k in model.explain().kernels))
    assert 0.2 * took[1] < took[0] < 0.5 * took[1]


def test_without_that_instruction_bytes_are_widened():
    sums = price(NAMED["avx2"]).sums
    assert sums == {
        "dot4.u8s8": 3 + 2 * ADDED,
        "dot4.s8s8": 3 + 2 * ADDED,
        "dot2.s16s16": 1 + ADDED,
        "dot2.bf16": 4,
    }
    assert price(BYTES).sums == sums | {"dot4.u8s8": 1, "dot4.s8s8": 2, "dot2.s16s16": 1}


def test_two_products_of_bfloat16_take_as_long_as_the_machine_says():
    for pairs in (2.0, 1.0):
        target = given(NAMED["avx512"], BF16)
        target = replace(target, rates=replace(target.rates, pairs=pairs))
        assert price(target).sums["dot2.bf16"] == 2 / pairs
        assert price_pairs(target) == 1 / pairs
        assert bool(summed_floats(target)) == (pairs > 1)
    assert price_pairs(NAMED["avx512"]) == 1
