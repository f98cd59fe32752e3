"""ConvTranspose against onnxruntime, and its phases against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.scop.lower.windows.transposed import compute_phases
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.lower.ort import run_onnxruntime

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("case", backend_cases("ConvTranspose"), ids=lambda case: case.name)
def test_backend_case(case: Any) -> None:
    check_case(case)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3)
)
def test_phases_are_all_contributions(
    output: int, kernel: int, stride: int, dilation: int, begin: int
) -> None:
    found = {
        (stride * v + p.offset, v + p.start + p.advance * m, p.last - p.step * m)
        for p in compute_phases(output, kernel, stride, dilation, begin)
        for v in range(p.count)
        for m in range(p.taps)
    }
    wanted = {
        (stride * u + dilation * r - begin, u, r) for u in range(-20, 20) for r in range(kernel)
    }
    assert found == {c for c in wanted if 0 <= c[0] < output}


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_conv_transpose(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 2), label="rank")

    def per_dimension(low: int, high: int, count: int = rank) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    groups = data.draw(st.integers(1, 2), label="groups")
    channels, filters = per_dimension(1, 2, 2)
    kernel, strides = per_dimension(1, 4), per_dimension(1, 3)
    attributes = {"group": groups, "strides": strides, "dilations": per_dimension(1, 2)}
    auto_pad = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
    if auto_pad == "NOTSET":
        pads = [min(p, k - 1) for p, k in zip(per_dimension(0, 1), kernel, strict=True)]
        attributes["pads"] = pads * 2
        attributes["output_padding"] = [data.draw(st.integers(0, s - 1)) for s in strides]
    else:
        attributes |= {"auto_pad": auto_pad, "dilations": [1] * rank}
        kernel = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    x = normal(data.draw(st.integers(1, 2)), groups * channels, *per_dimension(3, 4))
    w = normal(groups * channels, filters, *kernel)
    bias = [normal(groups * filters)] if data.draw(st.booleans()) else []
    wanted = run_onnxruntime("ConvTranspose", [x, w, *bias], attributes)
    check_node("ConvTranspose", [x, w, *bias], attributes, expected=wanted, atol=1e-5)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_output_shape_decides_the_pads(auto_pad: str) -> None:
    x, w = normal(1, 2, 4, 4), normal(2, 1, 3, 3)
    attributes = {"strides": [2, 2], "output_shape": [8, 8], "auto_pad": auto_pad}
    wanted = run_onnxruntime("ConvTranspose", [x, w], attributes)
    check_node("ConvTranspose", [x, w], attributes, expected=wanted)


def test_stride_one_is_one_reduction() -> None:
    scop = check_node("ConvTranspose", [normal(1, 2, 4, 4), normal(2, 3, 3, 3)], atol=1e-5)
    assert sum(s.reduction is not None for s in scop.statements) == 1


def test_each_multiplication_is_a_contribution() -> None:
    attributes = {"strides": [2, 2]}
    x, w = normal(1, 1, 4, 4), normal(1, 1, 2, 2)
    scop = check_node("ConvTranspose", [x, w], attributes)
    updates = [s for s in scop.statements if s.reduction]
    assert sum(s.domain.count_val().to_python() for s in updates) == 4 * 4 * 2 * 2


@pytest.mark.parametrize(
    ("size", "kernel", "attributes", "statements"),
    [
        (4, 2, {"strides": [2, 2]}, 1),
        (5, 4, {"strides": [2, 2], "pads": [1] * 4}, 1),
        (3, 4, {"strides": [4, 4]}, 1),
        (3, 6, {"strides": [3, 3]}, 1),
        (4, 3, {"strides": [2, 2]}, 4),  # two taps and one tap
        (4, 2, {"strides": [2, 2], "output_padding": [1, 1]}, 4),  # one output more
        (4, 1, {"strides": [2, 2]}, 1),  # nothing reaches the others, which are no sums
    ],
)
def test_phases_that_differ_by_their_number_are_one_statement(
    size: int, kernel: int, attributes: dict[str, Any], statements: int
) -> None:
    x, w, b = normal(2, 6, size, size + 1), normal(6, 5, kernel, kernel), normal(5)
    wanted = run_onnxruntime("ConvTranspose", [x, w, b], attributes)
    scop = check_node("ConvTranspose", [x, w, b], attributes, expected=wanted, atol=1e-5)
    assert sum(s.reduction is not None for s in scop.statements) == statements
