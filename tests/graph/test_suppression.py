"""NonMaxSuppression against ONNX Runtime: overlaps, ties, thresholds, classes, empty results."""

import re

import numpy as np
import pytest

from tests.staged import compile_in, model_of, run_ort

RNG = np.random.default_rng(3)
MODEL = """g (float[{b}, {n}, 4] boxes, float[{b}, {c}, {n}] scores, int64[1] most, float[1] iou,
    float[1] least) => (int64[k, 3] y) {{
    y = NonMaxSuppression<center_point_box = {center}>(boxes, scores, most, iou, least) }}"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(batch, classes, n, center):
    """Boxes of which many overlap; scores with ties."""
    low = RNG.random((batch, n, 2)) * 4
    size = RNG.random((batch, n, 2)) * 2
    boxes = np.concatenate([low, size if center else low + size], -1)
    flipped = RNG.random((batch, n, 1)) < 0.3
    if not center:  # corners may come in any order
        boxes = np.where(flipped, boxes[..., [2, 3, 0, 1]], boxes)
    scores = RNG.integers(0, 12, (batch, classes, n)) / 12
    return {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}


@pytest.mark.thorough
@pytest.mark.parametrize(("batch", "classes", "n", "center"),
                         [(1, 1, 37, 0), (2, 3, 19, 0), (1, 2, 40, 1), (1, 1, 1, 0)])  # fmt: skip
def test_boxes(compiled, batch, classes, n, center):
    source = model_of(MODEL.format(b=batch, c=classes, n=n, center=center))
    model = compiled(source)
    for most, iou, least in ((5, 0.3, 0.2), (100, 0.5, 0.05), (3, 0.0, 0.7), (4, 0.5, 2.0)):
        feeds = draw(batch, classes, n, center)
        feeds |= {"most": np.array([most]), "iou": np.array([iou], np.float32)}
        feeds["least"] = np.array([least], np.float32)
        np.testing.assert_array_equal(model.run(feeds)["y"], run_ort(source, feeds)[0])
    assert not model.explain().fallbacks


def test_no_threshold_and_no_limit(compiled):
    """Without a least score all boxes are candidates; without a limit none is selected."""
    text = MODEL.format(b=1, c=1, n=23, center=0).replace(", least)", ")")
    text = text.replace("float[1] iou,\n    float[1] least", "float[1] iou")
    source = model_of(text)
    feeds = draw(1, 1, 23, 0) | {"most": np.array([9]), "iou": np.array([0.4], np.float32)}
    want = run_ort(source, feeds)[0]
    np.testing.assert_array_equal(compiled(source).run(feeds)["y"], want)
    bare = model_of("""g (float[1, 5, 4] boxes, float[1, 1, 5] scores) => (int64[k, 3] y) {
        y = NonMaxSuppression(boxes, scores) }""")
    assert compiled(bare).run(draw(1, 1, 5, 0))["y"].shape == (0, 3)


@pytest.mark.parametrize("iou", [0.05, 0.6])
def test_many_boxes(compiled, iou):
    """More candidates than are ranked at once: they are sorted by merging, and no pair is kept."""
    source = model_of(MODEL.format(b=1, c=1, n=1700, center=0))
    model = compiled(source)
    feeds = {"iou": np.array([iou], np.float32), "most": np.array([2000])}
    for least in (-1.0, 0.35, 2.0):
        feeds |= draw(1, 1, 1700, 0) | {"least": np.array([least], np.float32)}
        np.testing.assert_array_equal(model.run(feeds)["y"], run_ort(source, feeds)[0])
    assert not model.explain().fallbacks
    walked = next(k for k in model.explain().kernels if "Greedy" in k.name)
    assert re.search(r"vector .*Greedy_\d+\.i'", walked.schedule)
    assert max(k.bytes for k in model.explain().kernels) < 1700**2
