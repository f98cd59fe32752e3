"""Pools against onnxruntime and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import sampled
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.lower.ort import run_onnxruntime

RNG = np.random.default_rng(0)
POOLS = ("MaxPool", "AveragePool", "LpPool")
GLOBAL_POOLS = ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
SELDOM = ("test_averagepool_1d_default", "test_averagepool_3d_dilations_small")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize(
    "case",
    sampled(backend_cases(*POOLS, *GLOBAL_POOLS), seldom=lambda case: case.name in SELDOM),
    ids=lambda case: case.name,
)
def test_backend_case(case: Any) -> None:
    check_case(case)


def draw_window(data: st.DataObject) -> tuple[np.ndarray, dict[str, Any]]:
    """An image and the attributes of a window that fits it; every window sees an element."""
    rank = data.draw(st.integers(1, 3), label="rank")

    def per_dimension(low: int, high: int, count: int = rank) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    kernel = per_dimension(1, 3)
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": per_dimension(1, 3)}
    auto_pad = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto_pad == "NOTSET":
        begin, end = (
            [min(p, k - 1) for p, k in zip(per_dimension(0, 2), kernel, strict=True)]
            for _ in range(2)
        )
        attributes |= {"pads": begin + end, "dilations": per_dimension(1, 2)}
        attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    else:
        # a stride beyond the kernel would need negative padding: runtimes differ on that
        strides = [min(s, k) for s, k in zip(attributes["strides"], kernel, strict=True)]
        attributes |= {"auto_pad": auto_pad, "strides": strides}
    return normal(*per_dimension(1, 2, 2), *per_dimension(5, 6)), attributes


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_max_pool(data: st.DataObject) -> None:
    x, attributes = draw_window(data)
    attributes["storage_order"] = data.draw(st.integers(0, 1))
    wanted = run_onnxruntime("MaxPool", [x], attributes, n_outputs=2)
    check_node("MaxPool", [x], attributes, expected=wanted)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_average_pool(data: st.DataObject) -> None:
    x, attributes = draw_window(data)
    attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    wanted = run_onnxruntime("AveragePool", [x], attributes)
    check_node("AveragePool", [x], attributes, expected=wanted)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_lp_pool(data: st.DataObject) -> None:
    x, attributes = draw_window(data)
    attributes["p"] = data.draw(st.integers(1, 3))
    wanted = run_onnxruntime("LpPool", [x], attributes)
    check_node("LpPool", [x], attributes, expected=wanted)


@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_max_pool_of_integers_pads_with_the_lowest(dtype: str) -> None:
    x = np.full((1, 1, 4, 4), np.iinfo(dtype).min, dtype)
    x[0, 0, 1, 1] = 3
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    wanted = run_onnxruntime("MaxPool", [x], attributes)
    check_node("MaxPool", [x], attributes, expected=wanted)


def test_max_pool_propagates_nan_and_says_where() -> None:
    x = np.array([[[1, np.nan, 3, 4]]], "f4")
    values = np.array([[[np.nan, np.nan, 4]]], "f4")
    where = np.array([[[1, 1, 3]]])
    check_node("MaxPool", [x], {"kernel_shape": [2]}, expected=[values, where])


def test_padding_is_never_the_maximum() -> None:
    x = np.full((1, 1, 3), -np.inf, "f4")
    attributes = {"kernel_shape": [3], "pads": [1, 1]}
    check_node("MaxPool", [x], attributes, expected=[x, np.array([[[0, 0, 1]]])])


@pytest.mark.parametrize("op", GLOBAL_POOLS)
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 5), (2, 1, 1, 4)])
def test_global_pool(op: str, shape: tuple[int, ...]) -> None:
    x, axes = normal(*shape), tuple(range(2, len(shape)))
    wide = x.astype("f8")
    wanted = {
        "GlobalMaxPool": wide.max(axes, keepdims=True),
        "GlobalAveragePool": wide.mean(axes, keepdims=True),
        "GlobalLpPool": np.sqrt(np.square(wide).sum(axes, keepdims=True)),
    }[op]
    check_node(op, [x], expected=[wanted.astype("f4")])


def test_equal_windows_divide_by_a_number() -> None:
    scop = check_node("AveragePool", [normal(1, 1, 4, 4)], {"kernel_shape": [2, 2]})
    assert not any(a.kind == "constant" for a in scop.arrays.values())
