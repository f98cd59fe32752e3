"""Resizing: views where the nearest element is a formula, weighted sums elsewhere."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyc.graph.shapes.resize import Resized
from polyc.scop.lower.windows.resampling import find_coordinates, find_floor
from tests.scop.check import backend_cases, check_case, check_node
from tests.staged import compile_in, model_of

TRANSFORMATIONS = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
]


@pytest.mark.parametrize("case", backend_cases("Resize"), ids=lambda case: case.name)
def test_backend_case(case):
    check_case(case)


def check_resize(x, scales=None, sizes=None, roi=None, **attributes):
    lists = [
        None if values is None else np.array(values, dtype)
        for values, dtype in ((roi, np.float32), (scales, np.float32), (sizes, np.int64))
    ]
    return check_node("Resize", [x, *lists], attributes, constant_inputs=(1, 2, 3), atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_sizes(data):
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    sizes = [data.draw(st.integers(1, 12)) for _ in shape]
    mode = data.draw(st.sampled_from(["nearest", "linear", "cubic"]))
    roundings = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    how = data.draw(st.sampled_from(TRANSFORMATIONS))
    for n, m in zip(shape, sizes, strict=True):
        # where an integer is missed by rounding, the reference's weights and neighbours disagree
        places = find_coordinates(how, Resized(n, m, m / n))
        distance = np.abs(places - np.rint(places))
        assume(not ((distance > 0) & (distance < 1e-9)).any())
    check_resize(
        x,
        sizes=sizes,
        mode=mode,
        coordinate_transformation_mode=how,
        nearest_mode=data.draw(st.sampled_from(roundings)),
        antialias=int(mode != "nearest" and data.draw(st.booleans())),
    )


@pytest.mark.parametrize("scale", [2, 3, 0.5, 1.5, 0.3])
def test_the_nearest_element_is_a_view(scale):
    x = np.arange(2 * 3 * 20, dtype=np.float32).reshape(2, 3, 20)
    scop = check_resize(x, scales=[1, 1, scale], mode="nearest", nearest_mode="floor")
    (copy,) = scop.statements
    assert not any(load.dynamic for load in copy.loads)


def test_twice_the_size_is_two_short_sums():
    x = np.arange(6 * 7, dtype=np.float32).reshape(1, 1, 6, 7)
    scop = check_resize(x, scales=[1, 1, 2, 2], mode="linear")
    assert len(scop.statements) == 2
    assert not any(load.dynamic for s in scop.statements for load in s.loads)


def test_integers_are_rounded_and_saturate():
    x = np.array([0, 255, 255, 0, 255, 3], np.uint8)
    check_resize(x, sizes=[17], mode="cubic")


def test_a_crop_beyond_the_edge_is_extrapolated():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    mode = "tf_crop_and_resize"
    for how in ("nearest", "linear"):
        check_resize(
            x, sizes=[5, 3], roi=[0.4, -0.3, 1.2, 0.7], mode=how,
            coordinate_transformation_mode=mode, extrapolation_value=7.5,
        )  # fmt: skip


@pytest.mark.parametrize("length", [7, "n"])
@pytest.mark.parametrize("scale", [2.0, 1.5, 0.4])
def test_nearest_as_tensorflow_takes_it(tmp_path, length, scale):
    """tf.image.resize: output i is input floor((i + 1/2) / scale), and at most the last one."""
    text = f"""g (float[{length}] x) => (float[m] y) {{
        s = Constant<value_floats = [{scale}]>()
        y = Resize<mode = "nearest", nearest_mode = "floor",
            coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, , s) }}"""
    model = compile_in(tmp_path)(model_of(text))
    for n in [length] if length == 7 else [1, 2, 7, 20]:
        x = np.arange(n, dtype=np.float32)
        places = (np.arange(int(np.float32(scale) * n)) + 0.5) / np.float32(scale)
        np.testing.assert_array_equal(model(x), x[np.minimum(places.astype(int), n - 1)])


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-5, 5), st.integers(1, 30))
def test_find_floor(p, q, b, count):
    values = (p * np.arange(count) + b) // q
    formula = find_floor(values, [Fraction(p, q)], "i")
    assert formula is not None
    for i, value in enumerate(values):
        assert eval(formula, {"floor": np.floor, "i": i}) == value


def test_what_is_no_floor_is_not_found():
    assert find_floor(np.array([0, 3, 1]), [Fraction(1, 2), Fraction(1)], "i") is None
