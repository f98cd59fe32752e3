"""Contractions in tiles: results, what stays in registers, and the barriers between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.block_barriers import check_block_barriers
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import compute_executions
from polyc.api import CompiledModel
from polyc.backends import common
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Barrier, Block, For, If, Kernel, Node, walk_nodes
from polyc.mapping.cuda.contraction import choose_shape
from polyc.mapping.cuda.thread_tiles import THREAD_SHAPES
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace
from tests.cuda.models import compile_model
from tests.programs import options

SM_80 = CudaTarget.named("sm_80")


def build(graph: Graph, folder: Path, emulated: bool) -> CompiledModel:
    return polyc.compile(graph, target="cuda", options=options(folder, emulated=emulated))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "depth"),
    [((), 100, 64, 256), ((), 37, 53, 29), ((3,), 33, 65, 17), ((), 130, 131, 40)],
    ids=str,
)
def test_products_of_odd_sizes(batch, rows, columns, depth, tmp_path, emulated):
    a, b = ops.input("a", (*batch, rows, depth)), ops.input("b", (*batch, depth, columns))
    model = build(Graph.of(y=ops.relu(a @ b + 1.0)), tmp_path, emulated)
    left, right = normal(*batch, rows, depth), normal(*batch, depth, columns)
    wanted = np.maximum(left.astype(np.float64) @ right + 1, 0)
    np.testing.assert_allclose(model(left, right), wanted, atol=1e-4)
    product, *sums = model.explain().kernels
    assert product.schedule.startswith("tile ")
    assert "1 barrier" in product.proof
    assert len(sums) <= 1  # how many parts there are depends on the GPU


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "group"),
    [(23, 7, 2, 3, 1), (14, 3, 1, 1, 1), (7, 1, 1, 0, 1), (14, 3, 1, 1, 4), (9, 3, 1, 1, 16)],
    ids=str,
)
def test_convolutions(size, kernel, stride, pad, group, tmp_path, emulated):
    weights, bias = normal(32, 16 // group, kernel, kernel), normal(32)
    x = ops.input("x", (2, 16, size, size))
    y = ops.conv(x, weights, bias, strides=[stride] * 2, pads=[pad] * 4, group=group)
    graph = Graph.of(y=ops.relu(y))
    model = build(graph, tmp_path, emulated)
    plain = polyc.compile(graph, options=options(tmp_path, minimal_filtering=False))
    data = normal(2, 16, size, size)
    np.testing.assert_allclose(model(data), plain(data), atol=1e-4)
    assert model.explain().kernels[0].schedule.startswith("tile ") == (group < 16)


def test_the_sums_are_in_registers_and_factors_shared(tmp_path):
    a, b = ops.input("a", (256, 64)), ops.input("b", (64, 256))
    model = build(Graph.of(y=a @ b), tmp_path, True)
    assert model.source.count("PC_SHARED(") == 2
    assert "_acc_tiles_local_0_0" in model.source
    assert re.search(r"pc_copy_async_16\(&\w+\[.*\], &b_\[", model.source)
    assert "pc_store_f32x4(&y_[" in model.source


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ((128, 196, 1152), True),  # a convolution of 3 x 3 on 14 x 14: few tiles, long sums
        ((128, 196, 96), False),  # short ones
        ((2048, 2048, 2048), False),  # tiles for all
        ((4, 196, 1152), False),  # no product of tiles at all
    ],
)
def test_long_sums_of_few_tiles_are_cut(shape, parts):
    rows, columns, depth = shape
    a, b = ops.input("a", (rows, depth)), ops.input("b", (depth, columns))
    rows_of = compile_model(Graph.of(y=ops.relu(a @ b)), "sm_90a").compiled.rows
    cut = [row.name for row in rows_of if "k_part" in row.schedule]
    assert bool(cut) == parts


def test_large_products_take_large_tiles():
    tiles = [choose_shape((1, n, n, n), SM_80, None).tile for n in (64, 1024, 4096)]
    sizes = [tile.rows.count * tile.columns.count for tile in tiles]
    assert sizes == sorted(sizes)
    assert sizes[0] <= 64 * 64
    assert sizes[-1] >= 128 * 64


@pytest.mark.parametrize("shape", THREAD_SHAPES, ids=lambda s: f"{s.tile}")
def test_every_shape_divides_into_threads(shape):
    assert shape.threads % 32 == 0
    counts = shape.tile.counts
    assert prod(counts[i] for i in shape.own) * shape.threads == (
        shape.tile.rows.count * shape.tile.columns.count
    )


def compiled(graph: Graph) -> tuple[Kernel, Phases]:
    """The only kernel of a graph, and its phases."""
    caught: list[tuple[Kernel, Phases]] = []

    def catch(kernel, part, storages, parameters, team):
        around = Surroundings(kernel, part, storages, parameters)
        runs = compute_executions(kernel, part)
        accesses = [access for run in runs for access in compute_accesses(around, run)]
        caught.append((kernel, Phases(around, accesses)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "verify_kernel", catch)
        run_pipeline(graph, SM_80, Options(), Trace())
    return caught[-1]


def without(block: Block, number: int) -> Block:
    """The nest without one of its barriers."""
    count = iter(range(1000))

    def visit(node: Node) -> Iterator[Node]:
        match node:
            case Barrier():
                if next(count) != number:
                    yield node
            case Block(body=body):
                yield replace(node, body=tuple(n for child in body for n in visit(child)))
            case For(body=body):
                (inside,) = visit(body)
                yield replace(node, body=inside)
            case If(then=then, otherwise=other):
                (then,) = visit(then)
                yield replace(node, then=then, otherwise=next(visit(other)) if other else None)
            case _:
                yield node

    (result,) = visit(block)
    return result


GRAPHS = {
    "product": Graph.of(y=ops.input("a", (64, 48)) @ ops.input("b", (48, 70))),
    "convolution": Graph.of(y=ops.conv(ops.input("x", (1, 8, 9, 9)), normal(24, 8, 3, 3))),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_barrier_is_needed(name):
    kernel, phases = compiled(GRAPHS[name])
    count = sum(isinstance(node, Barrier) for node in walk_nodes(kernel.body))
    assert count == 1
    assert check_block_barriers(kernel.body, phases) == count
    for number in range(count):
        with pytest.raises(IllegalSchedule, match="threads of a block may meet"):
            check_block_barriers(without(kernel.body, number), phases)


@pytest.mark.thorough
@pytest.mark.cuda
def test_filters_are_laid_out_for_the_threads_that_copy_them(tmp_path):
    x = ops.input("x", (1, 5, 9, 7))
    graph = Graph.of(y=ops.conv(x, normal(40, 5, 3, 3), pads=(1, 1, 1, 1)))
    model = build(graph, tmp_path, True)
    data = normal(1, 5, 9, 7)
    plain = polyc.compile(graph, options=options(tmp_path, minimal_filtering=False))
    np.testing.assert_allclose(model(data), plain(data), atol=1e-4)
    copies = [line for line in model.source.splitlines() if "&constant_0_[" in line]
    assert copies
    assert all("pc_copy_async_16" in line for line in copies)
