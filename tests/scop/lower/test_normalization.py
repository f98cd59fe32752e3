"""Normalizations, BatchNormalization and softmax against NumPy in float64 and onnx's reference."""

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
OPS = (
    "BatchNormalization", "GroupNormalization", "Hardmax", "InstanceNormalization", "LRN",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization",
    "RMSNormalization", "Softmax",
)  # fmt: skip
SELDOM = ("test_hardmax_default_axis", "test_layer_normalization_4d_axis1")

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def standardized(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    x = x.astype("f8")
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


@pytest.mark.parametrize(
    "case",
    sampled(backend_cases(*OPS), seldom=lambda case: case.name in SELDOM),
    ids=lambda case: case.name,
)
def test_backend_case(case: Any) -> None:
    check_case(case)


@settings(max_examples=20, deadline=None)
@given(shapes, st.data())
def test_layer_normalization(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, first = normal(*shape) + 100, axis % len(shape)
    tail = shape[first:]
    scale = normal(*[data.draw(st.sampled_from([1, n])) for n in tail])
    bias = [normal(*tail)] if data.draw(st.booleans()) else []
    axes = tuple(range(first, len(shape)))
    wide = x.astype("f8")
    wanted = standardized(x, axes) * scale + (bias[0] if bias else 0)
    mean = wide.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    expected = [v.astype("f4") for v in (wanted, mean, inverse)]
    attributes = {"axis": axis}
    # at 100 a float32 is known to 8e-6: a variance by E[x^2] - E[x]^2 would be wrong by 1e-3
    check_node(
        "LayerNormalization", [x, scale, *bias], attributes, 3, expected=expected, atol=3e-3,
        rtol=3e-3,
    )  # fmt: skip


def test_the_variance_does_not_cancel() -> None:
    x = (np.arange(8).reshape(2, 4) + 4096).astype("f4")
    wanted = standardized(x, (1,)).astype("f4")
    check_node("LayerNormalization", [x, np.ones(4, "f4")], expected=[wanted])


@pytest.mark.parametrize("constants", [(), (1, 2, 3, 4), (1, 3)])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), (1, 3, 2, 2)])
def test_batch_normalization(shape: tuple[int, ...], constants: tuple[int, ...]) -> None:
    channels = shape[1] if len(shape) > 1 else 1
    x, scale, bias, mean = (normal(*s) for s in (shape, *[(channels,)] * 3))
    variance = np.abs(normal(channels)) + 0.1
    at = (slice(None), *[None] * max(len(shape) - 2, 0))
    factor = scale[at] / np.sqrt(variance[at] + 1e-3)
    wanted = (x.astype("f8") - mean[at]) * factor + bias[at]
    check_node(
        "BatchNormalization", [x, scale, bias, mean, variance], {"epsilon": 1e-3},
        constant_inputs=constants, expected=[wanted.astype("f4")], atol=1e-5,
    )  # fmt: skip


def test_constant_batch_normalization_is_one_statement() -> None:
    inputs = [normal(2, 3, 4), *(np.abs(normal(3)) for _ in range(4))]
    scop = check_node("BatchNormalization", inputs, constant_inputs=(1, 2, 3, 4), atol=1e-5)
    assert len(scop.statements) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=2))
def test_group_normalization(groups: int, members: int, spatial: list[int]) -> None:
    channels = groups * members
    x, scale, bias = normal(2, channels, *spatial), normal(channels), normal(channels)
    split = x.reshape(2, groups, -1)
    normalized = standardized(split, (2,)).reshape(x.shape)
    at = (slice(None), *[None] * len(spatial))
    wanted = (normalized * scale[at] + bias[at]).astype("f4")
    attributes = {"num_groups": groups}
    inputs = [x, scale, bias]
    check_node("GroupNormalization", inputs, attributes, expected=[wanted], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 3)])
def test_instance_normalization(shape: tuple[int, ...]) -> None:
    x, scale, bias = normal(*shape), normal(shape[1]), normal(shape[1])
    at = (slice(None), *[None] * (len(shape) - 2))
    wanted = standardized(x, tuple(range(2, len(shape)))) * scale[at] + bias[at]
    check_node("InstanceNormalization", [x, scale, bias], expected=[wanted.astype("f4")], atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(shapes, st.data())
def test_rms_normalization(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, scale = normal(*shape), normal(*shape[axis % len(shape) :])
    axes = tuple(range(axis % len(shape), len(shape)))
    square = np.square(x.astype("f8")).mean(axes, keepdims=True)
    wanted = (x / np.sqrt(square + 1e-5) * scale).astype("f4")
    check_node("RMSNormalization", [x, scale], {"axis": axis}, expected=[wanted])


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (-1, 0)])
def test_mean_variance_normalization(axes: tuple[int, ...]) -> None:
    x = normal(2, 3, 4, 5)
    wanted = standardized(x, axes, 0.0).astype("f4")
    attributes = {"axes": axes}
    check_node("MeanVarianceNormalization", [x], attributes, expected=[wanted], atol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(p: int, axis: int) -> None:
    x = normal(2, 3, 4)
    x[0, :, 1] = x[:, 1, 2] = x[1, 2] = 0
    norm = np.linalg.norm(x.astype("f8"), p, axis, keepdims=True)
    wanted = np.divide(x, norm, out=np.zeros(x.shape), where=norm > 0).astype("f4")
    check_node("LpNormalization", [x], {"axis": axis, "p": p}, expected=[wanted])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    x = normal(2, 6, 2, 3)
    attributes = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 1.5}
    check_node("LRN", [x], attributes, expected=run_onnxruntime("LRN", [x], attributes))


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75, 1.0, 0.6, 2.0])
@pytest.mark.parametrize(("alpha", "bias"), [(0.5, 2.0), (-0.5, 9.0), (0.5, 0.0)])
def test_lrn_with_any_exponent(beta: float, alpha: float, bias: float) -> None:
    x = normal(1, 6, 3, 4)
    x[0, 2, 1, 1] = np.inf if alpha > 0 else 1.0
    square = np.pad(np.square(x.astype("f8")), [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = square[:, :-2] + square[:, 1:-1] + square[:, 2:]
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = (x / (bias + alpha / 3 * total) ** beta).astype("f4")
    attributes = {"size": 3, "alpha": alpha, "beta": beta, "bias": bias}
    check_node("LRN", [x], attributes, expected=[wanted])


def test_lrn_of_an_even_size_reaches_further_ahead() -> None:
    x = normal(1, 4, 1, 1)
    square = np.square(x.astype("f8"))
    ahead = np.concatenate([square[:, 1:], np.zeros((1, 1, 1, 1))], 1)
    wanted = (x / (1 + 1e-4 / 2 * (square + ahead)) ** 0.75).astype("f4")
    check_node("LRN", [x], {"size": 2}, expected=[wanted])


@settings(max_examples=20, deadline=None)
@given(shapes, st.sampled_from(["Softmax", "LogSoftmax", "Hardmax"]), st.data())
def test_softmax(shape: list[int], op: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = normal(*shape) * 50
    wanted = run_onnxruntime(op, [x], {"axis": axis})
    check_node(op, [x], {"axis": axis}, expected=wanted)


def test_softmax_of_infinities() -> None:
    x = np.array([[-np.inf, 0, 1], [np.inf, 0, 0], [np.nan, 0, 0]], "f4")
    wanted = np.full((3, 3), np.nan, "f4")  # infinity / infinity
    wanted[0] = [0, 1 / (1 + np.e), np.e / (1 + np.e)]
    check_node("Softmax", [x], expected=[wanted])


def test_hardmax_marks_the_first_maximum() -> None:
    x = np.array([[1, 3, 3], [0, np.nan, 5], [-np.inf, -np.inf, -np.inf]], "f4")
    wanted = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0]], "f4")
    check_node("Hardmax", [x], expected=[wanted])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_of_nothing(op: str) -> None:
    x = normal(2, 0)
    check_node(op, [x], expected=[x])
