"""Conv against onnxruntime, and the form of its statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.interpreter import interpret
from tests.scop.lower.ort import run_onnxruntime

RNG = np.random.default_rng(0)
F4 = np.dtype("f4")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("case", backend_cases("Conv"), ids=lambda case: case.name)
def test_backend_case(case: Any) -> None:
    check_case(case)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_conv(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3), label="rank")

    def per_dimension(low: int, high: int, count: int = rank) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    groups = data.draw(st.integers(1, 3), label="groups")
    channels, filters = per_dimension(1, 2, 2)
    kernel, attributes = per_dimension(1, 3), {"group": groups}
    attributes |= {"strides": per_dimension(1, 3), "dilations": per_dimension(1, 2)}
    auto_pad = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto_pad == "NOTSET":
        attributes["pads"] = per_dimension(0, 2, 2 * rank)
    else:
        attributes |= {"auto_pad": auto_pad, "dilations": [1] * rank}
    spatial = per_dimension(5, 6)
    x = normal(data.draw(st.integers(1, 2)), groups * channels, *spatial)
    w = normal(groups * filters, channels, *kernel)
    bias = [normal(groups * filters)] if data.draw(st.booleans()) else []
    wanted = run_onnxruntime("Conv", [x, w, *bias], attributes)
    check_node("Conv", [x, w, *bias], attributes, expected=wanted, atol=1e-5)


def update_of(scop: Any) -> Any:
    return next(s for s in scop.statements if s.reduction)


def test_iterators_of_a_plain_convolution() -> None:
    scop = check_node("Conv", [normal(1, 3, 5, 5), normal(4, 3, 3, 3)])
    assert update_of(scop).iterators == ("n", "o", "y", "x", "c", "r", "q")


def test_a_pointwise_convolution_has_no_taps() -> None:
    scop = check_node("Conv", [normal(1, 3, 5, 5), normal(4, 3, 1, 1)])
    assert update_of(scop).iterators == ("n", "o", "y", "x", "c")


def test_a_depthwise_convolution_has_neither_filter_nor_channel() -> None:
    scop = check_node("Conv", [normal(1, 3, 5, 5), normal(3, 1, 3, 3)], {"group": 3})
    assert update_of(scop).iterators == ("n", "g", "y", "x", "r", "q")


def test_no_condition_in_the_reduction() -> None:
    attributes = {"pads": [1, 1, 1, 1]}
    scop = check_node("Conv", [normal(1, 2, 4, 4), normal(2, 2, 3, 3)], attributes)
    for load in update_of(scop).loads:
        assert load.index.n_piece() == 1
    assert update_of(scop).domain.n_basic_set() == 1


def test_convolutions_share_one_padded_array() -> None:
    x, narrow, wide = normal(1, 2, 6, 6), normal(1, 2, 3, 3), normal(1, 2, 5, 5)
    pads = {"narrow": [1] * 4, "wide": [2] * 4}
    weights = {"narrow": narrow, "wide": wide}
    tensors = {"x": Tensor("x", F4, x.shape)}
    tensors |= {f"w_{k}": Tensor(f"w_{k}", F4, w.shape, w) for k, w in weights.items()}
    tensors |= {f"y_{k}": Tensor(f"y_{k}", F4, (1, 1, 6, 6)) for k in weights}
    nodes = tuple(Node(k, "Conv", ("x", f"w_{k}"), (f"y_{k}",), {"pads": pads[k]}) for k in weights)
    scop = lower_graph(Graph("two", nodes, tensors, ("x",), ("y_narrow", "y_wide")))
    padded = [a for a in scop.arrays.values() if a.shape == (1, 2, 10, 10)]
    assert len(padded) == 1
    assert not any(a.shape == (1, 2, 8, 8) for a in scop.arrays.values())
    results = interpret(scop, {"x": x})
    for name, key in zip(scop.outputs, weights, strict=True):
        wanted = run_onnxruntime("Conv", [x, weights[key]], {"pads": pads[key]})[0]
        np.testing.assert_allclose(results[name], wanted, rtol=1e-5, atol=1e-5)
