"""Convolutions whose taps are so far apart that most of them read padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, Options, ops
from polyc.run.cpu_model import CpuModel
from tests.sampling import thorough
from tests.scop.check import reference

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def build(shape, w, bias, attributes, folder: Path, **options) -> CpuModel:
    graph = Graph.of(y=ops.conv(ops.input("x", shape), w, bias, **attributes))
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=folder), **options)
    assert isinstance(model, CpuModel)
    return model


def check(model: CpuModel, x, w, bias, attributes) -> None:
    (wanted,) = reference("Conv", [x, w, bias], attributes, 1)
    np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-4)


CASES = {
    "one tap meets the image": ((2, 6, 9, 7), (4, 6, 3, 3), 12, {}),
    "each meets a part": ((1, 6, 14, 11), (4, 6, 3, 3), 8, {}),
    "strides": ((1, 6, 13, 9), (4, 6, 3, 3), 6, {"strides": [2, 3]}),
    "groups": ((1, 6, 9, 7), (4, 3, 3, 3), 5, {"group": 2}),
    "more padding in front": ((1, 6, 9, 8), (4, 6, 2, 3), 6, {"pads": [7, 9, 1, 4]}),
    "one dimension": ((2, 6, 12), (4, 6, 5), 10, {}),
    "three": ((1, 3, 5, 4, 6), (2, 3, 3, 1, 3), 4, {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_each_tap_is_a_product_where_it_meets_the_image(case, tmp_path):
    shape, kernel, apart, attributes = case
    w, bias, rank = normal(*kernel), normal(kernel[0]), len(kernel) - 2
    pads = [apart * (k - 1) // 2 for k in kernel[2:]] * 2
    attributes = {"pads": pads, "dilations": [apart] * rank, **attributes}
    model = build(shape, w, bias, attributes, tmp_path)
    assert "padded" not in model.source
    check(model, normal(*shape), w, bias, attributes)


def test_taps_that_never_meet_the_image_cost_nothing(tmp_path):
    w = normal(4, 6, 3, 3)
    attributes = {"pads": [12] * 4, "dilations": [12, 12]}
    model = build((1, 6, 9, 7), w, normal(4), attributes, tmp_path)
    (kernel,) = model.explain().kernels
    assert kernel.flops < 3 * (9 * 7 * 4) * 6  # a ninth of all


@pytest.mark.parametrize("stride", [1, thorough(2)])
def test_sizes_that_a_call_decides(stride, tmp_path):
    """Taps that meet no image at the hint do at others."""
    w, bias = normal(4, 6, 3, 3), normal(4)
    attributes = {"pads": [12] * 4, "dilations": [12, 12], "strides": [stride] * 2}
    hint = {"n": 1, "h": 9, "w": 7}
    model = build(("n", 6, "h", "w"), w, bias, attributes, tmp_path, hint=hint)
    assert "padded" not in model.source
    for n, height, width in [(1, 9, 7), (2, 1, 1), (1, 12, 13), (2, 30, 5), (1, 40, 41)]:
        check(model, normal(n, 6, height, width), w, bias, attributes)


def test_a_weight_that_is_no_number_meets_padding(tmp_path):
    """0 * inf is NaN, in the padding too."""
    w, bias = normal(4, 6, 3, 3), normal(4)
    w[1, 2, 0, 0] = np.inf
    attributes = {"pads": [12] * 4, "dilations": [12, 12]}
    model = build((1, 6, 9, 7), w, bias, attributes, tmp_path)
    check(model, normal(1, 6, 9, 7), w, bias, attributes)
    assert "padded" in model.source


def test_taps_that_are_near_share_a_frame(tmp_path):
    w, bias = normal(4, 6, 3, 3), normal(4)
    attributes = {"pads": [2] * 4, "dilations": [2, 2]}
    model = build((1, 6, 30, 30), w, bias, attributes, tmp_path)
    check(model, normal(1, 6, 30, 30), w, bias, attributes)
    assert "padded" in model.source
