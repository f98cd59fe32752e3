"""Compiled elementwise operators: every type, corners of the number formats, broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

from tests.e2e.cases import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    Case,
    family,
    seeds,
    shapes,
    small,
    special,
)

Formula = Callable[..., np.ndarray]

EXACT_UNARY: Mapping[str, tuple[tuple[str, ...], Formula]] = {
    "Abs": (NUMBERS, np.abs),
    "Neg": (FLOATS + SIGNED, np.negative),
    "Sign": (NUMBERS, np.sign),
    "Relu": (FLOATS + SIGNED, lambda x: np.maximum(x, x.dtype.type(0))),
    "Floor": (FLOATS, np.floor),
    "Ceil": (FLOATS, np.ceil),
    "Round": (FLOATS, np.rint),
    "Sqrt": (FLOATS, np.sqrt),
    "Reciprocal": (FLOATS, lambda x: 1 / x),
    "IsNaN": (FLOATS, np.isnan),
    "IsInf": (FLOATS, np.isinf),
    "Not": (("bool",), np.logical_not),
    "BitwiseNot": (INTEGERS, np.bitwise_not),
    "Identity": ((*NUMBERS, "bool"), lambda x: x),
}

SMOOTH = "Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Erf"
ACTIVATIONS = {
    "Elu": {"alpha": 1.5}, "Celu": {"alpha": 0.8}, "Selu": {},
    "HardSigmoid": {"alpha": 0.3}, "HardSwish": {}, "LeakyRelu": {"alpha": 0.2}, "Mish": {},
    "Shrink": {"lambd": 0.7, "bias": 0.3}, "Softplus": {}, "Softsign": {},
    "ThresholdedRelu": {"alpha": 0.5},
}  # fmt: skip

SPELLED: Mapping[str, Formula] = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Erf": np.vectorize(math.erf, otypes=[float]),
}

ARITHMETIC: Mapping[str, tuple[tuple[str, ...], Formula]] = {
    "Add": (NUMBERS, np.add),
    "Sub": (NUMBERS, np.subtract),
    "Mul": (NUMBERS, np.multiply),
    "Max": (NUMBERS, np.maximum),
    "Min": (NUMBERS, np.minimum),
    "BitwiseAnd": (INTEGERS, np.bitwise_and),
    "BitwiseOr": (INTEGERS, np.bitwise_or),
    "BitwiseXor": (INTEGERS, np.bitwise_xor),
    "And": (("bool",), np.logical_and),
    "Or": (("bool",), np.logical_or),
    "Xor": (("bool",), np.logical_xor),
    "Equal": ((*NUMBERS, "bool"), np.equal),
    "Less": (NUMBERS, np.less),
    "LessOrEqual": (NUMBERS, np.less_equal),
    "Greater": (NUMBERS, np.greater),
    "GreaterOrEqual": (NUMBERS, np.greater_equal),
}


def reference(function: Formula, *inputs: np.ndarray) -> list[np.ndarray]:
    """What NumPy gives, with no word about overflow."""
    with np.errstate(all="ignore"):
        return [np.asarray(function(*inputs))]


def in_double(function: Formula, x: np.ndarray) -> list[np.ndarray]:
    """The function in a wider type, rounded."""
    with np.errstate(all="ignore"):
        return [function(x.astype(np.longdouble)).astype(x.dtype)]


def exact_unary(data: st.DataObject) -> list[Case]:
    """Functions of which every bit of the result is determined."""
    cases = []
    for op, (types, function) in EXACT_UNARY.items():
        dtype, rng = data.draw(st.sampled_from(types)), data.draw(seeds())
        x = special(rng, dtype, data.draw(shapes()))
        tolerance = 1e-45 if op in ("Relu", "Sign") else 0.0  # which zero is not said
        expected = reference(function, x)
        cases.append(Case(op, [x], expected=expected, atol=tolerance))
    return cases


def smooth_unary(data: st.DataObject) -> list[Case]:
    """Mathematical functions within a few units in the last place, at the corners too."""
    numpy_names = {"Asin": "arcsin", "Acos": "arccos", "Atan": "arctan", "Asinh": "arcsinh",
                   "Acosh": "arccosh", "Atanh": "arctanh"}  # fmt: skip
    cases = []
    for op in SMOOTH.split():
        dtype, rng = data.draw(st.sampled_from(FLOATS)), data.draw(seeds())
        x = special(rng, dtype, data.draw(shapes()))
        rtol = 6e-7 if dtype == "float32" else 2e-15
        atol = 1e-45 if dtype == "float32" else 0.0
        name = numpy_names.get(op, op.lower())
        function = SPELLED[op] if op in SPELLED else getattr(np, name)
        expected = in_double(function, x)
        cases.append(Case(op, [x], expected=expected, rtol=rtol, atol=atol))
    return cases


def activations(data: st.DataObject) -> list[Case]:
    """Formulas of several operations, and their attributes."""
    cases = []
    for op, attributes in ACTIVATIONS.items():
        given = attributes if data.draw(st.booleans()) else {}
        dtype = "float32" if op == "Celu" else data.draw(st.sampled_from(FLOATS))
        x = small(data.draw(seeds()), dtype, data.draw(shapes(1)), -9, 9)
        tolerance = 2e-6 if dtype == "float32" else 3e-8  # attributes are float32
        cases.append(Case(op, [x], given, rtol=tolerance, atol=tolerance))
    x = small(data.draw(seeds()), "float32", data.draw(shapes(1)), -9, 9)
    x[:1] = 9  # 1 + erf(x) cancels below 0: a small result is rough
    cases.append(Case("Gelu", [x], {"approximate": "tanh"}, rtol=2e-6, atol=2e-6))
    cases.append(Case("Gelu", [x], rtol=2e-6, atol=2e-6))
    return cases


def arithmetic(data: st.DataObject) -> list[Case]:
    """Two operands that broadcast, one of them now and then a constant."""
    cases = []
    for op, (types, function) in ARITHMETIC.items():
        a, b = _pair(data, data.draw(st.sampled_from(types)), special)
        known = data.draw(st.sampled_from([(), (), (0,), (1,)]))
        # max(-0.0, 0.0) may be either zero
        tolerance = 1e-45 if op in ("Max", "Min") else 0.0
        expected = reference(function, a, b)
        cases.append(Case(op, [a, b], {}, known, expected=expected, rtol=tolerance))
    return cases


def division(data: st.DataObject) -> list[Case]:
    """Quotients, remainders, powers and shifts: with truncation, flooring and wrapping."""
    floats, whole = data.draw(st.sampled_from(FLOATS)), data.draw(st.sampled_from(SIGNED))
    unsigned = data.draw(st.sampled_from(UNSIGNED))
    a, b = _pair(data, floats, special)
    i, j = _pair(data, whole, small)
    j = np.where(j == 0, 3, j).astype(whole)
    u, v = _pair(data, unsigned, small)
    p, q = _pair(data, floats, small)
    precise = 1e-6 if floats == "float32" else 1e-14
    base, power = _pair(data, data.draw(st.sampled_from(["int32", "int64"])), small)
    return [
        Case("Div", [a, b], expected=reference(np.divide, a, b)),
        Case("Div", [i, j], expected=[np.trunc(i / j).astype(whole)]),
        Case("Mod", [i, j], expected=[np.mod(i, j)]),
        Case("Mod", [i, j], {"fmod": 1}, expected=[np.fmod(i, j)]),
        Case("Mod", [a, b], {"fmod": 1}, expected=reference(np.fmod, a, b)),
        Case("Pow", [np.abs(p), q], expected=reference(np.power, np.abs(p), q), rtol=precise),
        Case("Pow", [base, np.abs(power)], expected=[np.power(base, np.abs(power))]),
        Case("Pow", [p, np.array(2, floats)], {}, (1,), expected=[p * p], rtol=precise),
        Case("BitShift", [u, v], {"direction": "LEFT"}, expected=[u << v]),
        Case("BitShift", [u, v], {"direction": "RIGHT"}, expected=[u >> v]),
        Case("PRelu", [p + 0 * q, q], rtol=precise),
        Case("Mean", [p, q, p], expected=[(p + q + p) / 3], atol=precise),
        Case("Sum", [p, q, q], expected=[p + q + q], atol=precise),
    ]


def choice(data: st.DataObject) -> list[Case]:
    """Where and Clip of every type."""
    cases = []
    for dtype in data.draw(st.lists(st.sampled_from((*NUMBERS, "bool")), min_size=4, max_size=6)):
        a, b = _pair(data, dtype, special)
        condition = special(data.draw(seeds()), "bool", a.shape)
        try:
            expected = [np.where(condition, a, b)]
        except ValueError:
            continue
        cases.append(Case("Where", [condition, a, b], expected=expected))
    for dtype in data.draw(st.lists(st.sampled_from(NUMBERS), min_size=3, max_size=5)):
        rng = data.draw(seeds())
        x, bounds = special(rng, dtype, data.draw(shapes())), np.sort(small(rng, dtype, (2,)))
        low, high = (np.array(v) if data.draw(st.booleans()) else None for v in bounds)
        known = data.draw(st.sampled_from([(), (1, 2)]))
        expected = np.clip(x, low, high) if low is not None or high is not None else x
        cases.append(Case("Clip", [x, low, high], {}, known, expected=[expected], rtol=1e-45))
    return cases


def conversions(data: st.DataObject) -> list[Case]:
    """Casts between any two types, of values that the target can hold."""
    cases, types = [], (*NUMBERS, "bool")
    for _ in range(12):
        source, target = data.draw(st.sampled_from(types)), data.draw(st.sampled_from(types))
        x = small(data.draw(seeds()), source, data.draw(shapes()))
        if np.dtype(target).kind == "u":
            x = np.abs(x)
        code = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        cases.append(Case("Cast", [x], {"to": code}, expected=[x.astype(target)]))
    return cases


def _pair(data: st.DataObject, dtype: str, values: Callable[..., np.ndarray]) -> list[np.ndarray]:
    sides = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=17)
    drawn = data.draw(sides.filter(lambda s: np.prod(s.result_shape) <= 4000))
    return [values(data.draw(seeds()), dtype, shape) for shape in drawn.input_shapes]


test_exact_unary = family(exact_unary)
test_smooth_unary = family(smooth_unary)
test_activations = family(activations)
test_arithmetic = family(arithmetic)
test_division = family(division)
test_choice = family(choice)
test_conversions = family(conversions)
