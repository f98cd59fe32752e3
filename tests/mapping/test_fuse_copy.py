"""Copies that pack an operand, tile by tile with who reads it: how wide, and sums in blocks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.mapping.cpu import fuse_copy
from polyc.mapping.cpu.fuse_copy import COPIED_SHARE, MOST_COPIED, MOST_SUMS, RUNS
from polyc.mapping.cpu.fuse_tiles import fuse_tiles
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.schedule.cluster import find_clusters
from polyc.trace import Trace
from tests.mapping.stages import AVX2, AVX512
from tests.mapping.test_packing import product
from tests.programs import options
from tests.sampling import thorough


def kernels(m: int, n: int, k: int, target=AVX512) -> tuple[StoredKernel, ...]:
    of = product(m, n, k)
    stored = store_clusters(find_clusters(of, target)[0], of, target)
    return fuse_tiles(stored.clusters, stored.scop.arrays, target)


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
@pytest.mark.parametrize("k", [512, 1024, 1500, 3000, 4096, 9999])
def test_a_tile_copies_runs_of_rows_and_stays_near(k, target):
    (kernel,) = kernels(64, 4096, k, target)
    (wide,) = kernel.sizes
    assert wide * 4 >= RUNS[0]
    most = min(COPIED_SHARE * target.l2, MOST_COPIED)
    assert wide * 4 * (kernel.terms or k) <= most
    assert bool(kernel.terms) == (wide * 4 * k > most)
    assert (" hold " in str(kernel.schedule)) == bool(kernel.terms)


def test_results_that_wait_stay_near_as_well(monkeypatch):
    (kernel,) = kernels(64, 4096, 4096, AVX2)
    assert kernel.terms
    monkeypatch.setattr(fuse_copy, "SUMS_SHARE", 63 * RUNS[0] / AVX2.l2)
    assert all(not kernel.terms for kernel in kernels(64, 4096, 4096, AVX2))


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
@pytest.mark.parametrize(("m", "k"), [(64, 4096), (64, 1200), thorough(300, 9999)])
def test_what_is_kept_fits_a_stack(m, k, target):
    """Half of a second-level cache of 2 MB is more than local arrays may take."""
    graph = multiply(m, 4096, k)
    compiled = run_pipeline(graph, replace(target, l2=2**21), Options(), Trace())
    (schedule,) = dict(compiled.schedules).values()
    assert "keep w_packed in stack" in schedule
    text = "".join(compiled.sources.values())
    kept = dict(re.findall(r"f32 (\w+_local)\[(\d+)\]", text))  # whole tiles and others alike
    assert kept
    assert sum(map(int, kept.values())) * 4 <= MOST_COPIED + MOST_SUMS


def test_a_small_sum_is_as_wide_as_there_is_room():
    (kernel,) = kernels(64, 4096, 256, AVX2)
    assert not kernel.terms
    assert kernel.sizes[0] * 4 > RUNS[0]


def test_few_tiles_are_not_made_fewer():
    """Threads would have nothing to share."""
    (kernel,) = kernels(64, 1024, 4096, AVX512)  # 48 columns are a panel
    assert kernel.sizes == (48,)
    (kernel,) = kernels(64, 1536, 4096, AVX512)
    assert kernel.sizes == (96,)
    assert all(not kernel.terms for kernel in kernels(64, 512, 4096, AVX2))


def multiply(m: int, n: int, k: int, *batch: int) -> Graph:
    x, w = ops.input("x", (*batch, m, k)), ops.input("w", (*batch, k, n))
    bias = np.arange(n, dtype=np.float32)
    return Graph.of(y=ops.relu(ops.matmul(x, w) + bias))


def check(model: polyc.CompiledModel, m: int, n: int, k: int, *batch: int) -> None:
    rng = np.random.default_rng(m + n + k)
    x = rng.standard_normal((*batch, m, k)).astype(np.float32)
    w = rng.standard_normal((*batch, k, n)).astype(np.float32)
    wanted = np.maximum(x.astype(float) @ w.astype(float) + np.arange(n), 0)
    np.testing.assert_allclose(model(x, w), wanted, rtol=1e-4, atol=1e-3)


ODD = [
    ((61, 1033, 4097), ()),
    thorough((35, 1050, 4099), ()),
    thorough((64, 1024, 4096), ()),
    thorough((40, 550, 4100), (2,)),
]


@pytest.mark.parametrize(("sizes", "batch"), ODD)
def test_sums_in_blocks_are_right_and_proven(sizes, batch, tmp_path):
    model = polyc.compile(multiply(*sizes, *batch), target="avx2", options=options(tmp_path))
    assert " hold " in str(model.schedules)
    assert all(row.proof for row in model.explain().kernels)
    check(model, *sizes, *batch)


BLOCKS = (
    "fuse w_packed.i1 MatMul_0_out.j 32 | parallel i1 | keep all at i1 "
    "| distribute MatMul_0_out.j' MatMul_0_out.i | first MatMul_0_init.i "
    "| fuse w_packed.i0 MatMul_0.k 12 | keep w_packed in stack at i0 | prefetch w "
    "| order i0' i1' | split i0' 4 | split i1' 16 | vector i1'' | unroll i0'' | sink i1'' i0'' "
    "| pack w | order j' i | split j' 16 | split i 6 | vector j'' | unroll i' | sink j'' i' "
    "| hold MatMul_0.k'"
)


@pytest.mark.parametrize(
    "sizes", [(61, 67, 41), (32, 33, 12), (36, 32, 13), thorough((37, 100, 5))]
)
def test_a_given_schedule_takes_sums_in_blocks(sizes, tmp_path):
    model = polyc.compile(
        multiply(*sizes),
        schedule={"MatMul_0_out": BLOCKS},
        target="avx2",
        options=options(tmp_path),
    )
    assert all(row.proof for row in model.explain().kernels)
    check(model, *sizes)


def test_what_is_shown_of_a_fused_copy_can_be_given_back(tmp_path):
    graph = multiply(64, 1024, 1024)
    model = polyc.compile(graph, target="avx2", options=options(tmp_path))
    (shown,) = model.schedules.items()
    assert "fuse w_packed.i1" in shown[1]
    again = polyc.compile(graph, schedule=dict([shown]), target="avx2", options=options(tmp_path))
    assert again.schedules == dict([shown])
    check(again, 64, 1024, 1024)


def test_results_that_are_held_are_not_predicted_to_pass_through_memory(tmp_path):
    """A sum in blocks takes four times as long as one of a fourth, which needs no blocks."""
    predicted = []
    for terms in (1024, 4096):
        model = polyc.compile(
            multiply(64, 1024, terms), target="avx2", options=options(tmp_path), threads=1
        )
        predicted.append(sum(row.predicted for row in model.explain().kernels))
    assert predicted[1] < 5 * predicted[0]
