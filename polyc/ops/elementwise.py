"""Operators that work element by element, on operands that broadcast to one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.builder import Operand, Value, apply, constant_value


def _unary(op: str, formula: str) -> Callable[[Operand], Value]:
    def function(x: Operand) -> Value:
        return apply(op, [x])

    return _documented(function, op, formula)


def _binary(op: str, formula: str) -> Callable[[Operand, Operand], Value]:
    def function(a: Operand, b: Operand) -> Value:
        return apply(op, [a, b])

    return _documented(function, op, f"{formula}, broadcast")


def _variadic(op: str, formula: str) -> Callable[..., Value]:
    def function(*tensors: Operand) -> Value:
        return apply(op, tensors)

    return _documented(function, op, f"{formula}, broadcast")


def _documented(function: Callable[..., Value], op: str, formula: str) -> Callable[..., Value]:
    function.__doc__ = f"ONNX {op}, element by element: {formula}."
    function.__name__ = function.__qualname__ = op.lower()
    return function


abs = _unary("Abs", "|x|")
neg = _unary("Neg", "-x")
sign = _unary("Sign", "-1, 0 or 1")
exp = _unary("Exp", "e**x")
log = _unary("Log", "ln x")
sqrt = _unary("Sqrt", "x**½")
reciprocal = _unary("Reciprocal", "1 / x")
floor = _unary("Floor", "largest integer ≤ x")
ceil = _unary("Ceil", "smallest integer ≥ x")
round = _unary("Round", "nearest integer, halves to even")
erf = _unary("Erf", "2/√π ∫₀ˣ e**(-t²) dt")
sin = _unary("Sin", "sin x")
cos = _unary("Cos", "cos x")
tan = _unary("Tan", "tan x")
asin = _unary("Asin", "arcsin x")
acos = _unary("Acos", "arccos x")
atan = _unary("Atan", "arctan x")
sinh = _unary("Sinh", "sinh x")
cosh = _unary("Cosh", "cosh x")
tanh = _unary("Tanh", "tanh x")
asinh = _unary("Asinh", "arsinh x")
acosh = _unary("Acosh", "arcosh x")
atanh = _unary("Atanh", "artanh x")
sigmoid = _unary("Sigmoid", "1 / (1 + e**-x)")
relu = _unary("Relu", "max(x, 0)")
hard_swish = _unary("HardSwish", "x · max(0, min(1, x/6 + ½))")
mish = _unary("Mish", "x · tanh(ln(1 + e**x))")
softplus = _unary("Softplus", "ln(1 + e**x)")
softsign = _unary("Softsign", "x / (1 + |x|)")
identity = _unary("Identity", "x")
logical_not = _unary("Not", "¬x")
bitwise_not = _unary("BitwiseNot", "~x")
is_nan = _unary("IsNaN", "x ≠ x")

add = _binary("Add", "a + b")
sub = _binary("Sub", "a - b")
mul = _binary("Mul", "a · b")
div = _binary("Div", "a / b")
pow = _binary("Pow", "a**b")
prelu = _binary("PRelu", "a < 0 ? a · b : a")
equal = _binary("Equal", "a = b")
less = _binary("Less", "a < b")
less_or_equal = _binary("LessOrEqual", "a ≤ b")
greater = _binary("Greater", "a > b")
greater_or_equal = _binary("GreaterOrEqual", "a ≥ b")
logical_and = _binary("And", "a ∧ b")
logical_or = _binary("Or", "a ∨ b")
logical_xor = _binary("Xor", "a ⊻ b")
bitwise_and = _binary("BitwiseAnd", "a & b")
bitwise_or = _binary("BitwiseOr", "a | b")
bitwise_xor = _binary("BitwiseXor", "a ^ b")

max = _variadic("Max", "the largest")
min = _variadic("Min", "the smallest")
sum = _variadic("Sum", "the sum")
mean = _variadic("Mean", "the mean")


def leaky_relu(x: Operand, alpha: float = 0.01) -> Value:
    """x < 0 ? alpha · x : x"""
    return apply("LeakyRelu", [x], alpha=alpha)


def elu(x: Operand, alpha: float = 1.0) -> Value:
    """x < 0 ? alpha · (e**x - 1) : x"""
    return apply("Elu", [x], alpha=alpha)


def celu(x: Operand, alpha: float = 1.0) -> Value:
    """max(0, x) + min(0, alpha · (e**(x/alpha) - 1))"""
    return apply("Celu", [x], alpha=alpha)


def selu(x: Operand, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Value:
    """gamma · (x ≤ 0 ? alpha · (e**x - 1) : x)"""
    return apply("Selu", [x], alpha=alpha, gamma=gamma)


def gelu(x: Operand, approximate: str = "none") -> Value:
    """x · Φ(x); approximate="tanh": ½x (1 + tanh(√(2/π) (x + 0.044715 x³)))"""
    return apply("Gelu", [x], approximate=approximate)


def swish(x: Operand, alpha: float = 1.0) -> Value:
    """x · sigmoid(alpha · x)"""
    return apply("Swish", [x], alpha=alpha)


def hard_sigmoid(x: Operand, alpha: float = 0.2, beta: float = 0.5) -> Value:
    """max(0, min(1, alpha · x + beta))"""
    return apply("HardSigmoid", [x], alpha=alpha, beta=beta)


def thresholded_relu(x: Operand, alpha: float = 1.0) -> Value:
    """x > alpha ? x : 0"""
    return apply("ThresholdedRelu", [x], alpha=alpha)


def shrink(x: Operand, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """x < -lambd ? x + bias : x > lambd ? x - bias : 0"""
    return apply("Shrink", [x], bias=bias, lambd=lambd)


def clip(x: Operand, low: Operand | None = None, high: Operand | None = None) -> Value:
    """min(max(x, low), high), where the limits are scalars and may be absent."""
    return apply("Clip", [x, low, high])


def is_inf(x: Operand, detect_negative: bool = True, detect_positive: bool = True) -> Value:
    """x = -∞ or x = +∞, of the signs asked for."""
    signs = {"detect_negative": int(detect_negative), "detect_positive": int(detect_positive)}
    return apply("IsInf", [x], **signs)


def mod(a: Operand, b: Operand, fmod: bool = False) -> Value:
    """a mod b, with the sign of b; fmod: with the sign of a, as C does, and for floats."""
    return apply("Mod", [a, b], fmod=int(fmod))


def bit_shift(a: Operand, b: Operand, direction: str) -> Value:
    """a << b (direction="LEFT") or a >> b (direction="RIGHT"), for unsigned integers."""
    return apply("BitShift", [a, b], direction=direction)


def where(condition: Operand, a: Operand, b: Operand) -> Value:
    """condition ? a : b, broadcast."""
    like = next((v.dtype for v in (a, b) if isinstance(v, Value | np.ndarray | np.generic)), None)
    a, b = (constant_value(v, dtype=like) if isinstance(v, int | float) else v for v in (a, b))
    return apply("Where", [condition, a, b])


def cast(x: Operand, dtype: Any) -> Value:
    """x in another element type."""
    return apply("Cast", [x], to=int(np_dtype_to_tensor_dtype(np.dtype(dtype))))
