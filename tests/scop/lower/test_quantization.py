"""Quantised operators: rounding to even, saturation, sums in 32 bits."""

import numpy as np
import pytest

from tests.scop.check import backend_cases, check_case, check_node

OPERATORS = [
    "QuantizeLinear",
    "DequantizeLinear",
    "QLinearMatMul",
    "QLinearConv",
    "MatMulInteger",
    "ConvInteger",
]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("case", backend_cases(*OPERATORS), ids=lambda case: case.name)
def test_backend_case(case):
    check_case(case)


def test_ties_go_to_the_even_neighbour_and_extremes_saturate():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    one, zero = np.array(1, np.float32), np.array(3, np.int8)
    expected = np.array([3, 5, 5, 3, 1, 127, -128, 127, -128], np.int8)
    check_node("QuantizeLinear", [x, one, zero], expected=[expected])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_a_scale_for_each_position_of_an_axis(axis, dtype):
    x = (100 * RNG.standard_normal((3, 5, 7))).astype(np.float32)
    n = x.shape[axis]
    scale = RNG.uniform(0.1, 2, n).astype(np.float32)
    zero = RNG.integers(0, 100, n).astype(dtype)
    check_node("QuantizeLinear", [x, scale, zero], {"axis": axis})
    q = RNG.integers(0, 100, x.shape).astype(dtype)
    check_node("DequantizeLinear", [q, scale, zero], {"axis": axis})


def test_blocks_of_which_the_last_is_shorter():
    x, scale = RNG.integers(-99, 99, (3, 7)).astype(np.int8), np.float32([[1, 2, 3]] * 3)
    expected = x.astype(np.float32) * np.repeat(scale, 3, axis=1)[:, :7]
    attributes = {"axis": 1, "block_size": 3}
    check_node("DequantizeLinear", [x, scale], attributes, expected=[expected])


@pytest.mark.parametrize("known", [(), (1, 3)])
def test_products_of_rows_and_columns_with_zeros_of_their_own(known):
    a = RNG.integers(0, 255, (2, 5, 9)).astype(np.uint8)
    b = RNG.integers(-128, 127, (9, 4)).astype(np.int8)
    za = RNG.integers(0, 255, (2, 5, 1)).astype(np.uint8)
    zb = RNG.integers(-128, 127, 4).astype(np.int8)
    expected = np.matmul(a.astype(np.int32) - za, b.astype(np.int32) - zb)
    check_node("MatMulInteger", [a, b, za, zb], expected=[expected], constant_inputs=known)


@pytest.mark.parametrize("known", [(), (3, 4, 5)])
def test_a_frame_is_the_zero_point(known):
    x = RNG.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8)
    w = RNG.integers(-128, 127, (4, 1, 3, 3)).astype(np.int8)
    f = np.float32
    inputs = [x, f(0.02), np.uint8(100), w, f([0.01, 0.02, 0.03, 0.04]), np.int8([0, 3, -2, 1]),
              f(0.05), np.uint8(128), RNG.integers(-500, 500, 4).astype(np.int32)]  # fmt: skip
    flags = {"pads": [1, 1, 1, 1], "group": 2, "strides": [2, 1]}
    inputs = [np.asarray(v) for v in inputs]
    check_node("QLinearConv", inputs, flags, constant_inputs=known)
