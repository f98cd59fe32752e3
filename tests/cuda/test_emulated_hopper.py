"""Products by warpgroups, copies of tiles, barriers in shared memory, on the emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulated import PLAIN, RACES, Outcome, build, run
from tests.cuda.mutants import kernel, replaced, without
from tests.cuda.test_emulated_warps import ALL, NAMES, built, round_bf16, to_bf16

pytestmark = pytest.mark.cuda
HOPPER = kernel("hopper")
M, N, K = 200, 136, 192


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return round_bf16(rng.standard_normal((M, K))), round_bf16(rng.standard_normal((N, K)))


def run_hopper(program: Path, seed: int) -> Outcome:
    x, w = operands()
    return run(program, [to_bf16(x), to_bf16(w), np.full((M, N), 7, np.float32)], seed)


def is_right(outcome: Outcome) -> bool:
    x, w = operands()
    exact = x.astype(np.float64) @ w.astype(np.float64).T
    return not outcome.error and bool(np.allclose(outcome.buffers[2], exact, rtol=1e-5, atol=1e-4))


@pytest.mark.thorough
@pytest.mark.parametrize("flags", ALL, ids=NAMES)
def test_hopper_product(tmp_path: Path, flags: tuple[str, ...]):
    program = built(HOPPER, tmp_path, flags)
    for seed in (0, 1, 2):
        outcome = run_hopper(program, seed)
        assert not outcome.report
        assert is_right(outcome), outcome.message


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (without(HOPPER, "pc_wgmma_fence"), "without pc_wgmma_fence"),
        (replaced(HOPPER, "64 . 64, BYTES = 2", "64 * 64, BYTES = 3"), "waits for ever"),
        (replaced(HOPPER, "empty.s., 128", "empty[s], 129"), "waits for ever"),
        (without(HOPPER, r"init\(&empty"), "that nobody has made"),
        (replaced(HOPPER, "step / STAGES . 1", "step / STAGES"), "waits for ever"),
        (replaced(HOPPER, "full, STAGES, B", "full, STAGES, 4 + B"), "overlap"),
        (replaced(HOPPER, "X_AT = 0, W_AT = ", "X_AT = 512, W_AT = 512 + "), "aligned to 1024"),
        (
            replaced(HOPPER, "64, 64.., 128.;\n    error", "64, 32}}, 128);\n error"),
            "for ever",
        ),
        (replaced(HOPPER, "K, M., .1, K., .64", "K, M}, {1, K}, {128"), "a tensor map"),
    ],
    ids=[
        "fence",
        "bytes",
        "arrivals",
        "unmade",
        "parity",
        "overlap",
        "aligned",
        "smaller tile",
        "wide tile",
    ],
)
def test_misuse_is_refused(tmp_path: Path, text: str, message: str):
    outcome = run_hopper(build(text, tmp_path), 1)
    assert outcome.error
    assert message in outcome.message


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        without(HOPPER, "// copied"),
        without(HOPPER, "// multiplied"),
        replaced(HOPPER, "64 . 64, BYTES = 2", "64 * 64, BYTES = 1"),
        replaced(HOPPER, r"wait\(0\); // multiplied", "wait(1);"),
        without(HOPPER, "// the first time it is"),
        replaced(HOPPER, r"step / STAGES % 2\); // copied", "1 - step / STAGES % 2);"),
        replaced(HOPPER, r"b \+ 2 \* k", "b + 4 * k"),
        replaced(HOPPER, "M., .1, K., .64, 64.., 128", "M}, {1, K}, {64, 64}}, 0"),
    ],
    ids=[
        "not copied",
        "no wait",
        "half of the bytes",
        "wait off by one",
        "not empty",
        "other phase",
        "k",
        "swizzle",
    ],
)
def test_what_comes_too_early_is_wrong(tmp_path: Path, text: str):
    program = build(text, tmp_path)
    assert not all(is_right(run_hopper(program, seed)) for seed in (1, 2, 3))


@pytest.mark.thorough
def test_a_stage_that_is_copied_over_too_early_is_a_race(tmp_path: Path):
    program = built(without(HOPPER, "// the first time it is"), tmp_path, RACES)
    assert "data race" in run_hopper(program, 1).report


# ---- operands written by threads, and the result stored by tiles --------------------------------

WRITTEN = kernel("written")


def written_is_right(
    text: str, folder: Path, flags: tuple[str, ...] = PLAIN, seeds: int = 1
) -> bool:
    rng = np.random.default_rng(5)
    x, w = (round_bf16(rng.standard_normal(shape)) for shape in ((64, 64), (64, 128)))
    program, exact = built(text, folder, flags), x.astype(np.float64) @ w.astype(np.float64)
    for seed in range(seeds):
        outcome = run(program, [to_bf16(x), to_bf16(w), np.zeros((64, 128), np.float32)], seed)
        assert not outcome.found, outcome.message + outcome.report
        if not np.allclose(outcome.buffers[2], exact, rtol=1e-5, atol=1e-4):
            return False
    return True


@pytest.mark.thorough
@pytest.mark.parametrize("flags", ALL, ids=NAMES)
def test_operands_that_threads_write(tmp_path: Path, flags: tuple[str, ...]):
    assert written_is_right(WRITTEN, tmp_path, flags, 3)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pattern",
    ["// the operands$", "// the result$", "operands are there", "result is there", "// stored"],
)
def test_without_a_proxy_fence_or_barrier_results_are_wrong(tmp_path: Path, pattern: str):
    assert not written_is_right(without(WRITTEN, pattern), tmp_path, seeds=3)
