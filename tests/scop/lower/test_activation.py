"""Activations against onnx's own cases, and against formulas in double precision at the corners."""

import math

import numpy as np
import pytest

from tests.scop.check import backend_cases, check_case, check_node

OPS = (
    "Relu LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish Softplus Softsign "
    "ThresholdedRelu Swish Shrink"
)
POINTS = np.array([0, -0.5, 0.5, -2, 3, 1e-6, -1e-6, 20, -20, 90, -90, 400, -400, math.nan])

erf = np.vectorize(math.erf)


def softplus(x):
    return np.logaddexp(0, x)


FORMULAS = {
    "Relu": ({}, lambda x: np.where(x < 0, 0, x)),
    "LeakyRelu": ({"alpha": 0.125}, lambda x: np.where(x < 0, 0.125 * x, x)),
    "Elu": ({"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
    "Celu": ({"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x / 2), x)),
    "Selu": ({"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * np.where(x < 0, 2 * np.expm1(x), x)),
    "Gelu": ({}, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2)))),
    "HardSigmoid": ({"alpha": 0.25}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "HardSwish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Mish": ({}, lambda x: x * np.tanh(softplus(x))),
    "Softplus": ({}, softplus),
    "Softsign": ({}, lambda x: x / (1 + np.abs(x))),
    "ThresholdedRelu": ({"alpha": 0.25}, lambda x: np.where(x > 0.25, x, 0)),
    "Swish": ({"alpha": 2.0}, lambda x: x / (1 + np.exp(-2 * x))),
    "Shrink": (
        {"lambd": 1.0, "bias": 0.5},
        lambda x: np.where(x < -1, x + 0.5, np.where(x > 1, x - 0.5, 0)),
    ),
}


@pytest.mark.parametrize("case", backend_cases(*OPS.split()), ids=lambda case: case.name)
def test_backend_case(case):
    assert len(check_case(case).statements) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", FORMULAS)
def test_corners(op, dtype):
    attributes, formula = FORMULAS[op]
    with np.errstate(all="ignore"):
        expected = formula(POINTS)
    # far out on the left the products vanish in float32 only up to an absolute error
    scop = check_node(op, [POINTS.astype(dtype)], attributes, expected=[expected.astype(dtype)])
    assert len(scop.statements) == 1


def test_gelu_by_tanh():
    x = POINTS.astype(np.float32)
    expected = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    scop = check_node("Gelu", [x], {"approximate": "tanh"}, expected=[expected])
    assert "tanh" in str(scop)


def test_integers():
    x = np.array([-3, 0, 1, 3], np.int32)
    check_node("Relu", [x], expected=[np.array([0, 0, 1, 3], np.int32)])
    shrunk = np.array([-2, 0, 0, 2], np.int32)
    scop = check_node("Shrink", [x], {"lambd": 1.5, "bias": 1.0}, expected=[shrunk])
    assert scop.arrays[scop.outputs[0]].dtype == np.int32
