"""Bank conflicts and uncoalesced accesses are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulated import COUNTS, build, has_sanitizers, run
from tests.cuda.mutants import kernel, replaced
from tests.cuda.test_emulated_warps import BF16, run_bf16

pytestmark = pytest.mark.cuda

TRANSPOSE = """
#include "polyc_cuda.cuh"
PC_KERNEL(1024, 1) void transpose(const f32 *__restrict__ x, f32 *__restrict__ y)
{
    PC_SHARED(f32, tile, 32 * ROW);
    const int i = PC_THREAD_Y, j = PC_THREAD_X;
    tile[ROW * i + j] = x[64 * (32 * PC_BLOCK_Y + i) + 32 * PC_BLOCK_X + j];
    PC_SYNC();
    y[64 * (32 * PC_BLOCK_X + i) + 32 * PC_BLOCK_Y + j] = tile[ROW * j + i];
}
PC_KERNEL(256, 1) void naive(const f32 *__restrict__ x, f32 *__restrict__ y)
{
    const int k = 256 * PC_BLOCK_X + PC_THREAD_X;
    if (k < 4000) y[k] = x[64 * (k % 64) + k / 64];
}
PC_KERNEL(64, 1) void wide(const f32 *__restrict__ x, f32 *__restrict__ y)
{
    PC_SHARED(f32, row, 64 * STEP);
    pc_store_f32x4(&row[STEP * PC_THREAD_X], pc_load_f32x4(&x[4 * PC_THREAD_X]));
    y[PC_THREAD_X] = 0;
}
extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    const f32 *x = (const f32 *)buffers[0];
    f32 *y = (f32 *)buffers[1];
    return PC_LAUNCH(transpose, pc_dim3(2, 2, 1), pc_dim3(32, 32, 1), 0, stream, x, y)
        || PC_LAUNCH(naive, pc_dim3(16, 1, 1), pc_dim3(256, 1, 1), 0, stream, x, y)
        || PC_LAUNCH(wide, pc_dim3(1, 1, 1), pc_dim3(64, 1, 1), 0, stream, x, y);
}
"""


def counted(text: str, folder: Path, buffers: list[np.ndarray]) -> dict:
    if not has_sanitizers(COUNTS):
        pytest.skip("g++ has no sanitizers here")
    outcome = run(build(text, folder, COUNTS), buffers, seed=1)
    assert not outcome.found, outcome.report
    return dict(outcome.counts)


@pytest.mark.thorough
@pytest.mark.parametrize(("row", "factor"), [(32, 32), (33, 1), (34, 2)])
@pytest.mark.parametrize(("step", "conflicts"), [(4, 1), (8, 2)])
def test_transpositions(tmp_path: Path, row: int, factor: int, step: int, conflicts: int):
    text = f"#define ROW {row}\n#define STEP {step}\n{TRANSPOSE}"
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    counts = counted(text, tmp_path, [x, np.zeros_like(x)])
    warps = 4 * 32
    assert counts["transpose", "tile"] == (2 * warps, warps + factor * warps, 2 * warps)
    assert counts["transpose", "global"] == (2 * warps, 8 * warps, 8 * warps)
    # 4000 elements: 125 warps write 4 sectors each, and read 32.
    assert counts["naive", "global"] == (2 * 125, 125 * (4 + 32), 2 * 125 * 4)
    assert counts["wide", "row"] == (2, 2 * 4 * conflicts, 2 * 4)
    assert counts["wide", "global"] == (4, 2 * 16 + 2 * 4, 2 * 16 + 2 * 4)


@pytest.mark.thorough
@pytest.mark.parametrize(("padding", "copy", "load"), [(8, 2, 1), (0, 1, 4)])
def test_rows_of_matrices(tmp_path: Path, padding: int, copy: int, load: int):
    """Rows of 64 bytes: eight of them meet in two parts of the banks; padded, a copy's pairs do."""
    text = replaced(BF16, r"X_ROW = 32 \+ 8", f"X_ROW = 32 + {padding}")
    if not has_sanitizers(COUNTS):
        pytest.skip("g++ has no sanitizers here")
    outcome = run_bf16(build(text, tmp_path, COUNTS), 1)
    assert not outcome.found
    accesses, parts, least = outcome.counts["product", "x_stages"]
    copies, loads = 3 * 4 * 4, 3 * 4 * 4 * 2  # blocks, warps, steps, loads of four matrices
    assert (accesses, least) == (copies + loads, 4 * (copies + loads))
    assert parts == 4 * (copy * copies + load * loads)
    accesses, parts, least = outcome.counts["product", "w_stages"]
    assert parts == least


@pytest.mark.thorough
def test_tiles_of_floats(tmp_path: Path):
    x, w = np.ones((100, 70), np.float32), np.ones((70, 90), np.float32)
    counts = counted(kernel("tiles"), tmp_path, [x, w, np.ones((100, 90), np.float32)])
    accesses, parts, least = counts["tiles", "w_tile"]
    assert accesses == parts == least
