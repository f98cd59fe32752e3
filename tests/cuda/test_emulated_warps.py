"""What warps do together, copies in the background, and tensor cores, on the emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulated import ADDRESS, PLAIN, RACES, Outcome, build, has_sanitizers, run
from tests.cuda.mutants import kernel, replaced, without

pytestmark = pytest.mark.cuda
ALL = [PLAIN, ADDRESS, RACES]
NAMES = ["plain", "address", "races"]


def built(text: str, folder: Path, flags: tuple[str, ...]) -> Path:
    if flags != PLAIN and not has_sanitizers(flags):
        pytest.skip("g++ has no sanitizers here")
    return build(text, folder, flags)


# ---- shuffles, ballots, atomics -----------------------------------------------------------------


def total_buffers() -> list[np.ndarray]:
    x = np.random.default_rng(2).standard_normal((37, 500)).astype(np.float32)
    results = [np.zeros(37, np.float32), np.zeros(37, np.float32), np.zeros(37, np.int32)]
    return [x, *results, np.zeros(1), np.full(1, -np.inf, np.float32)]


@pytest.mark.thorough
@pytest.mark.parametrize("flags", ALL, ids=NAMES)
def test_totals(tmp_path: Path, flags: tuple[str, ...]):
    program, buffers = built(kernel("totals"), tmp_path, flags), total_buffers()
    x = buffers[0].astype(np.float64)
    for seed, processors in ((0, 1), (1, 1), (2, 2)):
        outcome = run(program, buffers, seed, processors)
        assert not outcome.found, outcome.report
        sums, maxima, positive, everything, largest = outcome.buffers[1:]
        np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(maxima, x.max(1).astype(np.float32))
        np.testing.assert_array_equal(positive, (x > 0).sum(1))
        np.testing.assert_allclose(everything, x.sum(), rtol=1e-5, atol=1e-3)
        assert largest[0] == buffers[0].max()


def test_a_shuffle_that_part_of_a_warp_skips_is_refused(tmp_path: Path):
    text = replaced(
        kernel("totals"), r"if \(PC_LANE == 0\)\n            count", "if (PC_LANE) return; count"
    )
    outcome = run(build(text, tmp_path), total_buffers(), seed=1)
    assert "has ended" in outcome.message


# ---- bf16 by mma.sync, ldmatrix and cp.async -----------------------------------------------------

BF16 = kernel("bf16")


def to_bf16(x: np.ndarray) -> np.ndarray:
    """float32, exact in bf16 -> bits."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def round_bf16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def bf16_operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return round_bf16(rng.standard_normal((96, 128))), round_bf16(rng.standard_normal((128, 64)))


def run_bf16(program: Path, seed: int) -> Outcome:
    x, w = bf16_operands()
    return run(program, [to_bf16(x), to_bf16(w), np.full((96, 64), 7, np.float32)], seed)


def bf16_is_right(outcome: Outcome) -> bool:
    x, w = bf16_operands()
    exact = x.astype(np.float64) @ w.astype(np.float64)
    return not outcome.error and bool(np.allclose(outcome.buffers[2], exact, rtol=1e-5, atol=1e-4))


@pytest.mark.thorough
@pytest.mark.parametrize("flags", ALL, ids=NAMES)
def test_bf16_product(tmp_path: Path, flags: tuple[str, ...]):
    program = built(BF16, tmp_path, flags)
    for seed in (0, 1, 2):
        outcome = run_bf16(program, seed)
        assert not outcome.report
        assert bf16_is_right(outcome), outcome.message


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        without(BF16, "PC_SYNC"),
        replaced(BF16, r"wait\(STAGES - 2\)", "wait(STAGES - 1)"),
        without(BF16, r"pc_copy_async_wait"),
        replaced(BF16, "ahead = step . STAGES - 1", "ahead = step + STAGES"),
        replaced(BF16, r"w_stages \+ 32 \* W_ROW \* .step % STAGES", "w_stages + 32 * W_ROW * (s"),
    ],
    ids=["barrier", "wait off by one", "no wait", "a stage too far", "wrong stage"],
)
def test_a_pipeline_that_is_off_by_one_is_wrong(tmp_path: Path, text: str):
    program = build(text, tmp_path)
    assert not all(bf16_is_right(run_bf16(program, seed)) for seed in (1, 2, 3))


def test_a_missing_barrier_of_the_pipeline_is_a_race(tmp_path: Path):
    program = built(without(BF16, "PC_SYNC"), tmp_path, RACES)
    assert "data race" in run_bf16(program, 1).report


def test_rows_of_ldmatrix_are_aligned(tmp_path: Path):
    outcome = run_bf16(build(replaced(BF16, r"X_ROW = 32 \+ 8", "X_ROW = 32 + 4"), tmp_path), 0)
    assert "not aligned" in outcome.message
