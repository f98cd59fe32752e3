"""Clusters that hand over more than the second-level cache holds run tile by tile.

The targets here have a small second-level cache, so that small shapes show what large ones do.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.api import CompiledModel
from polyc.target.machine import Target, missing_features
from tests.programs import options

AVX512 = Target.named("avx512")

pytestmark = pytest.mark.skipif(
    bool(missing_features(AVX512.features)),
    reason="what is fused here is chosen for AVX-512, which this machine lacks",
)


def small_cache(kib: int) -> Target:
    return replace(AVX512, l2=kib * 1024)


def attention(heads: int, rows: int, keys: int, width: int) -> Graph:
    q = ops.input("q", (heads, rows, width))
    k = ops.input("k", (heads, keys, width))
    v = ops.input("v", (heads, keys, width))
    scores = ops.matmul(q, ops.transpose(k, (0, 2, 1))) * float(width**-0.5)
    return Graph.of(y=ops.matmul(ops.softmax(scores), v))


def expected_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def tiled(model: CompiledModel) -> list[str]:
    """The schedules of the kernels that consist of several clusters."""
    return [row.schedule for row in model.explain().kernels if row.schedule.startswith("fuse ")]


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("heads", "rows", "keys", "width"), [(2, 131, 77, 19), (17, 64, 96, 32), (3, 190, 64, 32)]
)
def test_scores_never_leave_the_tile(
    heads: int, rows: int, keys: int, width: int, threads: int, tmp_path: Path
):
    model = polyc.compile(
        attention(heads, rows, keys, width),
        target=small_cache(64),
        threads=threads,
        options=options(tmp_path),
    )
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((heads, n, width), dtype=np.float32) for n in (rows, keys, keys))
    error = np.abs(model(q, k, v) - expected_attention(q, k, v)).max()
    assert error < 2e-6
    (schedule,) = tiled(model)
    assert schedule.count("unroll ") == 2  # the two products, and rows between them
    assert schedule.count("vector ") > 2
    report = model.explain()
    scores = heads * rows * keys * 4
    assert report.arena_bytes < scores, "the scores are in memory"
    assert not any("MatMul" in n.consumer for n in report.not_fused)


def test_infinities_stay_in_their_rows(tmp_path: Path):
    model = polyc.compile(
        attention(2, 131, 77, 19), target=small_cache(64), options=options(tmp_path)
    )
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, 19), dtype=np.float32) for n in (131, 77, 77))
    q[1, 40, 3] = np.nan
    y, wanted = model(q, k, v), expected_attention(q, k, v)
    assert np.isnan(y[1, 40]).all()
    np.testing.assert_allclose(y, wanted, atol=2e-6, equal_nan=True)


def separable(channels: int, size: int, out: int) -> Graph:
    """Expanded, depthwise, projected, as in MobileNet; the first makes channels innermost."""
    rng = np.random.default_rng(channels)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    x = ops.input("x", (1, channels, size, size))
    expanded = ops.relu(ops.conv(x, normal(channels, channels, 1, 1) / 4))
    depthwise = ops.conv(expanded, normal(channels, 1, 3, 3), pads=(1, 1, 1, 1), group=channels)
    pointwise = ops.conv(ops.relu(depthwise), normal(out, channels, 1, 1) / 4, normal(out))
    return Graph.of(y=ops.relu(pointwise))


def test_a_depthwise_convolution_hands_its_rows_to_the_pointwise_one(tmp_path: Path):
    graph = separable(32, 61, 24)
    apart = polyc.compile(graph, target=AVX512, options=options(tmp_path))
    model = polyc.compile(graph, target=small_cache(192), options=options(tmp_path))
    assert not tiled(apart)
    assert len(tiled(model)) == 1
    x = np.random.default_rng(1).standard_normal((1, 32, 61, 61), dtype=np.float32)
    np.testing.assert_allclose(model(x), apart(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 1, 1, 0), (1, 0, 2, 2)])
def test_frames_are_filled_tile_by_tile(pads: tuple[int, ...], threads: int, tmp_path: Path):
    """Fills of a frame, what is copied into it, and windows over it: a kernel without a frame."""
    x = ops.input("x", (2, 34, 41, 53))
    graph = Graph.of(y=ops.max_pool(x, (3, 3), strides=(2, 1), pads=pads))
    model = polyc.compile(graph, target=small_cache(64), threads=threads, options=options(tmp_path))
    assert len(model.explain().kernels) == len(tiled(model)) == 1
    assert model.explain().arena_bytes == 0
    value = np.random.default_rng(2).standard_normal((2, 34, 41, 53), dtype=np.float32)
    value[1, 33, 40, 50:] = np.nan, np.inf, -np.inf
    value[0, 0, 0, :2] = -np.inf
    (top, left, bottom, right), low = pads, -np.inf
    framed = np.pad(value, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=low)
    windows = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), (2, 3))[:, :, ::2]
    np.testing.assert_array_equal(model(value), windows.max((-2, -1)))


def test_a_convolution_fills_the_frame_of_the_one_behind_it_channel_by_channel(tmp_path: Path):
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) / np.float32(
            (shape[1] * shape[-1]) ** 0.5
        )

    first, second, third = normal(96, 16, 1, 1), normal(576, 96, 1, 1), normal(96, 576, 1, 1)
    taps = normal(576, 1, 3, 3)
    y = ops.conv(ops.input("x", (1, 16, 14, 14)), first)  # channels become innermost
    y = ops.conv(ops.relu(ops.conv(ops.relu(y), second)), taps, pads=(1, 1, 1, 1), group=576)
    graph = Graph.of(y=ops.conv(ops.relu(y), third))
    model = polyc.compile(graph, target=small_cache(1024), options=options(tmp_path))
    (schedule,) = tiled(model)
    assert schedule.count("_pad_") > 4
    x = rng.standard_normal((1, 16, 14, 14), dtype=np.float32)
    image = np.maximum(np.einsum("ocij,cyx->oyx", first, x[0].astype(np.float64)), 0)
    image = np.maximum(np.einsum("ocij,cyx->oyx", second, image), 0)
    framed = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), (1, 2))
    image = np.maximum(np.einsum("cyxrs,ckrs->cyx", windows, taps), 0)
    expected = np.einsum("ocij,cyx->oyx", third, image)
    np.testing.assert_allclose(model(x)[0], expected, rtol=1e-4, atol=1e-4)


def test_what_would_be_read_for_every_tile_again_keeps_kernels_apart(tmp_path: Path):
    rng = np.random.default_rng(0)
    x = ops.input("x", (64, 64))
    h = ops.relu(ops.matmul(x, rng.standard_normal((64, 512), dtype=np.float32)))
    graph = Graph.of(y=ops.matmul(h, rng.standard_normal((512, 512), dtype=np.float32)))
    model = polyc.compile(graph, target=small_cache(128), options=options(tmp_path))
    assert not tiled(model), "the second matrix is larger than what is handed over"


def test_a_kernel_in_between_goes_first_if_it_must_and_stays_if_it_may(tmp_path: Path):
    """The copy that packs v depends on nothing that is fused; z is no part of it."""
    q, k = ops.input("q", (4, 96, 32)), ops.input("k", (4, 32, 128))
    v, z = ops.input("v", (4, 32, 128)), ops.input("z", (64, 64))
    weights = ops.softmax(ops.matmul(q, k))
    graph = Graph.of(y=ops.matmul(weights, ops.transpose(v, (0, 2, 1))), t=ops.matmul(z, z))
    model = polyc.compile(graph, target=small_cache(64), options=options(tmp_path))
    assert len(tiled(model)) == 1
    rng = np.random.default_rng(0)
    feeds = {s.name: rng.standard_normal(s.shape, dtype=np.float32) / 4 for s in model.inputs}
    result = model.run(feeds)
    scores = feeds["q"].astype(np.float64) @ feeds["k"]
    weights_ = np.exp(scores - scores.max(-1, keepdims=True))
    weights_ /= weights_.sum(-1, keepdims=True)
    np.testing.assert_allclose(result["y"], weights_ @ feeds["v"].transpose(0, 2, 1), atol=1e-5)
    np.testing.assert_allclose(result["t"], feeds["z"].astype(np.float64) @ feeds["z"], atol=1e-5)


def test_a_constant_that_each_part_stores_in_its_own_way_keeps_them_apart(tmp_path: Path):
    """w is read along its rows by one product, and along its columns by the other."""
    w = np.random.default_rng(0).standard_normal((24, 40), dtype=np.float32)
    x = ops.input("x", (200, 24))
    h = ops.relu(ops.matmul(x, w))
    model = polyc.compile(
        Graph.of(y=ops.matmul(h, ops.transpose(ops.constant(w), (1, 0)))),
        target=small_cache(32),
        options=options(tmp_path),
    )
    a = np.random.default_rng(1).standard_normal((200, 24), dtype=np.float32)
    wanted = np.maximum(a.astype(np.float64) @ w, 0) @ w.T
    np.testing.assert_allclose(model(a), wanted, atol=1e-4)


@pytest.mark.parametrize("height", [100, "h"])
def test_transforms_of_large_images_run_row_by_row_with_their_products(tmp_path: Path, height):
    """30 tiles a row, which rows of 13, along the other loop, do not divide; of any height, too.

    Rows along the points of a tile would share no weights: the kernel took twice as long.
    """
    rng = np.random.default_rng(4)
    w, v = ((rng.standard_normal((n, 64, 3, 3)) / 24).astype(np.float32) for n in (64, 32))
    x = ops.input("x", (2, 64, height, 120))
    graph = Graph.of(y=ops.conv(ops.relu(ops.conv(x, w, pads=[1] * 4)), v, pads=[1] * 4))
    of_call = {} if height == 100 else {"hint": {"h": 100}}
    model = polyc.compile(graph, target=AVX512, options=options(tmp_path), **of_call)
    schedules = tiled(model)
    assert len(schedules) == 2
    for schedule in schedules:
        (rows,) = re.findall(r"unroll (\S*_13\.\S+)", schedule)
        assert rows.endswith(".t1''"), schedule
    for n in (100,) if height == 100 else (100, 9, 1):
        image = rng.standard_normal((2, 64, n, 120)).astype(np.float32)
        want = convolved(np.maximum(convolved(image.astype(np.float64), w), 0), v)
        np.testing.assert_allclose(model(image), want, atol=2e-5 * np.abs(want).max())


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A 3 x 3 convolution of an image inside a frame of zeros."""
    framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), (2, 3))
    return np.einsum("ncyxrq,ocrq->noyx", seen, w, optimize=True)
