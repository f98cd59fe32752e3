"""Rows of a tile from several loops: small images are counted through, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import IllegalSchedule
from polyc.mapping.cpu.contraction.rows_as_one import keeps_together, spread_rows
from polyc.mapping.cpu.fuse_tiles import _with_own_loops
from polyc.options import Options
from polyc.promote import numbering
from polyc.schedule.schedule import Schedule
from polyc.target.machine import Target
from tests.analysis.nests import conv_scop
from tests.machines import need_named
from tests.mapping.stages import check, compile_stages
from tests.sampling import thorough

AVX2 = Target.named("avx2")


@pytest.mark.parametrize(
    ("target", "size"),
    [
        *((target, (16, 7, 7, 24, 1)) for target in ("avx512", "avx2")),
        thorough("baseline", (16, 7, 7, 24, 1)),
        thorough("avx2", (32, 7, 7, 4, 3)),
    ],
)
def test_pixels_of_a_small_image(target, size):
    stages = check(conv_scop(*size), Target.named(target))
    assert "collapse y x" in str(stages.schedule)
    (local,) = stages.promoted.values()
    _, height, width = stages.stored.tile
    assert stages.stored.rows == (2, 3)
    assert sorted(local.shape) == sorted((1, height, width))


@pytest.mark.parametrize("rows", [thorough(5), 7, thorough(16)])
def test_rows_of_images_on_either_side_of_heads(rows, tmp_path):
    """[image, head, row, k] by a matrix of each head: images and rows are next to each other."""
    need_named("avx512")
    rng = np.random.default_rng(rows)
    weights = rng.standard_normal((4, 16, 32)).astype(np.float32)
    x = ops.input("x", (2, rows, 64))
    heads = ops.transpose(ops.reshape(x, (2, rows, 4, 16)), (0, 2, 1, 3))
    graph = Graph.of(y=ops.reduce_max(heads @ weights, (3,)))
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, target=need_named("avx512"), options=options)
    assert "order j b1 b0 i | collapse b0 i" in str(model.explain())
    feed = rng.standard_normal((2, rows, 64)).astype(np.float32)
    expected = feed.reshape(2, rows, 4, 16).transpose(0, 2, 1, 3) @ weights
    np.testing.assert_allclose(model(feed), expected.max(3, keepdims=True), rtol=1e-4, atol=1e-4)


def test_rows_of_a_large_image_stay_alone():
    stages = compile_stages(conv_scop(32, 3, 96, 8, 1), AVX2)
    assert "collapse" not in str(stages.schedule)
    assert stages.stored.rows == ()


def test_a_part_that_shares_a_loop_has_its_own_loops_again():
    stages = compile_stages(conv_scop(32, 7, 7, 64, 1), AVX2)
    alone = _with_own_loops(stages.stored, stages.of.arrays, AVX2)
    assert stages.stored.rows
    assert not alone.rows
    assert alone.tile[2] == stages.stored.tile[2]  # panels of weights are as wide as they are
    assert "collapse" not in str(alone.schedule)


def test_loops_over_anything_are_collapsed_where_a_schedule_says_so():
    text = (
        "order o x y | collapse x y | split o 8 | split x 4 | vector o' | unroll x' | sink o' x' | "
        "keep all at x"
    )
    stages = check(conv_scop(8, 5, 3, 4, 3), AVX2, schedule=Schedule.parse(text))
    assert "keep acc in registers at x" in str(stages.schedule)
    (local,) = stages.promoted.values()
    assert sorted(local.shape) == [1, 4, 8]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("collapse y y'", "there is no loop y' here"),
        ("collapse o x", "x is not directly inside of o everywhere; put it there by order"),
    ],
)
def test_loops_that_are_not_inside_of_each_other_stay_apart(text, why):
    with pytest.raises(IllegalSchedule, match=why):
        compile_stages(conv_scop(8, 5, 3, 4, 3), AVX2, Schedule.parse(text))


def test_two_elements_of_one_number_are_found_by_the_proof(monkeypatch):
    """2 y + x: the pixels (0, 2) and (1, 0) of one tile lie in one place."""
    right = numbering._make_map
    monkeypatch.setattr(
        numbering,
        "_make_map",
        lambda array, steps: right(array, {d: min(step, 2) for d, step in steps.items()}),
    )
    stages = compile_stages(conv_scop(16, 7, 7, 24, 1))
    with pytest.raises(IllegalSchedule):
        stages.prove()


def test_a_tile_covers_whole_rows_first():
    assert spread_rows((1, 2), 25, (1, 7, 7)) == {2: 7, 1: 4}
    assert spread_rows((1, 2), 5, (1, 7, 7)) == {2: 5, 1: 1}
    assert spread_rows((), 5, (1, 7, 7)) == {}


def test_loops_that_run_as_one_are_not_torn_apart():
    assert keeps_together((0, 3, 1, 2), (1, 2))
    assert not keeps_together((0, 1, 3, 2), (1, 2))
    assert keeps_together((0, 1, 3, 2), ())


def test_pixels_are_counted_in_batches_of_any_size(tmp_path):
    w = np.random.default_rng(1).standard_normal((256, 256, 1, 1)).astype(np.float32)
    graph = Graph.of(y=ops.conv(ops.input("x", ("n", 256, 7, 7)), w / 16))
    options = Options(cache_dir=tmp_path)
    model = polyc.compile(graph, target=need_named("avx2"), options=options)
    assert any("collapse y x" in text for text in model.schedules.values())
    for n in (1, 2, 5):
        x = np.random.default_rng(n).standard_normal((n, 256, 7, 7)).astype(np.float32)
        wanted = np.einsum("nchw,oc->nohw", x.astype(np.float64), w[:, :, 0, 0] / 16)
        np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-4)
