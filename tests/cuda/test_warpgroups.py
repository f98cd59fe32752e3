"""Contractions by warpgroups of Hopper: results, banks, races, and what nvcc says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.mapping.cuda import contraction
from polyc.mapping.cuda.tiles import Shape
from polyc.mapping.cuda.warpgroup_tiles import WGMMA, list_warpgroup_shapes
from polyc.types.element_types import BFLOAT16, FLOAT16
from tests.cuda import emulated as emulator
from tests.cuda.emulated import COUNTS, RACES
from tests.cuda.models import Model, compile_model
from tests.cuda.test_tensor_cores import factor, normal
from tests.programs import options

pytestmark = pytest.mark.cuda

SHAPES = list_warpgroup_shapes(WGMMA[BFLOAT16])


def force(monkeypatch: pytest.MonkeyPatch, shape: Shape) -> None:
    """All products in tiles of one shape."""
    monkeypatch.setattr(contraction, "list_warp_shapes", lambda _: [])
    monkeypatch.setattr(contraction, "list_warpgroup_shapes", lambda _: [shape])


def operand(name: str, value: np.ndarray, transposed: str) -> tuple[ops.Tensor, np.ndarray]:
    """The tensor of a matrix, and how it is given."""
    if name not in transposed:
        return ops.input(name, value.shape, value.dtype), value
    stored = np.ascontiguousarray(value.T)
    return ops.transpose(ops.input(name, stored.shape, value.dtype), (1, 0)), stored


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s.threads} threads, {s.tile}")
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_products_in_every_tile(shape, transposed, monkeypatch, tmp_path):
    force(monkeypatch, shape)
    dtype = FLOAT16 if transposed == "a" else BFLOAT16
    left, right, bias = (normal(*s, dtype=dtype) for s in ((136, 200), (200, 264), (264,)))
    (a, given), (b, also) = (operand(n, v, transposed) for n, v in (("a", left), ("b", right)))
    chosen = options(tmp_path, emulated=True)
    model = polyc.compile(Graph.of(y=ops.relu(a @ b + bias)), target="cuda:sm_90a", options=chosen)
    result = model(given, also).astype(np.float64)
    wanted = np.maximum(factor(left) @ factor(right) + bias, 0)
    np.testing.assert_allclose(result, wanted, rtol=float(ml_dtypes.finfo(dtype).eps), atol=2e-5)
    assert "wgmma" in model.explain().kernels[-1].schedule


@pytest.mark.thorough
def test_odd_sizes_and_convolutions(monkeypatch, tmp_path):
    force(monkeypatch, SHAPES[-1])
    left, right = normal(70, 45, dtype=BFLOAT16), normal(45, 83, dtype=BFLOAT16)
    weights, data = normal(72, 8, 3, 3, dtype=BFLOAT16), normal(1, 8, 11, 9, dtype=BFLOAT16)
    a, b = ops.input("a", left.shape, BFLOAT16), ops.input("b", right.shape, BFLOAT16)
    x = ops.input("x", data.shape, BFLOAT16)
    graph = Graph.of(y=a @ b, z=ops.conv(x, weights, pads=(1, 1, 1, 1)))
    feeds = {"a": left, "b": right, "x": data}
    chosen = options(tmp_path, emulated=True)
    model = polyc.compile(graph, target="cuda:sm_90a", options=chosen)
    plain = polyc.compile(graph, options=options(tmp_path, minimal_filtering=False))
    assert all("wgmma" in k.schedule for k in model.explain().kernels)
    results, expected = model.run(feeds), plain.run(feeds)
    for name, wanted in expected.items():
        got, wanted = results[name].astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(got, wanted, rtol=0.01, atol=1e-4 * np.abs(wanted).max())


def test_large_products_for_hopper_are_by_warpgroups():
    a, b = (ops.input(n, (4096, 4096), BFLOAT16) for n in "ab")
    for arch, name in (("sm_90a", "wgmma"), ("sm_90", "mma.m16n8k16")):
        (row,) = compile_model(Graph.of(y=a @ b), arch).compiled.rows
        assert name in row.schedule


ODD = (60, 117, 60)
"""Rows that no tensor map can say: threads copy them."""


def small(
    transposed: str, rows: int = 64, depth: int = 128, columns: int = 64
) -> tuple[Model, list[np.ndarray]]:
    left, right = normal(rows, depth, dtype=BFLOAT16), normal(depth, columns, dtype=BFLOAT16)
    (a, given), (b, also) = (operand(n, v, transposed) for n, v in (("a", left), ("b", right)))
    model = compile_model(Graph.of(y=a @ b), "sm_90a")
    return model, model.buffers([given, also])


@pytest.mark.thorough
@pytest.mark.parametrize("transposed", ["", "ab"])
def test_copies_meet_in_no_bank(transposed, monkeypatch, tmp_path):
    if not emulator.has_sanitizers(COUNTS):
        pytest.skip("g++ has no sanitizers here")
    force(monkeypatch, SHAPES[-1])
    model, buffers = small(transposed)
    outcome = emulator.run(emulator.build(model.text, tmp_path, COUNTS), buffers, workspace=64)
    assert not outcome.found, outcome.report
    for (_, array), (_, parts, least) in outcome.counts.items():
        assert array == "global" or parts == least


@pytest.mark.thorough
@pytest.mark.parametrize("missing", ["", "PC_SYNC();", "pc_fence_async();", "pc_wgmma_wait(0);"])
def test_what_is_missing_shows(missing, monkeypatch, tmp_path):
    if not emulator.has_sanitizers(RACES):
        pytest.skip("g++ has no sanitizers here")
    force(monkeypatch, SHAPES[-1])
    model, buffers = small("", *ODD)
    text = model.text.replace(missing, "") if missing else model.text
    assert bool(missing) == (text != model.text)
    outcome = emulator.run(emulator.build(text, tmp_path, RACES), buffers, workspace=64)
    left, right = (normal(*s, dtype=BFLOAT16) for s in (ODD[:2], ODD[1:]))
    place = list(model.compiled.program.arrays).index("y")
    result = outcome.buffers[place].astype(np.float64)
    is_right = np.allclose(result, factor(left) @ factor(right), rtol=0.01, atol=1e-4)
    assert (is_right and not outcome.found) == (not missing), outcome.report
