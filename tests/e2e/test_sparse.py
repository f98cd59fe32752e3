"""Compiled networks whose weights are mostly zero: numbers beside NumPy's, and loops over data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, Options, ops
from polyc.analysis.launches import offsets
from polyc.errors import IllegalSchedule
from polyc.scop.sparse import entries, zeros
from polyc.types.element_types import UINT8
from tests.correlate import correlate
from tests.exact.runs import exactly
from tests.machines import need_named
from tests.sampling import thorough

RNG = np.random.default_rng(0)


def thin(*shape: int, share: float = 0.9) -> np.ndarray:
    return np.where(RNG.random(shape) < share, 0, RNG.standard_normal(shape)).astype(np.float32)


def options(folder: Path, **more) -> Options:
    return Options(cache_dir=folder, **more)


def ends_by_data(model) -> bool:
    return "_end = pc_min(pc_cast" in model.source


W = thin(83, 45), thin(45, 19, share=0.8)


def layers(rows: int | str = 21) -> Graph:
    """Two products, of which the second reads what the first one writes in lanes along rows."""
    x = ops.input("x", (rows, 83))
    return Graph.of(y=ops.relu(x @ W[0]) @ W[1])


def layers_by_numpy(x: np.ndarray) -> np.ndarray:
    return np.maximum(x.astype("f8") @ W[0], 0) @ W[1]


F, B = thin(13, 6, 3, 3), RNG.standard_normal(13).astype(np.float32)


def strided() -> Graph:
    x = ops.input("x", (2, 6, 17, 27))
    return Graph.of(y=ops.conv(x, F, B, pads=[1] * 4, strides=[2, 2]))


@pytest.mark.parametrize(
    ("target", "threads"), [("avx512", 1), thorough("avx2", 2), thorough("baseline", 1)]
)
def test_products_and_convolutions(tmp_path, target, threads):
    target = need_named(target)
    model = polyc.compile(layers(), target=target, threads=threads, options=options(tmp_path))
    x = RNG.standard_normal((21, 83)).astype(np.float32)
    assert ends_by_data(model)
    np.testing.assert_allclose(model(x), layers_by_numpy(x), rtol=1e-5, atol=1e-5)
    model = polyc.compile(strided(), target=target, threads=threads, options=options(tmp_path))
    x = RNG.standard_normal((2, 6, 17, 27)).astype(np.float32)
    assert ends_by_data(model)
    expected = correlate(x, F, B, [1] * 4)[:, :, ::2, ::2]
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tap", [None, (5, 0, 2, 2)])
def test_an_image_is_not_copied_for_places_that_data_says(tmp_path, tap):
    """A layer that a training began with zeros, as the last ones of residual blocks."""
    weights, bias = np.zeros((128, 128, 3, 3), np.float32), np.arange(128, dtype=np.float32)
    if tap:
        weights[tap] = 2
    x = ops.input("x", (1, 128, 56, 56))
    mirrored = ops.pad(ops.relu(x), [0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
    blurred = ops.conv(mirrored, np.ones((128, 1, 3, 3), np.float32), group=128, strides=[2, 2])
    graph = Graph.of(y=ops.conv(blurred, weights, bias, pads=[1] * 4))
    given = RNG.standard_normal((1, 128, 56, 56)).astype(np.float32)
    wide = np.pad(np.maximum(given[0, 0], 0), 1, mode="reflect")
    seen = sum(wide[i : i + 55 : 2, j : j + 55 : 2] for i in range(3) for j in range(3))
    expected = np.broadcast_to(bias[:, None, None], (128, 28, 28)).copy()
    if tap:
        expected[5, :-1, :-1] += 2 * seen[1:, 1:]
    chosen = options(tmp_path, threads=1)
    y = polyc.compile(graph, options=chosen, target=need_named("avx512"))(given)
    np.testing.assert_allclose(y[0], expected, rtol=1e-5)


def test_open_sizes(tmp_path):
    dims = {"n": (0, 40)}
    model = polyc.compile(layers("n"), dims=dims, threads=2, options=options(tmp_path))
    assert ends_by_data(model)
    for n in (0, 1, 16, 40):
        x = RNG.standard_normal((n, 83)).astype(np.float32)
        np.testing.assert_allclose(model(x), layers_by_numpy(x), rtol=1e-5, atol=1e-5)


def test_only_what_is_multiplied_carries_on_a_nan(tmp_path):
    w = np.zeros((40, 20), np.float32)
    w[3, 5] = w[7, 6] = 2
    x = np.ones((16, 40), np.float32)
    x[0, 3], x[1, 7], x[2, 0] = np.nan, np.inf, np.nan
    graph = Graph.of(y=ops.input("x", x.shape) @ w)
    y = polyc.compile(graph, threads=1, options=options(tmp_path))(x)
    assert np.isnan(y[0, 5])
    assert y[1, 6] == np.inf
    assert np.isfinite(y).sum() == y.size - 2
    dense = polyc.compile(graph, threads=1, options=options(tmp_path, sparse=False))(x)
    assert np.isnan(dense[[0, 1, 2]]).sum() >= 58


# -- faults ---------------------------------------------------------------------------------------


def test_weights_too_small_for_normal_numbers_count_as_zeros(tmp_path):
    w, b = np.array([[1.0], [1e-40], [-1e-39]], np.float32), np.full(1, 1e-40, np.float32)
    x = np.array([[2, 1e38, 0], [0, 1e38, 1e38], [1, 2, 3]], np.float32)
    data = ops.input("x", x.shape)
    graph = Graph.of(y=data @ w, z=data @ (0 * w) + b)
    model = polyc.compile(graph, options=options(tmp_path))
    y, z = model(x)
    np.testing.assert_array_equal(y, x[:, :1])
    np.testing.assert_array_equal(z, np.full((3, 1), b))
    assert any("takes 2 of 3 weights" in str(note) for note in model.explain().rewrites)
    exact = polyc.compile(graph, options=options(tmp_path, sparse=False))
    np.testing.assert_allclose(exact(x)[0], x.astype("f8") @ w, rtol=1e-6)


def a_position_out_of_bounds(patch):
    right = entries.list_places

    def wrong(*told):
        return {d: place + (d == 1) for d, place in right(*told).items()}

    patch.setattr(entries, "list_places", wrong)


def a_position_that_is_not_what_is_said(patch):
    right = entries.offset

    def wrong(load, least, most):
        return right(load, least, most - 1)

    patch.setattr(entries, "offset", wrong)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (a_position_out_of_bounds, "leaves the bounds"),
        thorough(a_position_that_is_not_what_is_said, "adds 0 to 82 to a coordinate, not 0 to 81"),
    ],
)
def test_the_proof_refuses_positions(tmp_path, plant, said):
    w = thin(83, 45)
    w[82, 3] = w[0, 1] = 1  # so that positions begin and end at the borders
    graph = Graph.of(y=ops.input("x", (21, 83)) @ w)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(IllegalSchedule, match=said):
            polyc.compile(graph, options=options(tmp_path, cache=False))


def test_positions_are_looked_up_in_every_launch(monkeypatch, tmp_path):
    """Launches share a kernel, but not the constants that it is given."""
    seen: list[str] = []
    right = offsets._check

    def noted(where, expr, ends, arrays):
        seen.append(where)
        right(where, expr, ends, arrays)

    monkeypatch.setattr(offsets, "_check", noted)
    polyc.compile(layers(), options=options(tmp_path, cache=False))
    assert len(seen) == 2


def a_count_that_is_too_small(patch):
    right = zeros.find_entries

    def wrong(table):
        found = right(table)
        counts = np.where(found.counts == found.longest, found.counts - 1, found.counts)
        return entries.Entries(counts, found.order)

    patch.setattr(zeros, "find_entries", wrong)


def a_position_of_another_term(patch):
    right = entries.list_places

    def wrong(*told):
        return {d: np.where(place == 3, 2, place) for d, place in right(*told).items()}

    patch.setattr(entries, "list_places", wrong)


def positions_that_wrap_around(patch):
    patch.setattr(entries, "_narrowest", lambda *ends: UINT8)


def long_rows() -> Graph:
    return Graph.of(y=ops.input("x", (16, 300)) @ thin(300, 9))


@pytest.mark.parametrize(
    ("plant", "build"),
    [
        (a_count_that_is_too_small, layers),
        (a_position_of_another_term, layers),
        (a_position_of_another_term, strided),
        (positions_that_wrap_around, long_rows),
    ],
)
def test_the_exact_run_sees_other_entries(plant, build):
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert not exactly(build()).agrees


@pytest.mark.parametrize("build", [layers, strided])
def test_the_exact_run_agrees(build):
    assert exactly(build()).agrees
