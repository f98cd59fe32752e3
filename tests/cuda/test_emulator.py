"""The emulator computes what a GPU would, in any order, and finds what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulated import ADDRESS, KERNELS, PLAIN, RACES, build, has_sanitizers, run

pytestmark = pytest.mark.cuda
TILES = (KERNELS / "tiles.cu").read_text()


def tile_buffers() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((100, 70), (70, 90)))
    return [x, w, np.full((100, 90), 7, np.float32)]


def is_right(buffers: list[np.ndarray], y: np.ndarray) -> bool:
    expected = np.maximum(buffers[0].astype(np.float64) @ buffers[1].astype(np.float64), 0)
    return bool(np.allclose(y, expected, rtol=1e-5, atol=1e-5))


def without(text: str, pattern: str) -> str:
    """The text without the one line that has the pattern."""
    kept = [line for line in text.splitlines(keepends=True) if not re.search(pattern, line)]
    assert len(kept) == len(text.splitlines()) - 1
    return "".join(kept)


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(TILES, tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize("seed", [0, 1, 2, 99])
def test_tiles_in_any_order(tiles: Path, seed: int, processors: int):
    buffers = tile_buffers()
    outcome = run(tiles, buffers, seed, processors)
    assert not outcome.found
    assert is_right(buffers, outcome.buffers[2])
    assert outcome.barriers == 6 * 7 * 2 * 5


@pytest.mark.parametrize("flags", [ADDRESS, RACES], ids=["address", "races"])
def test_tiles_have_nothing_to_report(tmp_path: Path, flags: tuple[str, ...]):
    if not has_sanitizers(flags):
        pytest.skip("g++ has no sanitizers here")
    buffers = tile_buffers()
    outcome = run(build(TILES, tmp_path, flags), buffers, seed=3)
    assert not outcome.found, outcome.report
    assert is_right(buffers, outcome.buffers[2])


@pytest.mark.parametrize("barrier", ["are there", "are done with"])
def test_a_missing_barrier_makes_wrong_results(tmp_path: Path, barrier: str):
    buffers = tile_buffers()
    program = build(without(TILES, barrier), tmp_path, PLAIN)
    assert not all(is_right(buffers, run(program, buffers, seed).buffers[2]) for seed in (1, 2))


@pytest.mark.parametrize("barrier", ["are there", "are done with"])
def test_a_missing_barrier_is_reported_with_threads_line_and_variable(tmp_path: Path, barrier: str):
    if not has_sanitizers(RACES):
        pytest.skip("g++ has no sanitizers here")
    outcome = run(build(without(TILES, barrier), tmp_path, RACES), tile_buffers(), seed=1)
    declared = 1 + next(k for k, x in enumerate(TILES.splitlines()) if "x_tile, 16" in x)
    assert "data race" in outcome.report
    assert re.search(r"tiles, block \(\d, \d, \d\), thread \(\d+, \d+, 0\)", outcome.report)
    assert re.search(r"tiles .*model.cu:1[78]\b", outcome.report)
    assert re.search(rf"tiles .*model.cu:({declared}|{declared + 1})\b", outcome.report)
