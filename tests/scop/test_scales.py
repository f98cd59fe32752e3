"""Scales that are taken out of sums of products of restored bytes."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.graph.simplify import simplify
from polyc.scop.factors.narrow_factors import narrow_factors
from polyc.scop.factors.scales import Scaled, take_out_scales
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Scop
from tests.scop.interpreter import interpret
from tests.scop.test_narrow_factors import PAIRS, PRODUCTS, bytes_of, factor_types

SCALES = np.linspace(0.001, 0.01, 48).astype(np.float32)


def restored(x: tuple[int, ...] = (40, 64), zero: int = 7, scale: float = 0.5, **more):
    """(x - zero) * scale of bytes"""
    dtype = np.dtype(more.get("dtype", np.uint8))
    return ops.dequantize_linear(
        ops.input("x", x, dtype), np.float32(scale), np.asarray(zero, dtype)
    )


def weights(*shape: int, scales: np.ndarray = SCALES, dtype: type = np.int8, axis: int = 1):
    return ops.dequantize_linear(bytes_of(*shape, dtype=dtype), scales, axis=axis)


def lowered(y) -> Scop:
    graph, _ = simplify(Graph.of(y=y))
    return lower_graph(graph)


def taken(y) -> Scaled:
    return take_out_scales(lowered(y), PRODUCTS)


def written(scop: Scop, array: str) -> list[str]:
    return [str(s).splitlines()[1].strip() for s in scop.statements if s.array == array]


def test_sums_become_integers_and_are_scaled_at_their_end():
    before, after = (s := taken(restored() @ weights(64, 48))).before, s.after
    assert factor_types(before) == {"float32"}
    assert factor_types(after) == {"int32"}
    (end,) = written(after, "y")
    assert end.startswith("y[i, j] = rounded(mul(float32(y_acc[i, j]), mul(0.5, ")
    (kept,) = (a for a in after.arrays.values() if a.shape == (64, 48))
    np.testing.assert_array_equal(kept.value, bytes_of(64, 48))
    assert str(*s.notes).endswith("multiplies bytes, and sums up integers")


def test_the_numbers_stay():
    scop = taken(restored((33, 8), 200) @ weights(8, 9, scales=SCALES[:9])).after
    x, w = bytes_of(33, 8, dtype=np.uint8), bytes_of(8, 9)
    sums = (x.astype(np.int64) - 200) @ w.astype(np.int64)
    wanted = sums.astype(np.float32) * (np.float32(0.5) * SCALES[:9])
    np.testing.assert_array_equal(interpret(scop, {"x": x})["y"], wanted)


def test_around_an_image_integers_are_zero():
    image = restored((1, 16, 9, 9))
    after = taken(ops.conv(image, weights(48, 16, 3, 3, axis=0), pads=[1] * 4)).after
    (update,) = (s for s in after.statements if s.reduction)
    frame = update.loads[0].array
    *border, inside = written(after, frame)
    assert after.arrays[frame].dtype == np.int32
    assert border
    assert all(text.endswith("= 0") for text in border)
    assert "sub" not in inside


def test_two_activations_with_zero_points_are_pairs_of_16_bits():
    b = ops.input("b", (64, 48), np.uint8)
    y = restored() @ ops.dequantize_linear(b, np.float32(0.25), np.uint8(150))
    after = take_out_scales(lowered(y), PRODUCTS | PAIRS).after
    assert factor_types(after) == {"int32"}
    assert factor_types(narrow_factors(after, PRODUCTS | PAIRS)) == {"int16"}
    feeds = {n: bytes_of(*s, dtype=np.uint8) for n, s in (("x", (40, 64)), ("b", (64, 48)))}
    x, b = (feeds[n].astype(np.int64) - z for n, z in (("x", 7), ("b", 150)))
    wanted = (x @ b).astype(np.float32) * np.float32(0.125)
    np.testing.assert_array_equal(interpret(after, feeds)["y"], wanted)


def test_a_zero_point_of_zero_is_none():
    after = taken(restored(zero=0) @ weights(64, 48)).after
    (update,) = (s for s in after.statements if s.reduction)
    assert written(after, update.loads[0].array)[0].endswith("= int32(x[i0, i1])")


def test_one_image_may_be_summed_up_twice():
    x = restored()
    scaled = taken(
        ops.concat([x @ weights(64, 48), x @ weights(64, 40, scales=SCALES[:40])], axis=1)
    )
    assert len(scaled.notes) == 2
    assert {s.value.dtype for s in scaled.after.statements if s.reduction} == {np.dtype(np.int32)}


ROWS = ops.dequantize_linear(
    ops.input("x", (40, 64), np.dtype(np.uint8)), np.linspace(0.1, 1, 64).astype(np.float32), axis=1
)
OTHER = ops.dequantize_linear(
    ops.input("z", (40, 64), np.dtype(np.int8)), np.float32(0.5), np.int8(1)
)
LONG = 70_000
BIG = ops.dequantize_linear(np.full((LONG, 48), -128, np.int8), SCALES, axis=1)


@pytest.mark.parametrize(
    ("y", "why"),
    [
        (ROWS @ weights(64, 48), "terms of one sum have different scales"),
        (restored() @ weights(64, 48, scales=SCALES[:64].repeat(2)[:64], axis=0), "different"),
        (restored() @ weights(64, 48, dtype=np.uint8), "no instruction multiplies uint8 and"),
        (restored((40, 2)) @ weights(2, 48), "no instruction takes several terms"),
        (restored((40, LONG)) @ BIG, "its sums might leave 32 bits"),
        (restored(scale=1e-30) @ weights(64, 48, scales=SCALES * 1e-10), "too small or too large"),
        (restored(dtype=np.int8) @ ops.transpose(OTHER), "a zero point would need sums"),
    ],
    ids=["by term", "by row", "unsigned", "short", "long", "tiny", "both"],
)
def test_why_sums_stay_floats(y, why):
    scaled = taken(y)
    (note,) = scaled.notes
    assert why in str(note)
    assert scaled.after is scaled.before
    dtypes = {s.value.dtype for s in scaled.after.statements if s.reduction}
    assert dtypes == {np.dtype(np.float32)}


def test_long_sums_of_small_weights_stay_in_range():
    w = np.zeros((LONG, 48), np.int8)
    w[::100] = 127
    x = restored((9, LONG), 0)
    scaled = taken(x @ ops.dequantize_linear(w, SCALES, axis=1))
    assert str(*scaled.notes).endswith("sums up integers")


def test_a_constant_that_is_not_multiplied_as_integers_is_restored_when_compiling():
    scop = lowered(restored((40, 2)) @ weights(2, 48))
    for types in (PRODUCTS, ()):
        scaled = take_out_scales(scop, types)
        assert scaled.after is scaled.before
        (value,) = (a.value for a in scaled.after.arrays.values() if a.shape == (2, 48))
        np.testing.assert_array_equal(value, bytes_of(2, 48).astype(np.float32) * SCALES)
    x = bytes_of(40, 2, dtype=np.uint8)
    same = [interpret(s, {"x": x})["y"] for s in (scop, scaled.after)]
    np.testing.assert_array_equal(*same)


def test_a_product_with_floats_has_a_float_constant():
    y = ops.input("x", (40, 64)) @ weights(64, 48)
    scop = lowered(y)
    assert not any(a.dtype == np.int8 for a in scop.arrays.values())
    assert not take_out_scales(scop, PRODUCTS).notes
