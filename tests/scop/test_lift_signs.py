"""Signed bytes that are kept as unsigned ones."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.graph.simplify import simplify
from polyc.scop.factors.lift_signs import lift_signs
from polyc.scop.factors.scales import take_out_scales
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Scop
from polyc.types.element_types import INT8, UINT8
from tests.scop.interpreter import interpret
from tests.scop.test_narrow_factors import PRODUCTS
from tests.scop.test_scales import taken, weights, written

SCALE = np.float32(0.5)


def quantised(x, zero: int | None = 3):
    return ops.quantize_linear(x, SCALE, *(() if zero is None else (np.int8(zero),)))


def restored(q, zero: int | None = 3):
    return ops.dequantize_linear(q, SCALE, *(() if zero is None else (np.int8(zero),)))


def given(*shape: int):
    return ops.input("x", shape, "float32")


def product(zero: int | None = 3):
    return restored(quantised(given(9, 64), zero), zero) @ weights(64, 48)


def lifted(scop: Scop) -> set[str]:
    """The arrays that are of unsigned bytes, where there were signed ones."""
    after = lift_signs(scop, PRODUCTS)
    changed = {n for n, a in after.arrays.items() if a.dtype != scop.arrays[n].dtype}
    assert all(scop.arrays[n].dtype == INT8 and after.arrays[n].dtype == UINT8 for n in changed)
    assert after is not scop or not changed
    return changed


@pytest.mark.parametrize(("zero", "moved"), [(3, 131), (-128, 0), (127, 255)])
def test_who_stores_a_byte_moves_it(zero, moved):
    before = taken(product(zero)).after
    (name,) = lifted(before)
    after = lift_signs(before, PRODUCTS)
    (old,), (new,) = written(before, name), written(after, name)
    old, new = (text.split(" = ", 1)[1] for text in (old, new))
    assert new == f"add(uint8({old}), 128)"
    (whole,) = written(after, next(n for n in after.arrays if n.endswith("_whole")))
    byte = f"int32({name}[i0, i1])"
    assert whole.endswith(f"= sub({byte}, int32({moved}))" if moved else f"= {byte}")


def test_the_numbers_stay():
    before = taken(product()).after
    x = np.random.default_rng(0).normal(0, 40, (9, 64)).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -np.inf, 1e30
    results = [interpret(s, {"x": x})["y"] for s in (before, lift_signs(before, PRODUCTS))]
    np.testing.assert_array_equal(*results)


def test_bytes_that_are_handed_on_are_moved_together():
    """A pool, the frame around it, and who adds the bytes as numbers."""
    q = quantised(given(1, 16, 8, 8))
    pooled = ops.max_pool(q, (3, 3), pads=[1] * 4)
    y = ops.conv(restored(pooled), weights(48, 16, 3, 3, axis=0), pads=[1] * 4)
    before = taken(ops.add(y, ops.conv(restored(q), weights(48, 16, 1, 1, axis=0)))).after
    names = lifted(before)
    assert names == {n for n, a in before.arrays.items() if a.dtype == INT8 and a.value is None}
    assert len(names) == 4
    x = np.random.default_rng(1).normal(0, 40, (1, 16, 8, 8)).astype(np.float32)
    x[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    results = [interpret(s, {"x": x})["y"] for s in (before, lift_signs(before, PRODUCTS))]
    np.testing.assert_array_equal(*results)


def test_bytes_that_others_see_stay():
    q = quantised(given(9, 64))
    y = restored(q) @ weights(64, 48)
    seen = taken_of(Graph.of(y=y, q=q))
    assert not lifted(seen)
    told = ops.input("x", (9, 64), "int8")
    assert not lifted(taken(restored(told) @ weights(64, 48)).after)
    without = taken(product()).after
    assert lift_signs(without, ()) is without


def test_products_of_two_activations_keep_their_signs():
    """What would be added to such sums only a call knows."""
    a, b = quantised(given(9, 64), None), quantised(ops.input("b", (64, 40), "float32"), None)
    assert not lifted(taken(restored(a, None) @ restored(b, None)).after)


def test_a_zero_point_that_a_call_brings_keeps_them():
    x, zero = given(9, 64), ops.input("zero", (), "int8")
    q = ops.quantize_linear(x, SCALE, zero)
    assert not lifted(taken(ops.dequantize_linear(q, SCALE, zero) @ weights(64, 48)).after)


def taken_of(graph: Graph) -> Scop:
    return take_out_scales(lower_graph(simplify(graph)[0]), PRODUCTS).after
