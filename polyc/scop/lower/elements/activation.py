"""Activation functions: formulas of one element, exact where the textbook's overflow or cancel."""

from __future__ import annotations

import math

from polyc.graph.ir import Node
from polyc.scop.expr import Expr
from polyc.scop.lower.elements.pointwise import Formula, lower_with
from polyc.scop.lower.functions import (
    absolute,
    add,
    as_float,
    div,
    erf,
    exp,
    expm1,
    gt,
    log1p,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    select,
    sigmoid,
    sub,
    tanh,
)

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def softplus(x: Expr) -> Expr:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)): no overflow, no cancellation."""
    return add(maximum(x, 0), log1p(exp(neg(absolute(x)))))


def mish(x: Expr) -> Expr:
    """x * tanh(softplus(x)), which is x * n / (n + 2) for n = w * (w + 2) and w = exp(x).

    From x = 20 on the quotient is 1, in double precision too.
    """
    w = exp(minimum(x, 20))
    n = mul(w, add(w, 2))
    return mul(x, div(n, add(n, 2)))


def ramp(x: Expr, slope: float, offset: float) -> Expr:
    """slope * x + offset, kept between 0 and 1."""
    return maximum(minimum(add(mul(x, slope), offset), 1), 0)


def gelu(node: Node, x: Expr) -> Expr:
    """x * Phi(x) for the normal distribution Phi; or Hendrycks and Gimpel's (2016) tanh of it."""
    if node.get("approximate", "none") == "tanh":
        slope = math.sqrt(2 / math.pi)
        cubic = mul(x, add(mul(mul(x, x), 0.044715 * slope), slope))
        return mul(mul(x, 0.5), add(tanh(cubic), 1))
    return mul(mul(x, 0.5), add(erf(mul(x, math.sqrt(0.5))), 1))


def shrink(node: Node, x: Expr) -> Expr:
    """x moved towards 0 by the bias outside of [-lambda, lambda], 0 inside."""
    x, bound, bias = as_float(x), node.get("lambd", 0.5), node.get("bias", 0.0)
    return select(lt(x, -bound), add(x, bias), select(gt(x, bound), sub(x, bias), 0))


def elu(x: Expr, alpha: float) -> Expr:
    """x, or alpha * (exp(x) - 1) below 0."""
    return select(lt(x, 0), mul(expm1(x), alpha), x)


FORMULAS: dict[str, Formula] = {
    "Relu": lambda node, x: maximum(x, 0),
    "LeakyRelu": lambda node, x: select(lt(x, 0), mul(x, node.get("alpha", 0.01)), x),
    "ThresholdedRelu": lambda node, x: select(gt(x, node.get("alpha", 1.0)), x, 0),
    "Elu": lambda node, x: elu(x, node.get("alpha", 1.0)),
    "Selu": lambda node, x: mul(
        elu(x, node.get("alpha", SELU_ALPHA)), node.get("gamma", SELU_GAMMA)
    ),
    "Celu": lambda node, x: select(
        lt(x, 0), mul(expm1(div(x, node.get("alpha", 1.0))), node.get("alpha", 1.0)), x
    ),
    "Gelu": gelu,
    "HardSigmoid": lambda node, x: ramp(x, node.get("alpha", 0.2), node.get("beta", 0.5)),
    "HardSwish": lambda node, x: mul(x, ramp(x, 1 / 6, 0.5)),
    "Mish": lambda node, x: mish(x),
    "Softplus": lambda node, x: softplus(x),
    "Softsign": lambda node, x: div(x, add(absolute(x), 1)),
    "Swish": lambda node, x: mul(x, sigmoid(mul(x, node.get("alpha", 1.0)))),
    "Shrink": shrink,
}

lower_with(FORMULAS)
