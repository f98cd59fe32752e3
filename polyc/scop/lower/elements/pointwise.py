"""Elementwise operators: each output element is a formula of the broadcast input elements.

Y[i, j] = f(A[i, j], B[0, j])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import BOOL, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    FLOAT64,
    add,
    as_float,
    both,
    constant,
    div,
    erf,
    function,
    gt,
    is_float,
    isinf,
    lt,
    maximum,
    minimum,
    mul,
    power,
    reciprocal,
    select,
)
from polyc.scop.lower.space import Space

Formula = Callable[..., Expr]
"""(node, the element of each input) -> the element of the output."""

SAME_NAME = (
    "Abs Neg Exp Log Sqrt Reciprocal Sign Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Asinh Acosh Atanh Sigmoid Not IsNaN Add Sub Mul Div And Or Xor"
)

RENAMED = {
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
    "BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor", "BitwiseNot": "bitnot",
    "Where": "select",
}  # fmt: skip


def shift(node: Node, a: Expr, b: Expr) -> Expr:
    """a * 2**b or floor(a / 2**b), also where b exceeds the width of a; a negative b does, too."""
    if node.attributes["direction"] == "LEFT":
        return function("shl")(a, b)
    if np.issubdtype(a.dtype, np.signedinteger):
        most = 8 * a.dtype.itemsize - 1  # shifts in nothing but the sign
        b = select(lt(b, 0), most, minimum(b, most))
    return function("shr")(a, b)


FORMULAS: dict[str, Formula] = {
    "Sum": lambda node, *xs: reduce(add, xs),
    "Mean": lambda node, *xs: div(reduce(add, xs), len(xs)),
    "Max": lambda node, *xs: reduce(maximum, xs),
    "Min": lambda node, *xs: reduce(minimum, xs),
    "Mod": lambda node, a, b: function("fmod" if node.get("fmod") else "mod")(a, b),
    "BitShift": shift,
    "PRelu": lambda node, x, slope: select(lt(x, 0), mul(slope, x), x),
    "Erf": lambda node, x: erf(as_float(x)),
}


def operand(ctx: Lowering, space: Space, tensor: str) -> Expr:
    """The element of a tensor at a point of a grid that it broadcasts to; one constant: its value.

    A [3, 1] on a grid [i0, i1, i2]: A[i1, 0]
    """
    shape = ctx.ref(tensor).shape
    missing = len(space.iterators) - len(shape)
    at = ["0" if n == 1 else space.iterators[missing + k] for k, n in enumerate(shape)]
    return element_at(ctx, space, tensor, at)


def element_at(ctx: Lowering, space: Space, tensor: str, at: Sequence[str]) -> Expr:
    """The element of a tensor at index formulas; a tensor that is one constant is its value."""
    ref = ctx.ref(tensor)
    value = ctx.arrays[ref.array].value
    if value is not None and value.size == 1:
        return constant(value.reshape(-1)[0], ref.dtype)
    return space.load(ref, *at)


def lower_pointwise(ctx: Lowering, node: Node, formula: Formula) -> None:
    """Y[i…] = formula(A[i…], B[i…], …)"""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    value = formula(node, *(operand(ctx, space, name) for name in node.inputs))
    ctx.assign(node, space, result, space.iterators, cast(value, result.dtype))


def lower_with(formulas: Mapping[str, Formula]) -> None:
    """Register a formula as the lowering of each operator of a table."""
    for op, formula in formulas.items():
        lowers(op)(partial(lower_pointwise, formula=formula))


def _named(name: str) -> Formula:
    return lambda node, *arguments: function(name)(*arguments)


lower_with({op: _named(op.lower()) for op in SAME_NAME.split()})
lower_with({op: _named(name) for op, name in RENAMED.items()})
lower_with(FORMULAS)


@lowers("Clip")
def lower_clip(ctx: Lowering, node: Node) -> None:
    """Y[i…] = min(max(X[i…], low), high); a bound that is absent does not bind."""
    result = ctx.result(node)
    space = ctx.grid(node, result.shape)
    value = operand(ctx, space, node.inputs[0])
    for position, bound in ((1, maximum), (2, minimum)):
        if ctx.has(node, position):
            value = bound(value, operand(ctx, space, node.inputs[position]))
    ctx.assign(node, space, result, space.iterators, value)


@lowers("IsInf")
def lower_isinf(ctx: Lowering, node: Node) -> None:
    """Y[i…] = whether X[i…] is an infinity of one of the signs asked for."""
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)

    def formula(node: Node, x: Expr) -> Expr:
        if positive and negative:
            return isinf(x)
        if not positive and not negative:
            return constant(False, BOOL)
        return both(isinf(x), (gt if positive else lt)(x, 0))

    lower_pointwise(ctx, node, formula)


EXACT_POWERS: dict[float, Callable[[Expr], Expr]] = {
    1.0: lambda x: x,
    2.0: lambda x: mul(x, x),
    3.0: lambda x: mul(mul(x, x), x),
    -1.0: reciprocal,
}
"""Powers that products and quotients give for every x, infinities, NaN and -0.0 too."""


@lowers("Pow")
def lower_pow(ctx: Lowering, node: Node) -> None:
    """Y[i…] = X[i…] ** E[i…], of the type of X; an integer to a fraction is a double before."""
    exponent = ctx.graph.value(node.inputs[1])
    known = exponent.item() if exponent is not None and exponent.size == 1 else math.nan

    def formula(node: Node, x: Expr, e: Expr) -> Expr:
        if known in EXACT_POWERS and (known > 0 or is_float(x)):
            return EXACT_POWERS[known](x)
        # an exponent must keep its value, so also its parity, on the way to the type of x
        kept = np.can_cast(e.dtype, x.dtype)
        if is_float(x) and not math.isnan(known):
            kept = constant(known, x.dtype).value == known
        integers = not is_float(x) and not is_float(e)
        dtype = x.dtype if kept or integers else FLOAT64
        return power(cast(x, dtype), cast(e, dtype))

    lower_pointwise(ctx, node, formula)
