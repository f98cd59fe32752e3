"""One step of an optimiser, as the formulas that the standard gives: Momentum, Adagrad, Adam.

Inputs are the learning rate R, the number T of steps so far, and then, for all tensors that are
trained, first the tensors X, then their gradients G, then what the optimiser remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require

Step = Callable[["Formulas", Sequence[str]], Sequence[str]]


class Formulas:
    """Nodes of one optimiser; numbers among the operands become constants of the tensors' type."""

    def __init__(self, node: Node, dtype: np.dtype) -> None:
        self.c, self.node, self.dtype = Composer(), node, dtype
        code = int(np_dtype_to_tensor_dtype(dtype))
        self.rate, self.count = (self.c("Cast", name, to=code) for name in node.inputs[:2])

    def __call__(self, op: str, *operands: str | float) -> str:
        return self.c(op, *(self._name(v) for v in operands))

    def number(self, attribute: str, default: float = 0.0) -> float:
        return float(self.node.get(attribute, default))

    def regularised(self, x: str, gradient: str) -> str:
        """G + norm_coefficient * X"""
        return self("Add", self("Mul", x, self.number("norm_coefficient")), gradient)

    def later(self, value: str | float, first: str | float) -> str:
        """`value`, but `first` in the first step of all."""
        return self("Where", self("Greater", self.count, 0.0), value, first)

    def _name(self, value: str | float) -> str:
        return value if isinstance(value, str) else self.c.constant(value, self.dtype)


def momentum(f: Formulas, tensors: Sequence[str]) -> Sequence[str]:
    """V = alpha V + beta G; X = X - R V, or X - R (G + alpha V) by Nesterov"""
    x, gradient, velocity = tensors
    g = f.regularised(x, gradient)
    beta = f.later(f.number("beta"), 1.0)
    fresh = f("Add", f("Mul", velocity, f.number("alpha")), f("Mul", beta, g))
    mode = f.node.get("mode", "standard")
    step = fresh if mode == "standard" else f("Add", g, f("Mul", fresh, f.number("alpha")))
    return f("Sub", x, f("Mul", f.rate, step)), fresh


def adagrad(f: Formulas, tensors: Sequence[str]) -> Sequence[str]:
    """H = H + G²; X = X - R / (1 + T decay) G / (√H + epsilon)"""
    x, gradient, squares = tensors
    g = f.regularised(x, gradient)
    rate = f("Div", f.rate, f("Add", f("Mul", f.count, f.number("decay_factor")), 1.0))
    fresh = f("Add", squares, f("Mul", g, g))
    root = f("Add", f("Sqrt", fresh), f.number("epsilon", 1e-6))
    return f("Sub", x, f("Div", f("Mul", rate, g), root)), fresh


def adam(f: Formulas, tensors: Sequence[str]) -> Sequence[str]:
    """V = alpha V + (1 - alpha) G; H = beta H + (1 - beta) G²; X = X - r V / (√H + epsilon)"""
    x, gradient, mean, squares = tensors
    alpha, beta = f.number("alpha", 0.9), f.number("beta", 0.999)
    g = f.regularised(x, gradient)
    v = f("Add", f("Mul", mean, alpha), f("Mul", g, 1 - alpha))
    h = f("Add", f("Mul", squares, beta), f("Mul", f("Mul", g, g), 1 - beta))
    up = f("Sqrt", f("Sub", 1.0, f("Pow", beta, f.count)))
    corrected = f("Div", f("Mul", f.rate, up), f("Sub", 1.0, f("Pow", alpha, f.count)))
    rate = f.later(corrected, f.rate)
    root = f("Add", f("Sqrt", h), f.number("epsilon", 1e-6))
    fresh = f("Sub", x, f("Div", f("Mul", rate, v), root))
    return f("Mul", fresh, 1 - f.number("norm_coefficient_post")), v, h


STEPS: dict[str, tuple[int, Step]] = {
    "Momentum": (3, momentum),
    "Adagrad": (3, adagrad),
    "Adam": (4, adam),
}
"""Operator -> tensors for each one that is trained, and its formulas."""


def expand_optimiser(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """The formulas for each tensor that is trained; outputs in the order of the inputs."""
    each, step = STEPS[node.op]
    tensors = node.inputs[2:]
    count, rest = divmod(len(tensors), each)
    way_out = f"each tensor that is trained comes with {each - 1} others"
    require(rest == 0 and count > 0, "tensors", f"a multiple of {each}", len(tensors), way_out)
    formulas = Formulas(node, given(inputs[2]).dtype)
    results = [step(formulas, tensors[k::count]) for k in range(count)]
    outputs = [name for kind in zip(*results, strict=True) for name in kind]
    return formulas.c.body(node.inputs, outputs)
