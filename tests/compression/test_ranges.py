"""Histograms that grow, and the ranges and scales that follow from them."""

from __future__ import annotations

from functools import partial
from typing import get_args

import numpy as np
import pytest

from polyc.compression.calibration.ranges import Histogram, Method, choose_range
from polyc.compression.calibration.scales import (
    activation_scale,
    quantise_weights,
    weight_scales,
)

FIT = partial(activation_scale, kind="u8")


def seen(*parts: np.ndarray) -> Histogram:
    histogram = Histogram()
    for part in parts:
        histogram.add(part.astype(np.float32))
    return histogram


def test_a_histogram_that_grows_is_the_histogram_of_all():
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal(1000) * scale for scale in (1e-3, 1.0, 0.0, 300.0)]
    together, joined = seen(np.concatenate(parts)), Histogram()
    for part in parts:
        joined.join(seen(part))
    for each in (seen(*parts), joined):
        np.testing.assert_array_equal(each.counts, together.counts)
        assert each.extremes == together.extremes
    assert together.counts.sum() == 4000


@pytest.mark.parametrize("method", get_args(Method))
def test_ranges_hold_zero_and_lie_inside_of_what_was_seen(method):
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(9999), rng.uniform(3, 4, 999), -rng.exponential(2, 999)):
        low, high = choose_range(seen(values), method, FIT)
        assert min(values.min(), 0) - 1e-6 <= low <= 0 <= high <= max(values.max(), 0) + 1e-6
        assert FIT(low, high).round_trip(np.zeros(1)) == 0
    assert choose_range(seen(np.zeros(5)), method, FIT) == (0, 0)


def test_outliers_are_cut_off_but_by_min_max():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal(1_000_000), [100.0]])
    found = {method: choose_range(seen(values), method, FIT) for method in get_args(Method)}
    assert found["min-max"][1] == 100
    assert all(2 < found[method][1] < 60 for method in ("percentile", "mse", "entropy"))


def test_mse_is_the_best_of_all_by_its_own_measure():
    values = np.random.default_rng(0).laplace(size=100_000).astype(np.float32)
    errors = {}
    for method in get_args(Method):
        scale = FIT(*choose_range(seen(values), method, FIT))
        errors[method] = float(((values - scale.round_trip(values)) ** 2).mean())
    assert errors["mse"] <= min(errors.values()) * 1.01
    assert errors["mse"] < errors["min-max"]


@pytest.mark.parametrize("kind", ["u8", "s8"])
@pytest.mark.parametrize(("low", "high"), [(-1, 3), (0, 5), (-2, 0), (0, 0), (1e-30, 2e-30)])
def test_scales_of_activations(kind, low, high):
    x = np.linspace(low, high, 1001)
    for how in ({}, {"symmetric": True}, {"symmetric": True, "signed": True}):
        scale = activation_scale(low, high, kind, **how)
        assert np.abs(scale.round_trip(x) - x).max() <= scale.scale * 0.51
        assert not how or scale.zero == 0
        assert "signed" not in how or scale.zero.dtype == np.int8


def test_weights_have_a_scale_for_each_channel_and_biases_fit():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 5, 3)).astype(np.float32)
    weights[1] = 0
    weights[2] *= 1e-12
    bias = np.array([1, 0, 1e3, -2], np.float32)
    scales = weight_scales(weights, bias, x_scale=0.01)
    assert scales.shape == (4,)
    assert (np.abs(bias / (0.01 * scales)) < 2**31).all()
    stored = quantise_weights(weights, scales)
    assert stored.min() == -127 or stored.max() == 127
    restored = stored * scales[:, None, None]
    assert np.abs(restored[[0, 3]] - weights[[0, 3]]).max() <= scales.max() / 2 * 1.001
    assert not stored[1].any()
