"""Regions of images: RoiAlign, MaxRoiPool, DeformConv, MaxUnpool, against ONNX Runtime and onnx."""

import numpy as np
import pytest

from tests.staged import assert_as_reference, assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(17)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


ROIS = np.array(
    [[1, 1, 6, 5], [0, 0, 12, 9], [-3, 2, 4, 30], [5, 5, 5, 5], [7.3, 1.2, 8.1, 6.6]], np.float32
)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("half", [True, False])
def test_roi_align(compiled, mode, ratio, half):
    """Inside, at the border, outside, empty; with samples that are counted by what is pooled."""
    coordinates = "half_pixel" if half else "output_half_pixel"
    source = model_of(f"""g (float[2, 3, 9, 11] x, float[5, 4] rois, int64[5] image)
        => (float[5, 3, 3, 4] y) {{
        y = RoiAlign<mode = "{mode}", output_height = 3, output_width = 4, spatial_scale = 0.7,
            sampling_ratio = {ratio}, coordinate_transformation_mode = "{coordinates}">
            (x, rois, image) }}""")
    feeds = {"x": draw(2, 3, 9, 11), "rois": ROIS, "image": np.array([1, 0, 1, 0, 0])}
    model = assert_as_reference(compiled, source, **feeds)
    assert not model.explain().fallbacks


def test_no_region(compiled):
    source = model_of("""g (float[1, 2, 5, 5] x, float[0, 4] rois, int64[0] image)
        => (float[0, 2, 3, 3] y) {
        y = RoiAlign<output_height = 3, output_width = 3>(x, rois, image) }""")
    feeds = {"rois": np.zeros((0, 4), np.float32), "image": np.zeros(0, np.int64)}
    assert_as_reference(compiled, source, x=draw(1, 2, 5, 5), **feeds)


def test_max_roi_pool(compiled):
    source = model_of("""g (float[2, 3, 9, 11] x, float[4, 5] rois) => (float[4, 3, 2, 3] y) {
        y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = 0.5>(x, rois) }""")
    rois = np.array([[0, 2, 2, 12, 10], [1, 0, 0, 20, 16], [1, 9, 3, 9, 3], [0, 18, 12, 40, 40]])
    feeds = {"x": draw(2, 3, 9, 11), "rois": rois.astype(np.float32)}
    assert_same(compiled(source).run(feeds)["y"], run_ort(source, feeds)[0])


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["plain", "bent"])
def test_deform_conv(compiled, case):
    bent = case == "bent"
    groups, shared, more = (2, 2, ", b, mask") if bent else (1, 1, "")
    attributes = "strides = [2, 1], pads = [1, 0, 1, 2], dilations = [1, 2]" if bent else ""
    out = (3, 6) if bent else (4, 6)
    sizes = {"x": (2, 4, 5, 8), "w": (6, 4 // groups, *((3, 3) if bent else (2, 3)))}
    taps = sizes["w"][2] * sizes["w"][3]
    out = (3, 6) if bent else (4, 6)
    sizes["o"] = (2, shared * taps * 2, *out)
    if bent:
        sizes |= {"b": (6,), "mask": (2, shared * taps, *out)}
    declared = ", ".join(f"float[{', '.join(map(str, s))}] {n}" for n, s in sizes.items())
    source = model_of(f"""g ({declared}) => (float[n, m, h, k] y) {{
        y = DeformConv<group = {groups}, offset_group = {shared} {", " * bent}{attributes}>
            (x, w, o{more}) }}""")
    # Positions are rounded on their way through GridSample's units.
    assert_as_reference(compiled, source, 1e-4, **{n: draw(*s) for n, s in sizes.items()})


def test_max_unpool_undoes_max_pool(compiled):
    source = model_of("""g (float[2, 3, 6, 8] x) => (float[2, 3, 6, 8] y, float[2, 3, 7, 9] z) {
        p, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(p, i)
        shape = Constant<value_ints = [2, 3, 7, 9]>()
        z = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(p, i, shape) }""")
    x = RNG.permutation(2 * 3 * 6 * 8).reshape(2, 3, 6, 8).astype(np.float32)
    assert_as_reference(compiled, source, x=x)
