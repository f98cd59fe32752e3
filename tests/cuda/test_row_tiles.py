"""Clusters that hand each other rows share a kernel: attention without scores in memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.api import CompiledModel
from tests.e2e.test_fused_tiles import attention, expected_attention
from tests.programs import options

SIZES = [(2, 131, 77, 19), (17, 64, 96, 32), (5, 33, 50, 8)]


def build(graph: Graph, folder: Path, emulated: bool, target: str = "cuda") -> CompiledModel:
    return polyc.compile(graph, target=target, options=options(folder, emulated=emulated))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.thorough
@pytest.mark.parametrize(("heads", "rows", "keys", "width"), SIZES)
def test_scores_stay_in_shared_memory(heads, rows, keys, width, tmp_path, emulated):
    model = build(attention(heads, rows, keys, width), tmp_path, emulated)
    q, k, v = normal(heads, rows, width), normal(heads, keys, width), normal(heads, keys, width)
    np.testing.assert_allclose(model(q, k, v), expected_attention(q, k, v), atol=2e-6)
    report = model.explain()
    (kernel,) = report.kernels
    assert "in place of matmul_0 at mt" in kernel.schedule
    assert kernel.schedule.count("tile ") == 2
    assert report.arena_bytes < heads * rows * keys * 4, "the scores are in memory"
    assert not any("MatMul" in n.consumer for n in report.not_fused)


@pytest.mark.thorough
@pytest.mark.cuda
def test_weights_lie_where_the_scores_were(tmp_path):
    model = build(attention(2, 131, 77, 19), tmp_path, True, "cuda:sm_80")
    assert "PC_SHARED(f32, matmul_0_local, 2464);" in model.source  # 32 x 77
    assert "softmax_0_local" not in model.source


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [1, 2])
def test_a_mask_and_heads_that_are_views(batch, tmp_path, emulated):
    """As models have it: heads cut out of one array, and put together again."""
    x, mask = ops.input("x", (batch, 35, 3 * 24)), ops.input("mask", (batch, 1, 1, 35))

    def head(k: int) -> ops.Tensor:
        part = ops.slice(x, [24 * k], [24 * (k + 1)], axes=[2])
        return ops.transpose(ops.reshape(part, (batch, 35, 3, 8)), (0, 2, 1, 3))

    scores = ops.matmul(head(0), ops.transpose(head(1), (0, 1, 3, 2))) + mask
    y = ops.reshape(
        ops.transpose(ops.matmul(ops.softmax(scores), head(2)), (0, 2, 1, 3)), (batch, 35, 24)
    )
    model = build(Graph.of(y=y), tmp_path, emulated)
    data, hidden = (
        normal(batch, 35, 72),
        np.where(normal(batch, 1, 1, 35) > 1, -1e9, 0).astype(np.float32),
    )
    q, k, v = data.astype(np.float64).reshape(batch, 35, 3, 3, 8).transpose(2, 0, 3, 1, 4)
    weights = np.exp(q @ k.swapaxes(-1, -2) + hidden)
    wanted = (
        (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, 35, 24)
    )
    np.testing.assert_allclose(model(data, hidden), wanted, atol=2e-6)
    assert len(model.explain().kernels) == 1


@pytest.mark.thorough
@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_no_register_is_spilled(arch, tmp_path):
    model = build(attention(12, 512, 512, 64), tmp_path, False, f"cuda:{arch}")
    (kernel,) = model.explain().kernels
    (function,) = kernel.functions
    assert function.spilled == 0
    assert function.registers is not None


@pytest.mark.cuda
def test_what_does_not_fit_stays_apart(tmp_path):
    model = build(attention(12, 4096, 4096, 64), tmp_path, True, "cuda:sm_80")
    first = [k.schedule.split()[0] for k in model.explain().kernels]
    assert first == ["tile", "join", "tile"]


@pytest.mark.cuda
def test_a_norm_keeps_its_multiprocessors(tmp_path):
    """Rows of all columns would leave a few blocks with all of the product, and its sums in parts,
    added up in the norm's kernel, a thread with each row."""
    y = ops.matmul(ops.input("x", (128, 768)), normal(768, 768))
    graph = Graph.of(y=ops.layer_normalization(y, normal(768), normal(768)))
    model = build(graph, tmp_path, True, "cuda:sm_80")
    product, total, norm = (k.schedule for k in model.explain().kernels)
    assert product.startswith("tile")
    assert total.startswith("join i j as")
    assert "combine" in norm
