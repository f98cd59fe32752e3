"""The functions of the runtime as Python functions, so that formulas read as formulas.

mul(x, sigmoid(mul(1.702, x)))    # x * sigmoid(1.702 x); numbers take the type of x
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyc.scop.expr import Call, Const, Expr, Within, call, cast, restrict
from polyc.types.element_types import FLOAT64, INT32, is_narrow, limits, wide
from polyc.types.element_types import is_float as is_float_type
from polyc.types.sizes import Size


def constant(value: float, dtype: np.dtype) -> Const:
    """A literal, rounded to its type; NotFixed for a size known only at run time, which is none."""
    if isinstance(value, Size):
        value = int(value)
    return Const(np.asarray(value).astype(dtype).item(), np.dtype(dtype))


def function(name: str) -> Callable[..., Call[Expr]]:
    """The function that builds calls of `name`; a Python number becomes a literal of the type of
    the last argument that is an expression."""

    def build(*arguments: Expr | float) -> Call[Expr]:
        numbers = int | float | Size
        dtype = next(a.dtype for a in reversed(arguments) if not isinstance(a, numbers))
        typed = [constant(a, dtype) if isinstance(a, numbers) else a for a in arguments]
        return call(name, *typed)

    return build


def is_float(x: Expr) -> bool:
    return x.dtype.kind == "f"


def convert(x: Expr, dtype: np.dtype) -> Expr:
    """x as another type, rounded once; from and to narrow types by way of their wide type.

    A float becomes a narrow integer by way of int32, whose lowest bits it keeps.
    """
    if x.dtype == dtype:
        return x
    if is_narrow(x.dtype):
        return convert(cast(x, wide(x.dtype)), dtype)
    if not is_narrow(dtype):
        return cast(x, dtype)
    if x.dtype == FLOAT64 and is_float_type(dtype):
        x = function("round_odd")(x)  # or else halves of the narrow type could be made on the way
    if is_float(x) and not is_float_type(dtype):
        x = cast(x, INT32)
    return cast(cast(x, wide(dtype)), dtype)


def saturated(x: Expr, dtype: np.dtype) -> Expr:
    """x, with what is beyond the finite numbers of a type, infinities too, as the last of them."""
    low, high = limits(dtype)
    return maximum(minimum(x, high), low)


def as_float(x: Expr) -> Expr:
    """x, as a double where it is an integer; for functions that leave the integers."""
    return x if is_float(x) else cast(x, FLOAT64)


def guarded(condition: Within, inside: Expr, outside: Expr | float) -> Expr:
    """`inside` where the condition holds, and only there is it read; else `outside`."""
    return select(condition, restrict(inside, condition.domain), outside)


def square(x: Expr) -> Expr:
    return mul(x, x)


absolute = function("abs")
add = function("add")
both = function("and")
div = function("div")
either = function("or")
eq = function("eq")
erf = function("erf")
exp = function("exp")
exp_normal = function("exp_normal")
expm1 = function("expm1")
ge = function("ge")
gt = function("gt")
isinf = function("isinf")
isnan = function("isnan")
le = function("le")
log = function("log")
log1p = function("log1p")
lt = function("lt")
maximum = function("max")
minimum = function("min")
mul = function("mul")
neg = function("neg")
power = function("pow")
reciprocal = function("reciprocal")
rounded = function("rounded")
select = function("select")
sigmoid = function("sigmoid")
sqrt = function("sqrt")
sub = function("sub")
tanh = function("tanh")
wrap_index = function("index")
