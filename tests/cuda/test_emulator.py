"""The emulator runs threads and blocks in any order, and finds what is wrong with a kernel."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulated import ADDRESS, PLAIN, RACES, build, has_sanitizers, run
from tests.cuda.mutants import kernel, line_of, replaced, without
from tests.sampling import sampled, thorough

pytestmark = pytest.mark.cuda
TILES = kernel("tiles")


def tile_buffers() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((100, 70), (70, 90)))
    return [x, w, np.full((100, 90), 7, np.float32)]


def is_right(buffers: list[np.ndarray], y: np.ndarray) -> bool:
    expected = np.maximum(buffers[0].astype(np.float64) @ buffers[1].astype(np.float64), 0)
    return bool(np.allclose(y, expected, rtol=1e-5, atol=1e-5))


def need(flags: tuple[str, ...]) -> None:
    if not has_sanitizers(flags):
        pytest.skip("g++ has no sanitizers here")


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(TILES, tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize("seed", [0, 1, 99])
def test_any_order_gives_the_product(tiles: Path, seed: int, processors: int):
    buffers = tile_buffers()
    outcome = run(tiles, buffers, seed, processors)
    assert not outcome.found
    assert is_right(buffers, outcome.buffers[2])
    assert outcome.barriers == 6 * 7 * 2 * 5


@pytest.mark.thorough
@pytest.mark.parametrize("flags", [ADDRESS, RACES], ids=["address", "races"])
def test_sanitizers_have_nothing_to_report(tmp_path: Path, flags: tuple[str, ...]):
    need(flags)
    buffers = tile_buffers()
    outcome = run(build(TILES, tmp_path, flags), buffers, seed=3)
    assert not outcome.found, outcome.report
    assert is_right(buffers, outcome.buffers[2])


BARRIERS = ["are there", "are done with"]


@pytest.mark.parametrize("barrier", sampled(BARRIERS, often=["are there"]))
def test_without_a_barrier_results_are_wrong(tmp_path: Path, barrier: str):
    buffers = tile_buffers()
    program = build(without(TILES, barrier), tmp_path, PLAIN)
    assert not all(is_right(buffers, run(program, buffers, seed).buffers[2]) for seed in (1, 2))


@pytest.mark.thorough
@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_missing_barrier_is_reported_with_threads_lines_and_variable(
    tmp_path: Path, barrier: str
):
    need(RACES)
    outcome = run(build(without(TILES, barrier), tmp_path, RACES), tile_buffers(), seed=1)
    assert "data race" in outcome.report
    thread = r"Thread T\d+ 'tiles, block \(\d, \d, 0\), thread \(\d+, \d+, 0\)'"
    assert len(set(re.findall(thread, outcome.report))) > 1
    for accessed in ("x_tile.16 . i . j. =", "total .= ", r"PC_SHARED.f32, \w_tile"):
        lines = [k for k, line in enumerate(TILES.splitlines(), 1) if re.search(accessed, line)]
        assert any(f"model.cu:{k} " in outcome.report for k in lines)


def test_blocks_that_write_one_element_are_reported(tmp_path: Path):
    need(RACES)
    text = replaced(TILES, r"y\[90 \* row", "y[90 * i")
    assert "data race" in run(build(text, tmp_path, RACES), tile_buffers(), seed=1).report


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        thorough(r"x_tile\[16 \* i \+ j\] =", "x_tile[17 * i + j] ="),
        (r"y\[90 \* row", "y[91 * row"),
    ],
    ids=["shared", "global"],
)
def test_an_access_outside_of_an_array_is_reported_with_its_line(
    tmp_path: Path, pattern: str, by: str
):
    need(ADDRESS)
    outcome = run(build(replaced(TILES, pattern, by), tmp_path, ADDRESS), tile_buffers())
    assert "heap-buffer-overflow" in outcome.report
    assert f"model.cu:{line_of(TILES, pattern)}" in outcome.report


OUTSIDE = ["17 * i + j", "16 * i + j + 1", "16 * i + j - 1", "64 * i + j"]


@pytest.mark.parametrize("by", sampled(OUTSIDE, often=["16 * i + j - 1"]))
def test_a_write_outside_of_a_shared_array_is_refused_without_a_sanitizer(tmp_path: Path, by: str):
    text = replaced(TILES, r"x_tile\[16 \* i \+ j\] =", f"x_tile[{by}] =")
    outcome = run(build(text, tmp_path), tile_buffers())
    assert outcome.error
    assert outcome.message.endswith("its block writes outside of shared array x_tile")


THERE, DONE = (line_of(TILES, barrier) for barrier in BARRIERS)
BEFORE = line_of(TILES, "total = 0;")


@pytest.mark.thorough
@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            replaced(TILES, "PC_SYNC.*are there", "if (i < 15) PC_SYNC(); // are there"),
            rf"waits at line {DONE} while .* waits at line {THERE}|"
            rf"waits at line {THERE} while .* waits at line {DONE}",
        ),
        (
            replaced(TILES, "f32 total = 0;", "f32 total = 0; if (j == 3) return;"),
            rf"waits for ever at line {THERE}; thread \(3, 0, 0\) has ended",
        ),
        (
            replaced(TILES, "f32 total = 0;", "f32 total = 0; if (j == 3) PC_SYNC_WARP();"),
            rf"thread \(\d+, \d+, 0\): waits for ever at line ({BEFORE}|{THERE})",
        ),
    ],
    ids=["line", "ended", "warp"],
)
def test_a_barrier_that_not_all_threads_reach_is_refused(
    tmp_path: Path, text: str, message: str, seed: int, processors: int
):
    outcome = run(build(text, tmp_path), tile_buffers(), seed, processors)
    assert outcome.error == 719
    assert re.match(r"kernel tiles, block \(\d, \d, 0\), thread \(\d+, \d+, 0\)", outcome.message)
    assert re.search(message, outcome.message)


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        thorough(r"pc_dim3\(16, 16, 1\)", "pc_dim3(16, 65, 1)", "1 to 1024 threads"),
        (r"pc_dim3\(6, 7, 1\)", "pc_dim3(6, 0, 1)", "65535"),
        thorough(r", 0, stream", ", 300000, stream", "227 KiB"),
        (
            r"PC_SHARED\(f32, x_tile, 16 \* 16\)",
            "PC_SHARED_AT(f32, x_tile, 256, 0)",
            "up to byte 1024 of 0",
        ),
    ],
)
def test_launches_that_a_gpu_would_refuse(tmp_path: Path, pattern: str, by: str, message: str):
    outcome = run(build(replaced(TILES, pattern, by), tmp_path), tile_buffers())
    assert outcome.error
    assert message in outcome.message


def test_shared_arrays_at_offsets_may_not_overlap(tmp_path: Path):
    text = replaced(TILES, r", 0, stream", ", 2048, stream")
    text = replaced(text, r"PC_SHARED\(f32, x_tile, 16 \* 16", "PC_SHARED_AT(f32, x_tile, 256, 0")
    apart = replaced(
        text, r"PC_SHARED\(f32, w_tile, 16 \* 16", "PC_SHARED_AT(f32, w_tile, 256, 1024"
    )
    buffers = tile_buffers()
    outcome = run(build(apart, tmp_path), buffers)
    assert not outcome.found
    assert is_right(buffers, outcome.buffers[2])
    over = replaced(
        text, r"PC_SHARED\(f32, w_tile, 16 \* 16", "PC_SHARED_AT(f32, w_tile, 256, 1008"
    )
    assert "w_tile and x_tile, which overlap" in run(build(over, tmp_path), buffers).message


def test_an_array_that_is_declared_in_a_loop_is_one(tmp_path: Path):
    declared = r"    PC_SHARED\(f32, x_tile.*\n"
    text = replaced(TILES, declared, "")
    text = replaced(text, r"k \+= 16\) {", "k += 16) {\n        PC_SHARED(f32, x_tile, 256);")
    buffers = tile_buffers()
    outcome = run(build(text, tmp_path), buffers, seed=1)
    assert not outcome.found
    assert is_right(buffers, outcome.buffers[2])


def test_shared_memory_for_48_kib_at_most(tmp_path: Path):
    text = replaced(TILES, r"x_tile, 16 \* 16", "x_tile, 12 * 1024")
    assert "there are 48 KiB" in run(build(text, tmp_path), tile_buffers()).message
